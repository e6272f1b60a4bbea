"""Tests errors of an engine that dies or hangs, and early errors for unsupported settings."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from visenv.errors import ConfigurationError, PolicyError, RunError
from visenv.types import Sampling

pytestmark = pytest.mark.component("vllm", "torch", "transformers")

GREEDY = Sampling(0.0, 6)


@pytest.fixture(scope="module")
def mortal(start: Callable[..., Any], qwen3_folder: Path) -> Any:
    """Return an engine that tests may kill."""
    return start(qwen3_folder)


def test_engine_that_dies_fails_all_waiting_turns_and_restarts(
    mortal: Any, exam: Any, talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = exam.play(mortal, range(3), sampling=GREEDY)

    def boom() -> None:
        raise RuntimeError("CUDA error: an illegal memory access")

    monkeypatch.setattr(mortal._present.engine, "step", boom)
    sessions = [mortal.open(0) for _ in range(3)]

    async def ask() -> list[Any]:
        for session in sessions:
            session.observe(talk.shown("a"))
        asked = [mortal.respond(session, talk.request, GREEDY) for session in sessions]
        return list(await asyncio.gather(*asked, return_exceptions=True))

    for error in asyncio.run(ask()):
        assert isinstance(error, PolicyError)
        assert "engine died: RuntimeError('CUDA error" in str(error)
    # The engine had the checkpoint's weights, as the new engine has, so that turns may continue.
    assert not mortal.stale
    again = exam.play(mortal, range(3), sampling=GREEDY)
    assert [one.token_ids.tolist() for one in again] == [o.token_ids.tolist() for o in expected]


def test_engine_that_hangs_is_known_within_the_time_out_and_wants_its_weights_again(
    mortal: Any, fresh: Any, exam: Any, talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    with torch.no_grad():
        for weight in fresh.parameters():
            weight.mul_(1.05)
    given = fresh.network.model.state_dict()
    mortal.load(given.items(), 3)
    expected = exam.play(fresh, [2], sampling=GREEDY)
    release = threading.Event()

    def hang() -> list[Any]:
        release.wait()
        return []

    monkeypatch.setattr(mortal._present.engine, "step", hang)
    monkeypatch.setattr(mortal._present, "_limit", 0.2)
    with pytest.raises(PolicyError, match=r"engine hangs: a step has taken longer than 0\.2 s"):
        talk.alone(mortal, 0, [talk.shown("a")])
    with pytest.raises(PolicyError, match="hangs"):
        talk.alone(mortal, 0, [talk.shown("a")])
    assert mortal.stale
    hung = mortal._present
    mortal.load(given.items(), 4)
    assert hung.left_behind
    release.set()
    assert not mortal.stale
    (segment,) = exam.play(mortal, [2], sampling=GREEDY)
    assert segment.token_ids.tolist() == expected[0].token_ids.tolist()
    assert set(segment.policy_version[segment.loss_mask].tolist()) == {4}


def test_engine_that_hangs_on_a_gpu_of_this_process_has_no_successor() -> None:
    """Check the error: the memory is in use, and vLLM has one sleepable pool per process."""
    from visenv.policies.vllm import VLLMPolicy

    policy: Any = object.__new__(VLLMPolicy)
    policy._gpu, policy._new = 0, lambda: "another"
    hung = SimpleNamespace(left_behind=True)
    with pytest.raises(PolicyError, match="start the run again with resume"):
        policy._begin(hung)
    hung.left_behind = False  # it died, or was in its own process
    assert policy._begin(hung) == "another"
    assert policy._begin(None) == "another"


def test_transfer_that_hangs_is_known_within_its_time_out(
    mortal: Any, fresh: Any, exam: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()

    def stuck() -> Any:
        release.wait()
        yield from ()

    monkeypatch.setattr(mortal._present, "_transfer_timeout", 0.2)
    with pytest.raises(PolicyError, match=r"hangs: a transfer of weights .* than 0\.2 s"):
        mortal.load(stuck(), 5)
    assert mortal.stale
    release.set()
    mortal.close()


def test_closing_an_engine_leaves_the_others_alone(mortal: Any, vllm3: Any, exam: Any) -> None:
    mortal.close()
    assert exam.play(vllm3, [0], sampling=GREEDY)


def altered(folder: Path, target: Path, file: str, change: Callable[[Any], None]) -> Path:
    shutil.copytree(folder, target)
    path = target / file
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return target


def test_model_without_vision_is_refused(qwen3_folder: Path, tmp_path: Path) -> None:
    from visenv.policies.vllm import VLLMPolicy

    def blind(config: Any) -> None:
        config["model_type"] = "qwen3"
        del config["vision_config"]

    folder = altered(qwen3_folder, tmp_path / "blind", "config.json", blind)
    with pytest.raises(PolicyError, match="is a qwen3 model, which has no vision tower"):
        VLLMPolicy(folder)


def test_tokenizer_without_the_special_tokens_is_refused(
    qwen3_folder: Path, tmp_path: Path
) -> None:
    from visenv.policies.vllm import VLLMPolicy

    def forget(tokenizer: Any) -> None:
        tokenizer["added_tokens"] = [
            token for token in tokenizer["added_tokens"] if "image_pad" not in token["content"]
        ]

    folder = altered(qwen3_folder, tmp_path / "plain", "tokenizer.json", forget)
    with pytest.raises(PolicyError, match=r"no special token '<\|image_pad\|>'"):
        VLLMPolicy(folder)


def test_options_that_cannot_be_are_refused(qwen3_folder: Path, tmp_path: Path) -> None:
    from visenv.policies.vllm import VLLMPolicy

    with pytest.raises(ConfigurationError, match="int4"):
        VLLMPolicy(qwen3_folder, dtype="int4")
    with pytest.raises(ConfigurationError, match="pigeon"):
        VLLMPolicy(qwen3_folder, transfer="pigeon")
    with pytest.raises(ConfigurationError, match="sleep_level"):
        VLLMPolicy(qwen3_folder, sleep_level=3)
    with pytest.raises(RunError, match="no model to load"):
        VLLMPolicy(tmp_path)
    with pytest.raises(PolicyError, match=r"vLLM cannot run .*no_such_option"):
        VLLMPolicy(qwen3_folder, options={"no_such_option": 1})


def test_reason_of_a_failed_start_is_reported_if_the_error_has_no_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import vllm

    from visenv.policies.vllm import engine

    def refuse(**_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(vllm, "EngineArgs", refuse)
    with pytest.raises(PolicyError, match=r"vLLM cannot run tiny: AssertionError\(\)"):
        engine._start({"model": "tiny"})
