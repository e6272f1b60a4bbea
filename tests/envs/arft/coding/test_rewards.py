"""Tests the paper's reward: every cell of its table, sums by hand, and no reward for farming."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reward_terms import unweighted
from visenv.envs.arft.coding.rewards import coding_terms, problem_score
from visenv.envs.arft.coding.world.sources import coding_truth
from visenv.grammar.tags import TagGrammar
from visenv.types import Answered, Event, EventLog, Malformed, Sample, ToolCalled, TurnTaken

GRAMMAR = TagGrammar(("problem", "code"))
SAMPLE = Sample(
    "s", "?", answers=("dark green",), ground_truth=coding_truth(("rotation90", "dark"), ())
)
CLEAN = Sample("s", "?", answers=("7",), ground_truth=coding_truth(("none",), ()))

FORMED = {
    "problem": "<think>a</think><problem>{'x'}</problem>",
    "code": "<think>a</think><code>x</code>",
    "answer": "<think>a</think><answer>b</answer>",
}


def said(kind: str, formed: bool) -> str:
    return FORMED[kind] if formed else FORMED[kind].removeprefix("<think>a</think>")


def named(*labels: str, formed: bool = True) -> list[Event]:
    called = ToolCalled(0, "problem", {}, True, detail={"labels": sorted(labels)})
    return [TurnTaken(0, said("problem", formed), None), called]


def coded(
    status: str = "ok", formed: bool = True, ran: bool = True, readable: bool | None = None
) -> list[Event]:
    detail: dict[str, Any] = {"status": status, "written": status == "ok"} if ran else {}
    if readable is not None:
        detail["readable"] = readable
    return [TurnTaken(0, said("code", formed), None), ToolCalled(0, "code", {}, ran, detail=detail)]


def answered(answer: str, formed: bool = True) -> list[Event]:
    return [TurnTaken(0, said("answer", formed), None), Answered(0, answer)]


def malformed() -> list[Event]:
    return [TurnTaken(0, "hello", None), Malformed(0, "no_action", "")]


def reward(*turns: list[Event], sample: Sample = SAMPLE, by: str = "f1") -> tuple[float, float]:
    log = EventLog([event for turn in turns for event in turn])
    steps, form = coding_terms(GRAMMAR, by).terms()
    return unweighted(steps, log, sample), unweighted(form, log, sample)


# ---------------------------------------------------------------------------- the table

# In a sample of three steps, each step weighs 1/5 and the answer 3/5.


@pytest.mark.parametrize(
    ("labels", "score"),
    [
        (("rotation90", "dark"), 1.0),
        (("dark", "rotation90"), 1.0),  # in any order
        (("rotation90",), 0.5),
        (("dark",), 0.5),  # the public code rewards only the rotation
        (("rotation90", "dark", "blur"), 0.0),  # one of the labels is wrong
        (("rotation90", "blur"), 0.0),
        (("rotation180",), 0.0),
        (("none",), 0.0),
    ],
)
def test_naming_problems(labels: tuple[str, ...], score: float) -> None:
    assert reward(named(*labels)) == pytest.approx((score / 5, 1 / 5))


def test_code_that_finished_is_rewarded() -> None:
    assert reward(coded("ok")) == pytest.approx((1 / 5, 1 / 5))


@pytest.mark.parametrize(
    "status", ["error", "wall", "cpu", "memory", "output", "refused", "crashed"]
)
def test_code_that_did_not_finish_earns_nothing(status: str) -> None:
    """Check every other status; a program with a syntax error also has the status ``error``."""
    assert reward(coded(status)) == (0.0, 0.0)


def test_code_that_was_not_run_earns_nothing() -> None:
    assert reward(coded(ran=False)) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("answer", "f1", "exact"),
    # "very dark green" shares 2 of its 3 words with the 2 of "dark green": 2·2/5
    [
        ("dark green", 1.0, 1.0),
        ("Dark Green.", 1.0, 1.0),
        ("very dark green", 0.8, 0.0),
        ("", 0, 0),
    ],
)
def test_answers(answer: str, f1: float, exact: float) -> None:
    assert reward(answered(answer)) == pytest.approx((f1 * 3 / 5, 3 / 5))
    assert reward(answered(answer), by="em") == pytest.approx((exact * 3 / 5, 3 / 5))


@pytest.mark.parametrize(
    ("turn", "accuracy"),
    [
        (named("rotation90", "dark", formed=False), 1 / 5),
        (coded(formed=False), 1 / 5),
        (answered("dark green", formed=False), 3 / 5),
    ],
)
def test_turn_without_a_thought_has_no_form(turn: list[Event], accuracy: float) -> None:
    assert reward(turn) == pytest.approx((accuracy, 0.0))


def test_malformed_turn_earns_nothing() -> None:
    assert reward(malformed()) == (0.0, 0.0)


# ---------------------------------------------------------------------------- episodes by hand


def test_best_episodes() -> None:
    whole = (named("rotation90", "dark"), coded(), answered("dark green"))
    assert reward(*whole) == pytest.approx((1.0, 1.0))
    clean = (named("none"), answered("7"))
    assert reward(*clean, sample=CLEAN) == pytest.approx((1.0, 1.0))


def test_code_for_a_sound_image_takes_no_step() -> None:
    # 1/3 for the label, nothing for the code, 2/3 for the answer
    assert reward(named("none"), coded(), sample=CLEAN) == pytest.approx((1 / 3, 1 / 3))


def test_labels_after_the_first_do_not_count() -> None:
    assert reward(named("dark"), named("rotation90", "dark")) == pytest.approx((0.5 / 5, 1 / 5))
    assert reward(named("rotation90", "dark"), named("dark")) == pytest.approx((1 / 5, 1 / 5))
    # the second turn earns no form reward in place of the first one
    assert reward(named("blur", formed=False), named("rotation90", "dark")) == (0.0, 0.0)


def test_labels_that_were_refused_are_no_first_ones() -> None:
    refused: list[Event] = [
        TurnTaken(0, FORMED["problem"], None),
        ToolCalled(0, "problem", {}, False, detail={}),
    ]
    assert reward(refused, named("rotation90", "dark")) == pytest.approx((1 / 5, 1 / 5))


def test_guessing_all_labels_earns_no_more_than_one_guess() -> None:
    """Check the blind policy that earned 1.549 of 2: three labels, an empty program, a guess."""
    singles = ["dark", "blur", "noise", "overexposure", "rotation90", "rotation180", "crop", "none"]
    several = one = 0.0
    for label in singles:
        sample = Sample("s", "?", answers=("7",), ground_truth=coding_truth((label,), ()))
        several += sum(reward(*(named(guess) for guess in singles[:3]), sample=sample))
        one += sum(reward(named(singles[0]), sample=sample))
    assert several == pytest.approx(one)


def test_episode_with_faults() -> None:
    turns = (malformed(), named("rotation90"), coded(formed=False), answered("green"))
    # half of the labels 0.5/5, code 1/5, answer with 1 word of 1 and of 2: 2/3 of 3/5; form of the
    # labels and of the answer: 1/5 + 3/5
    assert reward(*turns) == pytest.approx((0.1 + 0.2 + 0.4, 0.8))


# ---------------------------------------------------------------------------- procedural samples


def procedural(sample: Sample) -> Sample:
    return replace(sample, ground_truth=replace(sample.ground_truth, legibility="text", capital=48))


DRAWN, DRAWN_CLEAN = procedural(SAMPLE), procedural(CLEAN)
LABELS = named("rotation90", "dark")


def test_program_that_makes_nothing_readable_earns_no_more_than_the_answer() -> None:
    alone = reward(answered("dark green"), sample=DRAWN)
    assert alone == pytest.approx((3 / 5, 3 / 5))
    idle = coded(readable=False)
    assert reward(LABELS, idle, answered("dark green"), sample=DRAWN) == pytest.approx(alone)
    assert reward(LABELS, answered("dark green"), sample=DRAWN) == pytest.approx(alone)


def test_readable_image_pays_the_label_and_the_program() -> None:
    repaired = coded(readable=True)
    assert reward(LABELS, sample=DRAWN) == (0, 0)
    assert reward(LABELS, coded(readable=False), sample=DRAWN) == (0, 0)
    # 1/5 for the label and 1/5 for the program, when the image is readable
    assert reward(LABELS, coded(readable=False), repaired, sample=DRAWN) == pytest.approx(
        (0.4, 0.4)
    )
    assert reward(LABELS, repaired, answered("dark green"), sample=DRAWN) == pytest.approx((1, 1))
    # a program with an error after it wrote the image has repaired it, too
    assert reward(coded("error", readable=True), sample=DRAWN) == pytest.approx((0.2, 0.2))


def test_label_of_a_sound_image_is_paid_with_the_exact_answer() -> None:
    assert reward(named("none"), sample=DRAWN_CLEAN) == (0, 0)
    assert reward(named("none"), answered("8"), sample=DRAWN_CLEAN) == pytest.approx((0, 2 / 3))
    assert reward(named("none"), answered("7"), sample=DRAWN_CLEAN) == pytest.approx((1, 1))
    truth = replace(DRAWN_CLEAN.ground_truth, options=("5", "6", "7", "8"))
    four = replace(DRAWN_CLEAN, ground_truth=truth)
    # the label weighs 1/3, times -1/3 for one of the three wrong answers
    wrong = reward(named("none"), answered("8"), sample=four)
    assert wrong == pytest.approx((-1 / 9, 2 / 3 - 1 / 9))
    assert reward(named("none"), answered("7"), sample=four) == pytest.approx((1, 1))


# ---------------------------------------------------------------------------- farming

TURNS = st.sampled_from(
    [
        named("rotation90", "dark"),
        named("dark"),
        named("blur", formed=False),
        coded(),
        coded("error", formed=False),
        malformed(),
    ]
)


def total(turns: Sequence[list[Event]]) -> float:
    return sum(reward(*turns))


@given(st.lists(TURNS, max_size=7), st.sampled_from(["dark green", "green", "wrong"]))
def test_farming_turns_earns_less_than_answering(turns: list[list[Event]], answer: str) -> None:
    assert total(turns) < total([answered("dark green")])
    assert total(turns) < total([*turns, answered(answer)]) <= 2 + 1e-9
    assert total(turns * 2) == pytest.approx(total(turns)), "no step is paid twice"


@pytest.mark.parametrize(
    ("labels", "problems", "score"),
    [
        (["blur"], ["blur"], 1.0),
        (["blur"], ["blur", "noise", "dark"], 1 / 3),
        ([], ["blur"], 0.0),
        (["none"], ["none"], 1.0),
    ],
)
def test_share_of_problems_named(labels: list[str], problems: list[str], score: float) -> None:
    assert problem_score(labels, problems) == pytest.approx(score)
