"""Tests that vLLM samples models of other families than Qwen-VL as the trainer does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.environments import few
from visenv.errors import PolicyError
from visenv.types import Message, Sampling, TurnRequest

torch: Any = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("torchvision")

from tests.policies.transformers import families, test_family_videos
from tests.policies.transformers.tiny_families import proof
from tests.policies.vllm.conftest import (
    ONE_PROCESS,
    SMALL,
    change_adapter,
    scale,
    send_adapter,
)
from tests.policies.vllm.prompts import read_by_vllm
from visenv.policies.transformers import TransformersPolicy
from visenv.policies.vllm import VLLMServerPolicy, sampler

if TYPE_CHECKING:
    from visenv.policies.vllm import VLLMPolicy

pytestmark = [
    pytest.mark.component("vllm", "torch", "transformers", "outlines-core", "trl"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:__array_wrap__:DeprecationWarning"),  # InternVL's processor
]

BOUND = 1e-5
"""Largest difference of log-probabilities in float32; 5e-6 was measured."""

GREEDY = Sampling(0.0, 12)

READ = (
    "lfm2_vl", "glm46v", "qwen2_vl", "qwen3_5", "llava_onevision", "qwen3_vl_moe", "qwen3_5_moe",
)  # fmt: skip
"""Further families whose prompts vLLM's processor reads as visenv does."""


@pytest.fixture(scope="module", params=few(families.IN_VLLM, 1))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def vllm(start: Callable[..., VLLMPolicy], folder: Path) -> VLLMPolicy:
    return start(folder)


@pytest.fixture
def trained(folder: Path) -> TransformersPolicy:
    """Return a policy whose weights a test may change."""
    return TransformersPolicy(folder, threads=1)


@pytest.fixture
def restored(vllm: VLLMPolicy, folder: Path) -> Any:
    """Restore the weights of the engine after a test that changes them."""
    yield
    vllm.load(TransformersPolicy(folder, threads=1).named_weights(), 0)


def test_sampled_log_probabilities_are_those_of_a_stock_forward_pass(
    vllm: Any, trained: Any, folder: Path
) -> None:
    """Check 3 turns with 3 images; vLLM's prompt is compared with ours in every turn."""
    sessions = proof.converse(vllm)
    assert [len(segment.images) for segment in proof.segments_of(sessions)] == [3, 1]
    assert proof.score_differences(trained, folder, sessions).sampled <= BOUND
    found, expected = proof.first_tokens(vllm, sessions[0])
    assert found == expected


def test_greedy_turns_are_those_of_transformers(vllm: Any, trained: Any, exam: Any) -> None:
    """Check conversations with 0 to 3 images that are sampled in one batch."""
    ours, theirs = (exam.play(policy, range(4), sampling=GREEDY) for policy in (vllm, trained))
    for one, other in zip(ours, theirs, strict=True):
        assert one.token_ids.tolist() == other.token_ids.tolist()
        assert one.images == other.images
        assert one.processor == other.processor
        np.testing.assert_allclose(one.logprobs, other.logprobs, rtol=0, atol=BOUND)


def test_load_changes_the_samples_to_those_of_the_trainer(
    vllm: Any, trained: Any, exam: Any, restored: None
) -> None:
    images = exam.images(range(3))
    before = exam.play(vllm, range(3), sampling=GREEDY)
    scale(trained, "", 1.1)
    assert exam.error(trained, before, images) > 1e-2
    vllm.load(trained.named_weights(), 5)
    after = exam.play(vllm, range(3), sampling=GREEDY)
    assert exam.error(trained, after, images) <= BOUND
    assert {version for one in after for version in one.policy_version[one.loss_mask]} == {5}


@pytest.mark.parametrize("place", [0, -1])
def test_weight_that_arrives_as_another_is_noticed(
    vllm: Any, trained: Any, restored: None, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check a vector at either end of the model, of which one belongs to the vision tower."""
    engine = vllm._present.engine
    model = engine._inner.model_executor.driver_worker.worker.model_runner.get_model()
    send = engine.transfer.send

    def spoiled(delivery: Any) -> None:
        send(delivery)
        with torch.inference_mode():
            [weight for weight in model.parameters() if weight.ndim == 1][place][0] += 1

    monkeypatch.setattr(engine.transfer, "send", spoiled)
    with pytest.raises(PolicyError, match="does not hold the weights it was sent"):
        vllm.load(trained.named_weights(), 1)
    assert vllm.stale


def test_interrupted_turn_continues_with_new_weights(
    vllm: Any, trained: Any, talk: Any, restored: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check the prompt of the rest: its images, and the tokens sampled before the update."""
    engine, thread = vllm._present.engine, vllm._present
    step, taken = engine.step, 0
    scale(trained, "", 1.1)
    delivery = vllm.manifest.deliver(trained.named_weights(), engine.dtype, engine.packs)

    def counted() -> Any:
        nonlocal taken
        taken += 1
        ended = step()
        if taken == 5:
            thread._steps.put(lambda: thread._load(delivery, None, 9))
        return ended

    monkeypatch.setattr(engine, "step", counted)
    turns = [talk.shown("a", talk.picture(3, 96, 64), talk.picture(4, 64, 96))]
    ask = TurnRequest("", (), "[0-9]{12}")  # so that it continues after the fifth token
    session, (reply,) = talk.alone(vllm, 4, turns, request=ask, sampling=Sampling(1.0, 40))
    (segment,) = session.segments()
    assert segment.policy_version[segment.loss_mask].tolist() == [0] * 5 + [9] * 8
    assert reply.text.isdigit()
    images = {image.sha256: image for image in session.stream.images}
    scored = trained.score([segment], images).logprobs[0].detach().numpy()[segment.loss_mask]
    recorded = segment.logprobs[segment.loss_mask]
    np.testing.assert_allclose(scored[5:], recorded[5:], rtol=0, atol=BOUND)


def test_stop_strings_and_expressions_end_turns(vllm: Any, trained: Any, exam: Any) -> None:
    ask = TurnRequest("<think>", ("</answer>",), r"[^<]{0,8}</think><answer>[^<]{1,6}</answer>")
    segments = exam.play(vllm, range(3), request=ask, sampling=Sampling(1.0, 60))
    assert exam.error(trained, segments, exam.images(range(3))) <= BOUND
    assert {span.finish_reason for segment in segments for span in segment.turns} == {"stop"}


def test_videos_are_shown_as_frames(vllm: Any, trained: Any, talk: Any) -> None:
    turns = [[Message("user", ("look: ", talk.clip(3, 2, 64, 48), "what?"))]]
    ours, _ = talk.alone(vllm, 0, turns, sampling=GREEDY)
    theirs, _ = talk.alone(trained, 0, turns, sampling=GREEDY)
    assert ours.stream.token_ids == theirs.stream.token_ids
    assert len(ours.stream.images) == 2
    assert not ours.stream.videos


def test_other_tokens_than_the_engines_are_an_error_with_the_family(
    vllm: Any, folder: Path, name: str, talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = vllm.codec.family
    show = family.show

    def longer(item: Any, start: int) -> Any:
        token_ids, shown = show(item, start)
        return [*token_ids, token_ids[-1]], shown._replace(end=shown.end + 1)

    monkeypatch.setattr(family, "show", longer)
    with pytest.raises(PolicyError, match=f"'{name}' differs .* instead of .* same checkpoint"):
        talk.alone(vllm, 0, [talk.shown("a", talk.picture(1))])


# ------------------------------------------------------------------- adapters, and another process


def test_adapter_changes_the_samples_to_those_of_the_trainer(
    start: Callable[..., VLLMPolicy], folder: Path, exam: Any
) -> None:
    """Check that vLLM applies LoRA to the layers that peft names for the family."""
    pytest.importorskip("peft")
    trained = TransformersPolicy(folder, threads=1, lora={"rank": 4, "alpha": 8.0})
    engine = start(folder, lora_rank=4)
    images = exam.images(range(3))
    for seed in (1, 2):
        change_adapter(trained, seed)
        send_adapter(engine, trained, seed, weights=seed == 1)
        segments = exam.play(engine, range(3), sampling=GREEDY)
        assert exam.error(trained, segments, images) <= BOUND
    change_adapter(trained, 3)
    assert exam.error(trained, segments, images) > 1e-2


@pytest.mark.soak
@pytest.mark.timeout(900)  # a server needs time to start
def test_server_samples_as_transformers_before_and_after_an_update(
    folder: Path, trained: Any, exam: Any
) -> None:
    options = SMALL["options"] | ONE_PROCESS
    with closing(VLLMServerPolicy(folder, **SMALL | {"options": options})) as server:
        for version in (0, 1):
            if version:
                scale(trained, "", 0.9)
                server.load(trained.named_weights(), version)
            ours, theirs = (
                exam.play(policy, range(4), sampling=GREEDY) for policy in (server, trained)
            )
            for one, other in zip(ours, theirs, strict=True):
                assert one.token_ids.tolist() == other.token_ids.tolist()
                assert set(one.policy_version[one.loss_mask].tolist()) == {version}
            assert exam.error(trained, ours, exam.images(range(4))) <= BOUND


# ------------------------------------------------------------------------------ without an engine


def conversations(name: str, folder: Path) -> list[Any]:
    return proof.converse(TransformersPolicy(families.build(name, folder), threads=1))


# transformers 5.17 converts a tensor of PyTorch by `numpy.array`.
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("read", few(READ, 2))
def test_prompt_of_a_family_that_the_cpu_build_may_not_compute_is_read_as_ours(
    read: str, tmp_path: Path
) -> None:
    sessions = conversations(read, tmp_path)
    assert [len(session.stream.images) for session in sessions] == [3, 1]
    for prompt in read_by_vllm(tmp_path, sessions):
        assert prompt.found == prompt.expected


@pytest.mark.soak
@pytest.mark.parametrize("filmed", [name for name in test_family_videos.NATIVE if name in READ])
def test_videos_of_a_family_with_tokens_for_them_are_read_as_ours(
    filmed: str, talk: Any, tmp_path: Path
) -> None:
    policy = TransformersPolicy(families.build(filmed, tmp_path), threads=1)
    film = talk.clip(1, 3, 64, 48)
    turns = [
        [Message("user", ("see ", film, " and ", talk.picture(1, 60, 90), " what?"))],
        [Message("user", ("again: ", film, talk.clip(2, 2, 64, 48)))],
    ]
    session, _ = talk.alone(policy, 0, turns)
    assert len(session.stream.videos) == 3
    (prompt,) = read_by_vllm(tmp_path, [session])
    assert prompt.found == prompt.expected


def test_line_breaks_next_to_images_of_gemma_are_an_error(tmp_path: Path) -> None:
    """Check two neighboring images: vLLM joins the line breaks between them to one token."""
    sessions = conversations("gemma3", tmp_path)
    neighbors, single = read_by_vllm(tmp_path, sessions)
    assert single.found == single.expected
    assert neighbors.found != neighbors.expected
    decode = sessions[0]._family._processor.tokenizer.decode
    assert decode(neighbors.found) == decode(neighbors.expected)
    with pytest.raises(PolicyError, match="'gemma3' differs"):
        sampler._require_same(neighbors.expected, neighbors.found, "gemma3")
