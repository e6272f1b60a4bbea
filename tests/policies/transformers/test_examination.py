"""Tests `visenv doctor --model`, and that a policy refuses a checkpoint with the same sentence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from visenv.cli import main
from visenv.errors import PolicyError, RunError, VisenvError

pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")
pytest.importorskip("torchvision")

from tests.policies.transformers import families
from visenv.policies.tokens.codec import Codec
from visenv.policies.tokens.processor import load_processor
from visenv.policies.transformers import TransformersPolicy
from visenv.policies.transformers.examination import examine

pytestmark = [pytest.mark.component("torch", "transformers"), pytest.mark.slow]


@pytest.fixture(scope="module")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return families.build("gemma3", tmp_path_factory.mktemp("gemma3"))


def found_in(model: Path) -> dict[str, tuple[str, str]]:
    return {name: (value, detail) for name, value, detail in examine(str(model))}


def test_generic_model(gemma: Path) -> None:
    found = found_in(gemma)
    assert found["model"] == ("gemma3", "Gemma3ForConditionalGeneration")
    assert found["family"] == ("GenericFamily", "")
    assert found["chat template"] == ("accepted", "a turn ends with '<end_of_turn>'")
    assert found["image processor"] == ("torchvision", "Gemma3ImageProcessor")
    # a line break, the start, 4 placeholders, the end, a line break
    assert found["tokens of an image"] == ("8", "of 448 x 448 pixels; 1 run of placeholders")
    paths = {name: found[name][0] for name in ("packed path", "padded path", "vLLM", "TRL", "verl")}
    possible = dict.fromkeys(("padded path", "vLLM"), "possible")
    assert paths == {**possible, **dict.fromkeys({*paths} - {*possible}, "no")}


def test_memory_is_that_of_the_weights(gemma: Path) -> None:
    """Check the number of parameters against the stored weights, which take 4 bytes each."""
    found = found_in(gemma)
    stored = (gemma / "model.safetensors").stat().st_size
    parameters = int(found["parameters"][0].replace(",", ""))
    assert stored - 50_000 < 4 * parameters < stored  # the file has a header
    assert found["memory to sample"][0] == f"{4 * parameters / 2**20:.1f} MiB"
    assert found["memory to train"][0] == f"{16 * parameters / 2**20:.1f} MiB"


def test_packed_model(qwen3_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--model", str(qwen3_folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name in ("packed path", "vLLM", "TRL", "verl"):
        (line,) = [line for line in lines if line.startswith(name)]
        assert line.split()[-1 if name == "packed path" else len(name.split())] == "possible"
    assert any(line.split()[:2] == ["family", "QwenVL"] for line in lines)


# --------------------------------------------------------------------------------------- refusals


def changed(file: str, **fields: Any) -> Callable[[Path], None]:
    """Return a function that replaces fields of a JSON file of a folder; None removes a field."""

    def change(folder: Path) -> None:
        path = folder / file
        told = json.loads(path.read_text()) | fields
        path.write_text(json.dumps({key: told[key] for key in told if told[key] is not None}))

    return change


def without(*files: str) -> Callable[[Path], None]:
    """Return a function that removes files of a folder."""

    def change(folder: Path) -> None:
        for file in files:
            (folder / file).unlink()

    return change


def text_only(folder: Path) -> None:
    """Replace the configuration by that of a language model."""
    text = json.loads((folder / "config.json").read_text())["text_config"]
    (folder / "config.json").write_text(json.dumps(text))


AUTO_MAP = {"AutoConfig": "own.Config", "AutoProcessor": "own.Processor"}

REFUSALS = {
    "no checkpoint": (without("config.json"), "no model to load at .*: the folder has no config"),
    "unknown type": (
        changed("config.json", model_type="stranger"),
        "no model to load at .*: transformers .* does not know the model_type",
    ),
    "code of its own": (
        changed("config.json", model_type="stranger", auto_map=AUTO_MAP),
        "needs Python files of its own .*, which visenv never runs",
    ),
    "text only": (text_only, "is a gemma3_text model, which has no vision tower"),
    "no chat template": (
        without("chat_template.jinja"), "Gemma3Processor has no default chat template"
    ),
    "no processor": (
        without("processor_config.json"),
        "The processor of .* cannot be loaded: Can't load image processor",
    ),
    "processor with code of its own": (
        changed("processor_config.json", processor_class="Own", auto_map=AUTO_MAP),
        "The processor of .* cannot be loaded: it needs Python files of its own",
    ),
    "other image token": (
        changed("tokenizer_config.json", image_token="<picture>", boi_token="<begin>"),
        "The chat template writes none of '<begin>' for an image, but '<bos><start_of_turn>",
    ),
    "processor without an image token": (
        changed("tokenizer_config.json", image_token=None, boi_token=None),
        "The processor of .* cannot be loaded: .* no attribute boi_token",
    ),
    "placeholder beyond the vocabulary": (
        changed("config.json", image_token_index=100_000, image_token_id=100_000),
        r"placeholder of images .* is the token 100000, and the model has only \d+ tokens",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_refusal_is_one_sentence_here_and_in_a_policy(
    case: str, gemma: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, expected = REFUSALS[case]
    folder = tmp_path / "model"
    shutil.copytree(gemma, folder)
    change(folder)
    with pytest.raises(VisenvError, match=expected) as refused:
        TransformersPolicy(folder, threads=1)
    assert main(["doctor", "--model", str(folder)]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"visenv: {refused.value}"


def test_missing_folder_is_no_name_of_the_hub(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no model to load at .*/missing: there is no such folder"):
        found_in(tmp_path / "missing")


def test_tokenizer_alone_is_no_processor(gemma: Path, tmp_path: Path) -> None:
    """Check a type of model whose processor transformers finds only by the name in its files."""
    transformers.AutoTokenizer.from_pretrained(gemma).save_pretrained(tmp_path)
    changed("tokenizer_config.json", processor_class=None)(tmp_path)
    transformers.GlmOcrConfig().save_pretrained(tmp_path)
    with pytest.raises(PolicyError, match="but no processor with a tokenizer"):
        load_processor(str(tmp_path))


def test_tokenizer_with_more_tokens_than_the_model_is_refused(gemma: Path) -> None:
    with pytest.raises(PolicyError, match=r"The token '.+' .* and the model has only 270 tokens"):
        Codec(str(gemma), 270)
