"""Tests that the notebooks run, and are stored with the outputs of their code."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from tests.environments import few
from tests.programs import load_program

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PICTURES = ("image/png", "image/webp")


def read(path: Path) -> dict[str, Any]:
    """Return a notebook, with each source and text as one string."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    return notebook


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def shown(cell: Any) -> list[tuple[str, Any]]:
    """Return the kind and the content of each output of a cell; texts without addresses."""
    found: list[tuple[str, Any]] = []
    for output in cell["outputs"]:
        data = output.get("data", {"text/plain": output.get("text")})
        kinds = (*PICTURES, "text/markdown")
        kind = next((each for each in kinds if each in data), "text/plain")
        content = data[kind]
        text = "".join(content) if isinstance(content, list) else content
        where = output.get("name", output["output_type"])
        plain = re.sub(r"0x[0-9a-f]+", "0x", text) if kind == "text/plain" else text
        found.append((f"{where} {kind}", plain))
    return found


def pixels(content: str) -> Any:
    """Return the pixels of the first frame of an encoded picture."""
    picture = PIL.Image.open(io.BytesIO(base64.b64decode(content)))
    return np.asarray(picture.convert("RGB"), np.int16)


def differences(stored: Any, produced: Any) -> list[str]:
    """Return a description of each output of a notebook that differs from that of a new run.

    Of a cell with the tag ``varies``, only whether it has an output is compared.
    """
    found = []
    for number, (old, new) in enumerate(zip(code_cells(stored), code_cells(produced), strict=True)):
        if "varies" in old["metadata"].get("tags", []):
            same = bool(old["outputs"]) == bool(new["outputs"])
        else:
            before, after = shown(old), shown(new)
            same = [kind for kind, _ in before] == [kind for kind, _ in after] and all(
                _same(kind, first, second)
                for (kind, first), (_, second) in zip(before, after, strict=True)
            )
        if not same:
            found.append(f"cell {number}: {shown(old)!s:.300} is now {shown(new)!s:.300}")
    return found


def _same(kind: str, first: str, second: str) -> bool:
    if not kind.endswith(PICTURES):
        return first == second
    before, after = pixels(first), pixels(second)
    # Encoders of pictures round differently.
    return before.shape == after.shape and float(np.abs(before - after).mean()) < 2


def test_notebooks_are_the_three_of_the_tutorials() -> None:
    index = (ROOT / "docs/tutorials/index.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 3
    assert [path.name for path in NOTEBOOKS if f"notebooks/{path.name})" not in index] == []


@pytest.mark.component("nbclient")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_with_the_outputs_of_its_code(path: Path) -> None:
    notebook = read(path)
    run = load_program("notebooks/execute.py")
    assert notebook["metadata"]["visenv"]["code"] == run.digest(notebook), "run `make notebooks`"
    cells = code_cells(notebook)
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    assert all(cell["outputs"] for cell in cells)
    kinds = {kind.split()[-1] for cell in cells for kind, _ in shown(cell)}
    assert kinds & {*PICTURES}
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [each for each in outputs if each["output_type"] == "error"]
    texts = json.dumps([each for each in outputs if not {*each.get("data", ())} & {*PICTURES}])
    assert not re.findall(r"[\w./-]*(?:site-packages|/tmp/|/home/|/Users/)[\w./-]*", texts)


@pytest.mark.component("nbclient")
def test_digest_changes_with_the_code_alone() -> None:
    run = load_program("notebooks/execute.py")
    notebook = read(NOTEBOOKS[0])
    before = run.digest(notebook)
    code_cells(notebook)[0]["outputs"] = []
    notebook["cells"][0]["source"] += " More text."
    assert run.digest(notebook) == before
    code_cells(notebook)[0]["source"] += "\n"
    assert run.digest(notebook) != before


def test_changed_output_is_a_difference() -> None:
    stored, changed = read(NOTEBOOKS[0]), read(NOTEBOOKS[0])
    assert differences(stored, changed) == []
    places = [place for place, cell in enumerate(code_cells(changed)) if cell["outputs"]]
    for place in places:
        cell = code_cells(changed)[place]
        outputs, cell["outputs"] = cell["outputs"], cell["outputs"][:-1]
        assert len(differences(stored, changed)) == 1
        cell["outputs"] = outputs


@pytest.mark.component("nbclient")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", few(NOTEBOOKS, 1), ids=lambda path: path.stem)
def test_notebook_gives_its_stored_outputs_again(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(name, "")  # restored after the test; `executed` sets them
    produced = load_program("notebooks/execute.py").executed(path, tmp_path)
    assert differences(read(path), produced) == []
