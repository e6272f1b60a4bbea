"""Tests the reward of plain questions: every cell of its table, and calls without a reward."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import visenv  # noqa: F401 - registers the environments
from visenv.env import VisEnv
from visenv.types import Image, QuestionTruth, Sample

SIDE = 400
PICTURE = Image.from_pixels(np.full((SIDE, SIDE, 3), 90, np.uint8))
NEAR = [200, 200, 500, 500]
"""A box around the deciding box, in thousandths."""


class Graded:
    """Provides one sample; the score of an answer is the number in the answer."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample

    def sample(self, rng: np.random.Generator) -> Sample:
        return self._sample

    def score(self, answer: str, sample: Sample, compat: None = None) -> float:
        return float(answer)


def question(**truth: Any) -> Sample:
    return Sample("1", "How much?", (PICTURE,), ("1",), "", QuestionTruth(**truth))


BOXED = question(target_box=(80, 80, 200, 200), detail_box=(100, 100, 160, 160))


def zoom(box: Sequence[int], image: str = "original_image") -> str:
    arguments = {"image": image, "bbox_2d": box}
    return call("image_zoom_in_tool", arguments)


def call(name: str, arguments: dict[str, Any]) -> str:
    body = json.dumps({"name": name, "arguments": arguments})
    return f"<think>look</think><tool_call>{body}</tool_call>"


def answer(text: str) -> str:
    return f"<think>so</think><answer>{text}</answer>"


def paid(*turns: str, sample: Sample = BOXED, **options: Any) -> float:
    env = gym.make("visenv/ArmVQA-v0", data=Graded(sample), **options)
    env.reset(seed=0)
    total = 0.0
    for turn in turns:
        _, reward, *_ = env.step(turn)
        total += float(reward)
    return total


# Calculated by hand with R_f 0.3, R_try 0.1, R_a 0.7, R_succ 0.5, and the score 0, 0.4 or 1.
TABLE = {
    ("stage1", "none"): (0.3, 0.3, 0.3),
    ("stage1", "vain"): (0.3, 0.3, 0.3),
    ("stage1", "shown"): (0.4, 0.4, 0.4),
    ("stage2", "none"): (0.3, 0.58, 1.0),
    ("stage2", "vain"): (0.3, 0.58, 1.0),
    ("stage2", "shown"): (0.4, 0.84, 1.5),
    ("accuracy_format", "none"): (0.3, 0.58, 1.0),
    ("accuracy_format", "vain"): (0.3, 0.58, 1.0),
    ("accuracy_format", "shown"): (0.3, 0.58, 1.0),
    ("fixed_bonus", "none"): (0.3, 0.58, 1.0),
    ("fixed_bonus", "vain"): (0.3, 0.58, 1.0),
    ("fixed_bonus", "shown"): (0.8, 1.08, 1.5),
}
CALLS = {"none": (), "vain": (zoom([900, 900, 1000, 1000]),), "shown": (zoom(NEAR),)}


@pytest.mark.parametrize(("reward", "calls"), TABLE)
def test_reward_table_of_answers(reward: str, calls: str) -> None:
    for score, expected in zip(("0", "0.4", "1"), TABLE[reward, calls], strict=True):
        got = paid(*CALLS[calls], answer(score), reward=reward)
        assert got == pytest.approx(expected, abs=1e-9), score


@pytest.mark.parametrize(
    "useless",
    [
        zoom([0, 0, 70, 70]),  # a corner
        zoom([0, 0, 1000, 1000]),  # the whole image
        zoom([0, 0, 1000, 900]),  # nearly the whole image
        zoom([200, 200, 300, 300]),  # a part of the deciding box
        zoom([500, 0, 200, 300]),  # corners in the wrong order: the call fails
        call("image_zoom_in_tool", {"image": "original_image"}),
    ],
)
def test_useless_call_earns_nothing_before_the_right_answer(useless: str) -> None:
    assert paid(useless, answer("1")) == pytest.approx(1.0)


def test_tool_that_is_not_there_costs_its_share_of_the_format() -> None:
    assert paid(call("magic", {}), answer("0")) == pytest.approx(0.15)
    assert paid(call("magic", {}), answer("1"), reward="fixed_bonus") == pytest.approx(0.85)


def test_crop_of_a_crop_shows_the_evidence_in_native_pixels() -> None:
    # The first crop is too large to count. The second crop shows the deciding region in it.
    turns = (zoom([0, 0, 750, 750]), zoom([250, 250, 700, 700], "observation_1"))
    assert paid(*turns, answer("1")) == pytest.approx(1.5)
    assert paid(turns[0], answer("1")) == pytest.approx(1.0)


def test_crop_of_the_image_counts_without_a_known_box() -> None:
    assert paid(zoom([0, 0, 70, 70]), answer("1"), sample=question()) == pytest.approx(1.5)


def test_boxes_must_all_be_shown() -> None:
    corners = ((0, 0, 40, 40), (360, 360, 400, 400))
    sample = question(target_boxes=corners, target_box=(0, 0, 400, 400))
    first, second = zoom([0, 0, 200, 200]), zoom([800, 800, 1000, 1000])
    assert paid(first, answer("1"), sample=sample) == pytest.approx(1.0)
    assert paid(first, second, answer("1"), sample=sample) == pytest.approx(1.5)


def test_box_that_fills_the_image_needs_no_crop_of_its_own() -> None:
    sample = question(target_box=(20, 20, 380, 380))
    assert paid(zoom([25, 25, 975, 975]), answer("1"), sample=sample) == pytest.approx(1.5)
    assert paid(answer("1"), sample=sample) == pytest.approx(1.0)


def test_better_answer_is_never_worth_less() -> None:
    for reward in ("stage1", "stage2", "accuracy_format", "fixed_bonus"):
        for calls in CALLS.values():
            worth = [paid(*calls, answer(str(k / 10)), reward=reward) for k in range(11)]
            assert worth == sorted(worth)


@pytest.mark.parametrize("options", [{"compat": "arm"}, {"call_rule": "published"}])
def test_published_rule_takes_any_result_for_a_success(options: dict[str, Any]) -> None:
    assert paid(zoom([0, 0, 70, 70]), answer("1"), **options) == pytest.approx(1.5)


def test_failed_call_counts_as_an_attempt_under_the_published_rule() -> None:
    failing = zoom([500, 0, 200, 300])
    for score, expected in (("0", 0.4), ("0.4", 0.64), ("1", 1.0)):
        got = paid(failing, answer(score), call_rule="published")
        assert got == pytest.approx(expected)


def test_outcome_is_the_bare_score() -> None:
    assert paid(zoom(NEAR), answer("0.4"), reward="outcome") == pytest.approx(0.4)


# ---------------------------------------------------------------------------- documents


def document_paid(*calls: tuple[str, dict[str, Any]], right: bool = True) -> float:
    env = gym.make("visenv/ArmDocVQA-v0")
    base = env.unwrapped
    assert isinstance(base, VisEnv)
    env.reset(seed=5)
    sample = base.sample
    truth: Any = sample.ground_truth
    fill = {"THIS": truth.document, "EVIDENCE": truth.evidence_pages[0], "OTHER": 1}
    assert truth.evidence_pages == (truth.evidence_pages[0],) != (1,)
    for name, arguments in calls:
        given = {key: fill.get(value, value) for key, value in arguments.items()}
        env.step(call(name, given))
    _, reward, *_ = env.step(answer(sample.answers[0] if right else "no"))
    return float(reward)


INDEX, QUERY = "doc_page_retrieval_by_index", "doc_page_retrieval_by_query"


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([], 1.0),
        ([(INDEX, {"filename": "THIS", "image_idx": "EVIDENCE"})], 1.5),
        ([(INDEX, {"filename": "THIS", "image_idx": "OTHER"})], 1.0),
        ([(INDEX, {"filename": "report-9999", "image_idx": 1})], 1.0),
        ([(INDEX, {"filename": "THIS", "image_idx": 99})], 1.0),
        ([(QUERY, {"filename": "THIS", "query": "qqqq zzzz"})], 1.0),
    ],
)
def test_pages_that_do_not_hold_the_answer_earn_nothing(
    calls: list[tuple[str, dict[str, Any]]], expected: float
) -> None:
    assert document_paid(*calls) == pytest.approx(expected)
