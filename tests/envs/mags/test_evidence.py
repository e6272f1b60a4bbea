"""Tests the rule that pays for shown signs, with values calculated by hand."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reward_terms import unweighted
from visenv.envs.mags.evidence import (
    coverage,
    covers,
    knows_evidence,
    over_chance,
    shown_evidence,
)
from visenv.envs.mags.ground_truth import MagsTruth
from visenv.envs.mags.rewards import RewardSettings, reward_terms
from visenv.errors import ConfigurationError
from visenv.types import Answered, EventLog, QuestionTruth, Sample, ToolCalled, TurnTaken

SIGNS = ((0, 0, 100, 100), (200, 0, 300, 100), (400, 0, 500, 100), (600, 0, 700, 100))
OPTIONS = tuple(str(number) for number in range(5))
SCENE = Sample(
    "s", "How many?", (), ("2",), "counting", MagsTruth(options=OPTIONS, evidence_boxes=SIGNS)
)
WORDS = "a b c d e f g h i j k l m n o p q r s"  # 19 different words: both factors are 1
ELSEWHERE = (800, 800, 900, 900)


def episode(*crops: tuple[int, int, int, int] | None, answer: str = "2") -> EventLog:
    """Return a log of an episode with these crops; None is a rejected box."""
    detail = {
        "written": len(crops),
        "valid": sum(crop is not None for crop in crops),
        "duplicates": 0,
        "boxes": [{"box": None if crop is None else [*crop]} for crop in crops],
    }
    text = f"<think>{WORDS} <zoom>[[1, 2, 30, 40]]</zoom></think>"
    return EventLog(
        [
            TurnTaken(0, text, WORDS),
            ToolCalled(0, "zoom", {}, True, "", (), detail),
            TurnTaken(1, f"<rethink>so</rethink><answer>{answer}</answer>", "so"),
            Answered(1, answer),
        ]
    )


def paid(log: EventLog, sample: Sample = SCENE, **settings: Any) -> tuple[float, float]:
    """Return the terms ``zoom_format`` and ``zoom``."""
    chosen = {"stage": "stage2", "zoom_rule": "evidence", **settings}
    terms = {each.name: each for each in reward_terms(RewardSettings(**chosen))}
    return unweighted(terms["zoom_format"], log, sample), unweighted(terms["zoom"], log, sample)


@pytest.mark.parametrize(
    ("crops", "share", "misses", "grounding"),
    [
        (SIGNS, 1, 0, 1),
        (SIGNS[:2], 0.5, 0, 0.5),
        ((*SIGNS, ELSEWHERE, ELSEWHERE), 1, 2, 0.9),
        ((*SIGNS, None), 1, 1, 0.95),
        ((ELSEWHERE,) * 16, 0, 16, 0),
        ((SIGNS[0],) * 4, 0.25, 0, 0.25),  # the same sign again shows nothing new
        (((0, 0, 300, 100),), 0.5, 0, 0.5),  # one crop with two signs
        (((0, 0, 100, 89),), 0, 1, 0),  # less than 90 % of the sign
    ],
)
def test_boxes_are_paid_for_the_signs_that_they_show(
    crops: tuple[Any, ...], share: float, misses: int, grounding: float
) -> None:
    log = episode(*crops)
    shown = shown_evidence(log, SCENE)
    assert shown == (share, misses)
    assert shown.grounding == pytest.approx(grounding)
    assert paid(log) == pytest.approx((grounding, grounding))
    wrong = episode(*crops, answer="3")  # one of five answers is right: -1/4
    assert paid(wrong) == pytest.approx((-grounding / 4, -grounding / 4))


@given(
    st.lists(
        st.tuples(*[st.integers(0, 900)] * 2).map(lambda at: (*at, at[0] + 100, at[1] + 100)),
        max_size=16,
    )
)
def test_guess_gains_nothing_by_any_boxes(crops: list[tuple[int, int, int, int]]) -> None:
    found = [paid(episode(*crops, answer=answer)) for answer in OPTIONS]
    assert sum(zoomed for zoomed, _ in found) == pytest.approx(0, abs=1e-9)
    assert sum(zoom for _, zoom in found) == pytest.approx(0, abs=1e-9)
    assert max(max(pair) for pair in found) <= 1


def test_other_rules_stages_and_samples_are_paid_by_valid_boxes() -> None:
    log = episode(*[ELSEWHERE] * 2)
    assert paid(log) == (0, 0)
    assert paid(log, zoom_rule="valid") == (1, 1)  # two boxes, two counted objects
    assert paid(log, compat="paper") == (1, 1)
    assert paid(log, stage="stage1") == (1, 1)
    row = Sample("r", "How many?", (), ("2",), "counting", QuestionTruth(target_boxes=SIGNS[:2]))
    assert not knows_evidence(row)
    assert paid(log, row) == (1, 1)


def test_answer_is_compared_with_chance() -> None:
    assert [over_chance(episode(answer=text), SCENE) for text in ("2", "3")] == [1, -0.25]
    unanswered = EventLog([*episode(*SIGNS)][:2])
    assert over_chance(unanswered, SCENE) == -0.25
    assert coverage([], ()) == 0
    assert covers((0, 0, 100, 90), SIGNS[0])


def test_default_of_scenes_is_evidence_and_compat_needs_valid_boxes() -> None:
    env = gym.make("visenv/MagsZoom-v0", magnifier="none", kinds=["counting"])
    base: Any = env.unwrapped
    env.reset(seed=0)
    _, _, _, _, _ = env.step(base.grammar.compose(base.oracle_turn()))
    *_, info = env.step("<rethink>so</rethink><answer>none</answer>")
    signs = len(base.sample.ground_truth.options) - 1
    assert info["step"].terms["zoom"] == pytest.approx(-1 / signs)
    with pytest.raises(ConfigurationError, match="valid"):
        gym.make("visenv/MagsZoom-v0", magnifier="none", compat="paper", zoom_rule="evidence")
