"""Tests that the notebooks run from the first cell to the last and are stored without outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.environments import few

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def code_cells(path: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_notebooks_are_the_three_of_the_tutorials() -> None:
    index = (ROOT / "docs/tutorials/index.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 3
    assert [path.name for path in NOTEBOOKS if f"notebooks/{path.name})" not in index] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_kept_without_outputs(path: Path) -> None:
    assert all(not cell["outputs"] for cell in code_cells(path))
    assert all(cell["execution_count"] is None for cell in code_cells(path))


@pytest.mark.component("nbclient")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", few(NOTEBOOKS, 1), ids=lambda path: path.stem)
def test_notebook_runs_to_its_end(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nbclient
    import nbformat

    # The kernel must not use the sockets and the history of the user.
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    notebook = nbformat.read(path, as_version=4)
    folder = {"metadata": {"path": str(tmp_path)}}
    client = nbclient.NotebookClient(notebook, timeout=560, kernel_name="python3", resources=folder)
    client.execute()
    counts = [cell["execution_count"] for cell in notebook.cells if cell["cell_type"] == "code"]
    assert counts == [*range(1, len(counts) + 1)]
