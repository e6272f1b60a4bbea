"""Tests rewards of steps: matching, time of payment, and no reward for farming."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reward_terms import unweighted
from visenv.env import VisEnv
from visenv.envs.arft.rewards.steps import (
    ReferenceStep,
    StepRewardWrapper,
    StepScore,
    StepTerms,
    by_turn,
    reference_steps,
)
from visenv.errors import EpisodeOverError, ServiceError
from visenv.rewards import RewardContext, RewardTerm
from visenv.testing import toy
from visenv.types import Aborted, Answered, Event, EventLog, Sample, ToolCalled, TurnTaken

ADD = "<tool>\nname: add\namount: 3\n</tool>"
SAMPLE = Sample("s", "?", answers=("1",))

# ---------------------------------------------------------------------------- weights


@pytest.mark.parametrize(
    ("before", "weights"),
    [
        (0, [1.0]),
        (1, [1 / 3, 2 / 3]),
        (2, [1 / 5, 1 / 5, 3 / 5]),
        (3, [1 / 7, 1 / 7, 1 / 7, 4 / 7]),
    ],
)
def test_answer_weighs_one_step_more_than_all_before_it(before: int, weights: list[float]) -> None:
    steps = reference_steps([("search", place) for place in range(before)], "gold")
    assert [step.weight for step in steps] == pytest.approx(weights)
    assert sum(step.weight for step in steps) == pytest.approx(1)
    assert steps[-1] == ReferenceStep("answer", steps[-1].weight, "gold")
    assert [step.truth for step in steps[:-1]] == list(range(before))


# ---------------------------------------------------------------------------- matching

Scores = Sequence[Sequence[float | None]]
"""Accuracy by turn and by step."""


def log_of(scores: Scores, formed: Sequence[bool]) -> EventLog:
    events: list[Event] = []
    for turn, (row, form) in enumerate(zip(scores, formed, strict=True)):
        events.append(TurnTaken(turn, "good" if form else "bad", None))
        events.append(ToolCalled(turn, "t", {"scores": list(row)}, True))
    return EventLog(events)


def accuracy(events: Sequence[Event], step: ReferenceStep, sample: Sample) -> float | None:
    called = events[1]
    assert isinstance(called, ToolCalled)
    score: float | None = called.arguments["scores"][step.truth]
    return score


def terms_of(weights: Sequence[float]) -> StepTerms:
    steps = [ReferenceStep("t", weight, place) for place, weight in enumerate(weights)]
    return StepTerms(lambda _: steps, accuracy, lambda text: text == "good")


def test_steps_are_rewarded_once_and_turns_take_one_step_each() -> None:
    terms = terms_of([0.5, 0.5])
    # Both turns fit the first step best, but only the first turn fits the second step at all: turn
    # 0 -> step 1 (0.5·0.6), turn 1 -> step 0 (0.5·0.8), sum 0.7. A greedy matching gives 0.5·0.9
    # alone.
    log = log_of([[0.9, 0.6], [0.8, None]], [True, True])
    assert terms.worth(log, SAMPLE) == pytest.approx(StepScore(0.7, 1.0))
    # A repeated turn is matched with one step only.
    again = log_of([[0.9, None]] * 5, [True] * 5)
    assert terms.worth(again, SAMPLE) == pytest.approx(StepScore(0.45, 0.5))


def test_format_is_rewarded_for_the_turns_that_take_a_step() -> None:
    terms = terms_of([0.5, 0.5])
    # accuracy 1.0 without form is worth 0.5·(1 + 0); accuracy 0.3 with form 0.5·(0.3 + 1)
    log = log_of([[1.0, None], [0.3, None]], [False, True])
    assert terms.worth(log, SAMPLE) == pytest.approx(StepScore(0.15, 0.5))
    assert terms.worth(log_of([[None, None]], [True]), SAMPLE) == StepScore(0.0, 0.0)
    assert terms.worth(EventLog(), SAMPLE) == StepScore(0.0, 0.0)


def test_terms_are_its_two_parts() -> None:
    log = log_of([[0.3, 0.2]], [True])
    parts = {
        term.name: (term.weight, unweighted(term, log, SAMPLE)) for term in terms_of([1, 0]).terms()
    }
    assert parts == {"steps": (1.0, pytest.approx(0.3)), "format": (1.0, 1.0)}


SCORE = st.none() | st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
TABLES = st.integers(1, 3).flatmap(
    lambda steps: st.lists(
        st.tuples(st.lists(SCORE, min_size=steps, max_size=steps), st.booleans()), max_size=5
    ).map(lambda turns: (steps, turns))
)


def best_by_trying_all(turns: Sequence[tuple[list[float | None], bool]], steps: int) -> float:
    """Return the largest score over all assignments of turns to steps, at most one turn each."""
    places: list[int | None] = [*range(len(turns)), *[None] * steps]
    return max(
        sum(
            (score + formed) / steps
            for step, place in enumerate(chosen)
            if place is not None
            for row, formed in [turns[place]]
            if (score := row[step]) is not None
        )
        for chosen in permutations(places, steps)
    )


@given(TABLES)
def test_matching_is_the_best_one(
    table: tuple[int, list[tuple[list[float | None], bool]]],
) -> None:
    steps, turns = table
    terms = terms_of([1 / steps] * steps)
    worths = []
    for count in range(len(turns) + 1):
        rows = turns[:count]
        log = log_of([row for row, _ in rows], [formed for _, formed in rows])
        worths.append(sum(terms.worth(log, SAMPLE)))
    assert worths[-1] == pytest.approx(best_by_trying_all(turns, steps))
    assert worths == sorted(worths), "a further turn never takes anything back"
    assert worths[-1] <= 2 + 1e-9


def test_events_are_cut_at_their_turns() -> None:
    first, second = TurnTaken(0, "a", None), TurnTaken(1, "b", None)
    answered = Answered(1, "1")
    assert by_turn(EventLog([first, second, answered])) == [[first], [second, answered]]


# ---------------------------------------------------------------------------- farming

KINDS = ("problem", "code", "answer")
TURN = st.tuples(st.sampled_from(KINDS), st.sampled_from([0.0, 0.5, 1.0]), st.booleans())


def coding_log(turns: Sequence[tuple[str, float, bool]]) -> EventLog:
    """Return the log of turns with these kinds, accuracies and forms."""
    events: list[Event] = []
    for place, (kind, score, formed) in enumerate(turns):
        events.append(TurnTaken(place, "good" if formed else "bad", None))
        events.append(ToolCalled(place, kind, {"score": score}, True))
    return EventLog(events)


def kind_accuracy(events: Sequence[Event], step: ReferenceStep, sample: Sample) -> float | None:
    called = events[1]
    assert isinstance(called, ToolCalled)
    return called.arguments["score"] if called.tool == step.kind else None


@given(st.integers(0, 4), st.lists(TURN, max_size=6), st.sampled_from([0.0, 1.0]))
def test_farming_turns_earns_less_than_answering(
    before: int, turns: list[tuple[str, float, bool]], right: float
) -> None:
    """Check that turns without an answer earn less than one right answer, and any answer adds."""
    steps = reference_steps(
        [(kind, None) for kind in (KINDS * 2)[:before] if kind != "answer"], None
    )
    terms = StepTerms(lambda _: steps, kind_accuracy, lambda text: text == "good")

    def worth(turns: list[tuple[str, float, bool]]) -> float:
        return sum(terms.worth(coding_log(turns), SAMPLE))

    farmed = [turn for turn in turns if turn[0] != "answer"]
    assert worth(farmed) < worth([("answer", 1.0, True)])
    assert worth(farmed) < worth([*farmed, ("answer", right, True)])
    assert worth(farmed * 3) == pytest.approx(worth(farmed * 2)), "no step comes three times"


# ---------------------------------------------------------------------------- the wrapper


def calls(context: RewardContext) -> float:
    return float(len(context.log.tool_calls))


def judge_is_down(context: RewardContext) -> float:
    if context.log.tool_calls:
        raise ServiceError("encoder", "no reply")
    return 1.0


def paying(score: Any, **options: Any) -> StepRewardWrapper:
    env: Any = toy.make(**options)
    return StepRewardWrapper(env.env, [RewardTerm("calls", 0.5, score)])


def test_steps_reward_the_increase_of_the_terms() -> None:
    env = paying(calls)
    for _ in range(2):  # the reward of the second episode starts at zero
        env.reset(seed=0)
        results = [env.step(turn) for turn in (ADD, "hm", ADD, "<answer>1</answer>")]
        assert [reward for _, reward, *_ in results] == [0.5, 0.0, 0.5, 0.0]
        assert [info["step"].terms["calls"] for *_, info in results] == [1.0, 1.0, 2.0, 2.0]
        assert all(type(reward) is float for _, reward, *_ in results)


def test_term_that_cannot_be_computed_ends_the_episode_where_it_is() -> None:
    env = paying(judge_is_down)
    env.reset(seed=0)
    assert env.step("hm")[1] == 0.5
    observation, reward, terminated, truncated, info = env.step(ADD)
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert dict(observation) == {"text": "", "images": ()}
    assert info["aborted"] == "encoder: no reply"
    assert info["step"].request is None
    assert info["step"].events[-1] == Aborted(1, "encoder", "no reply")
    with pytest.raises(EpisodeOverError):
        env.step(ADD)
    env.reset(seed=0)
    assert env.step("hm")[1] == 0.5


def test_wrapper_raises_if_aborts_are_raised() -> None:
    env = paying(judge_is_down, on_abort="raise")
    env.reset(seed=0)
    with pytest.raises(ServiceError):
        env.step(ADD)


def test_aborted_step_of_the_environment_has_no_reward() -> None:
    env = paying(calls, trouble=True)
    env.reset(seed=0)
    _, reward, _, truncated, info = env.step("<tool>\nname: trouble\nkind: service\n</tool>")
    assert (reward, truncated, info["aborted"]) == (0.0, True, "search: the server is down")


def test_top_is_that_of_the_terms() -> None:
    env: gym.Env[Any, str] = paying(calls)
    assert isinstance(env, StepRewardWrapper)
    assert env.top == 0.5
    assert isinstance(env.unwrapped, VisEnv)
