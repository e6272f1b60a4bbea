"""Tests objects that are made from words of a command line."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from visenv.errors import ConfigurationError, UnknownNameError
from visenv.makers import env_id, find_model, held_out_data, settings
from visenv.registration import load
from visenv.rollout import Mixture
from visenv.testing import toy


def no_env() -> Any:
    """Fail if an environment is made."""
    raise AssertionError("no environment is needed")


def toys() -> Mixture:
    """Return a mixture of one environment."""
    return Mixture({"toy": toy.make}, {"toy": 1.0})


def test_namespace_may_be_left_out() -> None:
    assert env_id("ZoomVQA-v0") == env_id("visenv/ZoomVQA-v0") == "visenv/ZoomVQA-v0"
    with pytest.raises(UnknownNameError, match="visenv/ZoomVQA-v0"):
        env_id("ZoomVQ-v0")


def test_values_are_json_or_plain_text() -> None:
    words = ["calls=1", 'kinds=["a", "b"]', "preset=tiny", "empty=", "formula=a=b"]
    assert settings(words) == {
        "calls": 1,
        "kinds": ["a", "b"],
        "preset": "tiny",
        "empty": "",
        "formula": "a=b",
    }


@pytest.mark.parametrize("word", ["stage", "=3", "two words=3", "2=3", ""])
def test_unknown_option_is_refused(word: str) -> None:
    with pytest.raises(ConfigurationError, match="key=value"):
        settings([word])


def test_sets_with_splits_are_distinguished_from_those_without() -> None:
    assert held_out_data("textvqa:data?split=train") == "textvqa:data?split=val"
    assert held_out_data("textvqa:data?x=1&split=train&y=2") == "textvqa:data?x=1&y=2&split=val"
    assert held_out_data("vstar:data") is None


def test_checkpoint_is_its_own_name(tmp_path: Path) -> None:
    assert find_model("Qwen/Qwen2.5-VL-3B-Instruct", tmp_path / "model", no_env) == (
        "Qwen/Qwen2.5-VL-3B-Instruct"
    )
    assert not any(tmp_path.iterdir())


def test_misspelled_tiny_model_is_not_looked_up_on_the_hub(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"no tiny model called 'tiny-zom'.*Did you mean"):
        find_model("tiny-zom", tmp_path / "model", no_env)
    assert find_model("lab/tiny-zom", tmp_path / "model", no_env) == "lab/tiny-zom"


@pytest.mark.parametrize("name", ["tiny-arm", "tiny-embodied"])
def test_old_name_of_a_tiny_model_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=f"called '{name}'. Did you mean 'tiny'"):
        find_model(name, tmp_path / "model", no_env)
    (tmp_path / name).mkdir()  # a folder of that name is a checkpoint
    with contextlib.chdir(tmp_path):
        assert find_model(name, tmp_path / "model", no_env) == name


def test_names_are_suggested_without_regard_to_case_namespace_and_version() -> None:
    for given in ("zoomvqa", "ZOOMVQA", "zoom_vqa", "visenv/zoomvqa"):
        with pytest.raises(UnknownNameError, match="Did you mean 'visenv/ZoomVQA-v0'"):
            env_id(given)
    with pytest.raises(UnknownNameError, match=r"no kind of object called 'polcy'.*'policy'"):
        load("polcy", "oracle")


@pytest.mark.component("torch", "transformers")
def test_tiny_model_is_built_once_and_completely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run" / "model"
    assert find_model("tiny", folder, toys, seed=1, episodes=2) == folder
    weights = folder / "model.safetensors"
    built = weights.read_bytes()
    assert find_model("tiny", folder, no_env, seed=2) == folder
    assert weights.read_bytes() == built

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("visenv.policies.transformers.tiny.save_processor", die)
    with pytest.raises(KeyboardInterrupt):
        find_model("tiny", tmp_path / "other", toys, episodes=2)
    assert not [*tmp_path.glob("*other*")]
