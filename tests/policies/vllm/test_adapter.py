"""Tests sending only a LoRA adapter to the real engine, each time with a new version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.environments import few
from tests.policies.vllm.conftest import change_adapter, send_adapter
from visenv.errors import ConfigurationError, PolicyError
from visenv.types import Sampling

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

from visenv.policies.vllm import adapter as adapters

pytestmark = pytest.mark.component("vllm", "torch", "transformers", "peft")

GREEDY = Sampling(0.0, 10)
BOUND = 1e-5
ENGINES: dict[str, Any] = {}


@pytest.fixture(params=few(["qwen3", "qwen2_5"], 1))
def engine(request: pytest.FixtureRequest, start: Callable[..., Any]) -> Any:
    """Return one engine for each architecture; tests share it and send the weights they need."""
    if request.param not in ENGINES:
        folder: Path = request.getfixturevalue(f"{request.param}_folder")
        ENGINES[request.param] = (folder, start(folder, lora_rank=4))
    return ENGINES[request.param]


@pytest.fixture
def vllm(engine: Any) -> Any:
    return engine[1]


@pytest.fixture
def trained(engine: Any) -> Any:
    """Return a policy whose adapter changes its turns."""
    from visenv.policies.transformers import TransformersPolicy

    policy = TransformersPolicy(engine[0], threads=1, lora={"rank": 4, "alpha": 8.0})
    change_adapter(policy, seed=1)
    return policy


def test_adapter_alone_changes_the_samples_to_those_of_the_trainer(
    vllm: Any, trained: Any, exam: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = exam.images(range(4))
    send_adapter(vllm, trained, 1)
    first = exam.play(vllm, range(4), sampling=GREEDY)
    assert exam.error(trained, first, images) < BOUND
    change_adapter(trained, seed=2)
    assert exam.error(trained, first, images) > 1e-2

    def refuse(*_: Any) -> None:
        raise AssertionError("Weights were sent.")

    monkeypatch.setattr(vllm._present.engine, "_load_weights", refuse)
    send_adapter(vllm, trained, 2, weights=False)
    second = exam.play(vllm, range(4), sampling=GREEDY)
    assert exam.error(trained, second, images) < BOUND
    for segment in second:
        assert set(segment.policy_version[segment.loss_mask].tolist()) == {2}
    assert vllm.version == 2


def test_keys_and_values_of_an_earlier_version_are_not_read_even_if_they_are_kept(
    vllm: Any, trained: Any, exam: Any, talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check a prompt longer than 128 tokens, as only whole blocks of 128 are kept."""
    picture = talk.picture(5, 112, 112)
    turns = [talk.shown("a long question " * 14, picture)]
    images = {picture.sha256: picture}
    send_adapter(vllm, trained, 1)
    inner = vllm._present.engine._engine
    step = inner.step
    kept: list[Any] = []

    def watched() -> Any:
        outputs = step()
        kept.extend(output.num_cached_tokens > 0 for output in outputs)
        return outputs

    monkeypatch.setattr(inner, "step", watched)
    monkeypatch.setattr(vllm._present.engine, "forget", lambda: None)

    def play() -> Any:
        session, _ = talk.alone(vllm, 0, turns, sampling=GREEDY)
        return session.segments()

    for version in (2, 3):
        change_adapter(trained, seed=version)
        send_adapter(vllm, trained, version, weights=False)
        for _ in range(2):
            assert exam.error(trained, play(), images) < BOUND
    assert kept == [False, True, False, True]


def test_merged_weights_take_the_place_of_an_adapter(vllm: Any, trained: Any, exam: Any) -> None:
    send_adapter(vllm, trained, 1)
    vllm.load(trained.named_weights(), 2)
    segments = exam.play(vllm, range(2), sampling=GREEDY)
    assert exam.error(trained, segments, exam.images(range(2))) < BOUND


def test_adapter_that_differs_is_refused_and_sampling_waits_for_a_correct_one(
    vllm: Any, trained: Any, exam: Any
) -> None:
    send_adapter(vllm, trained, 1)
    right = trained.adapter()
    name = next(iter(right.weights))
    other = name.replace(name.split(".")[-3], "other_proj")
    wrong = right._replace(weights={**right.weights, other: right.weights[name].clone()})
    with pytest.raises(PolicyError, match="vLLM rejects this adapter"):
        vllm.load_adapter(wrong, 2)
    assert vllm.stale
    with pytest.raises(PolicyError, match="lacks the current weights"):
        exam.play(vllm, [0])
    with pytest.raises(PolicyError, match="lacks the weights that the adapter changes"):
        send_adapter(vllm, trained, 3, weights=False)
    send_adapter(vllm, trained, 3)
    segments = exam.play(vllm, range(2), sampling=GREEDY)
    assert exam.error(trained, segments, exam.images(range(2))) < BOUND


def test_adapter_that_arrives_as_another_is_noticed(vllm: Any, trained: Any) -> None:
    send_adapter(vllm, trained, 1)
    given = trained.adapter()
    (held,) = vllm._present.engine._engine.collective_rpc(
        "visenv_adapter_sums", args=(vllm._present.engine._adapter.request.lora_int_id,)
    )
    adapters._compare(given, held)
    for part in ("lora_A", "lora_B"):
        with pytest.raises(PolicyError, match=f"{part} differs"):
            adapters._compare(given, {**held, part: held[part] + 1})


def test_ranks_that_vllm_has_no_room_for_are_refused() -> None:
    assert adapters.arguments(4)["max_lora_rank"] == 8
    assert adapters.arguments(16)["max_lora_rank"] == 16
    for rank in (0, 513):
        with pytest.raises(ConfigurationError, match=f"from 1 to 512, got {rank}"):
            adapters.arguments(rank)
