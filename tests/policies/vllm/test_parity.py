"""Tests that vLLM samples like transformers, with the log-probabilities of the trainer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from visenv.types import Sampling, TurnRequest

pytestmark = pytest.mark.component("vllm", "torch", "transformers", "outlines-core")

GREEDY = Sampling(0.0, 12)
BOUND = 1e-5
"""Largest difference of log-probabilities in float32; 3e-6 was measured."""


def test_greedy_turns_are_token_identical(pair: Any, exam: Any) -> None:
    vllm, transformers = pair
    ours = exam.play(vllm, range(12), sampling=GREEDY)
    theirs = exam.play(transformers, range(12), sampling=GREEDY)
    assert sorted({len(segment.images) for segment in ours}) == [0, 1, 2, 3]
    assert {len(segment.turns) for segment in ours} == {2, 3}
    for one, other in zip(ours, theirs, strict=True):
        assert one.token_ids.tolist() == other.token_ids.tolist()
        assert one.turns == other.turns
        assert one.images == other.images
        np.testing.assert_allclose(one.logprobs, other.logprobs, rtol=0, atol=BOUND)


@pytest.mark.parametrize("temperature", [1.0, 0.7, 1.5])
def test_sampled_log_probabilities_are_those_of_score(
    pair: Any, exam: Any, temperature: float
) -> None:
    vllm, transformers = pair
    segments = exam.play(vllm, range(8), sampling=Sampling(temperature, 12))
    assert {segment.temperature for segment in segments} == {temperature}
    assert exam.error(transformers, segments, exam.images(range(8))) < BOUND
    assert all((segment.logprobs[segment.loss_mask] < 0).all() for segment in segments)


@pytest.mark.parametrize("roles", [("user", "user"), ("user", "tool"), ("system", "tool")])
def test_images_may_come_in_any_role(pair: Any, exam: Any, talk: Any, roles: Any) -> None:
    from visenv.types import Message

    vllm, transformers = pair
    pictures = [talk.picture(k, 64 + 16 * k, 96) for k in range(3)]
    first = [Message(roles[0], ("a ", *pictures[:2], " b"))]
    if roles[0] == "system":
        first.append(Message("user", ("go on",)))
    turns = [first, [Message(roles[1], ("<result>", pictures[2], "</result>"))]]
    ours, _ = talk.alone(vllm, 3, turns, sampling=GREEDY)
    theirs, _ = talk.alone(transformers, 3, turns, sampling=GREEDY)
    (one,), (other,) = ours.segments(), theirs.segments()
    assert one.token_ids.tolist() == other.token_ids.tolist()
    images = {picture.sha256: picture for picture in pictures}
    assert exam.error(transformers, [one], images) < BOUND


@pytest.mark.parametrize("stop", [("</answer>",), ()])
def test_constrained_tokens_are_recorded_as_score_sees_them(
    pair: Any, exam: Any, stop: tuple[str, ...]
) -> None:
    vllm, transformers = pair
    ask = TurnRequest("<think>", stop, r"[^<]{0,8}</think><answer>[^<]{1,6}</answer>")
    segments = exam.play(vllm, range(6), request=ask, sampling=Sampling(1.0, 60))
    assert exam.error(transformers, segments, exam.images(range(6))) < BOUND
    spans = [(segment, span) for segment in segments for span in segment.turns]
    ends = [segment.token_ids[span.end - 1] == vllm.codec.end_id for segment, span in spans]
    assert ends == [not stop] * len(spans)
    if not stop:  # only the end is allowed after the last tag, so its probability is 1
        assert {float(segment.logprobs[span.end - 1]) for segment, span in spans} == {0.0}


def test_limits_of_pixels_hold_in_the_engine_too(
    start: Any, qwen3_folder: Any, exam: Any, talk: Any
) -> None:
    """Check turns with resized images; another size in the engine would be a prompt error."""
    from visenv.policies.transformers import TransformersPolicy

    limits: Any = {"min_pixels": 48 * 48, "max_pixels": 80 * 80}
    vllm = start(qwen3_folder, **limits)
    transformers = TransformersPolicy(qwen3_folder, threads=1, **limits)
    shown = [talk.shown("a", talk.picture(1, 200, 160)), talk.shown("b", talk.picture(2, 20, 20))]
    ours, _ = talk.alone(vllm, 0, shown, sampling=GREEDY)
    theirs, _ = talk.alone(transformers, 0, shown, sampling=GREEDY)
    (one,), (other,) = ours.segments(), theirs.segments()
    # 200 x 160 is sqrt(32000 / 6400) = 2.236 times too large per side: 89.4 x 71.6, rounded down to
    # units of two patches of 8 pixels, is 80 x 64. 20 x 20 is too small: 48 x 48.
    assert [(span.patches, span.length) for span in one.images] == [(8 * 10, 4 * 5), (6 * 6, 3 * 3)]
    assert one.token_ids.tolist() == other.token_ids.tolist()
    vllm.close()
