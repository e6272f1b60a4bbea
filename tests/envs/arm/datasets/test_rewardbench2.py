"""Tests the Ties score, with each part calculated by hand."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.envs.arm.datasets.rewardbench2 import (
    RatedPrompt,
    RewardBench2,
    TiesScore,
    place_of_chosen,
    rating_of,
    ties_score,
)
from visenv.envs.arm.ground_truth import Tie
from visenv.errors import DataError, UnknownNameError
from visenv.types import Answered, Episode, Failure, Message, Turn


def test_ties_of_one_pair_by_hand() -> None:
    # Reference: right 9, wrong 4 and 6: gap 9 - 6 = 3 > 0, so ref = 1.
    # Tied: right 8 and 7, wrong 5: spread 8 - 7 = 1, gap 7 - 5 = 2 > 0, so tied = 1.
    # margin: 2 > 1 gives 1. hard: min(2, 3) = 2 > 1 gives 1. fine: tanh(2 / 1 - 1) = tanh(1).
    score = ties_score([RatedPrompt("ref:7", [9, 4, 6], 1), RatedPrompt("tied:7", [8, 7, 5], 2)])
    assert score == TiesScore(1.0, 1.0, 1.0, 1.0, math.tanh(1.0))
    # 0.3 + 0.3 + 0.2 + 0.2 + 0.01 x 0.761594 = 1.00761594
    assert score.total == pytest.approx(1.00761594, abs=1e-8)


def test_ties_of_two_pairs_by_hand() -> None:
    prompts = [
        # Gap 5 - 5 = 0 does not count as a win: ref 0.
        RatedPrompt("ref:1", [5, 5], 1),
        # Spread 9 - 6 = 3, gap 6 - 4 = 2: tied is 1, but the spread is larger than the gap.
        RatedPrompt("tied:1", [9, 6, 4], 2),
        # Gap 10 - 9 = 1: ref 1.
        RatedPrompt("ref:2", [10, 9, 1], 1),
        # Spread 8 - 8 = 0, gap 8 - 3 = 5.
        RatedPrompt("tied:2", [8, 8, 3, 2], 2),
    ]
    # ref = (0 + 1) / 2, tied = (1 + 1) / 2, margin: 2 > 3 no, 5 > 0 yes: 1/2,
    # hard: min(2, 0) > 3 no, min(5, 1) > 0 yes: 1/2,
    # fine: tanh(0 / 3 - 1) = -0.761594 and, with no spread, the sign of 1: mean 0.119203.
    score = ties_score(prompts)
    assert score[:4] == (0.5, 1.0, 0.5, 0.5)
    assert score.fine == pytest.approx(0.119203, abs=1e-6)
    # 0.15 + 0.3 + 0.1 + 0.1 + 0.00119203
    assert score.total == pytest.approx(0.65119203, abs=1e-8)
    assert ties_score(reversed(prompts)) == score


@pytest.mark.parametrize(
    ("wrong", "fine"),
    [(9, -1.0), (8, 0.0), (7, 1.0)],  # spread 0; gap 8 - wrong is -1, 0, 1
)
def test_ties_without_a_spread_have_the_sign_of_the_gap(wrong: int, fine: float) -> None:
    prompts = [RatedPrompt("ref:0", [10, 1], 1), RatedPrompt("tied:0", [8, 8, wrong], 2)]
    assert ties_score(prompts).fine == fine


def test_accuracies_count_prompts_that_come_once() -> None:
    prompts = [
        RatedPrompt("ref:0", [9, 1], 1),
        RatedPrompt("ref:1", [1, 9], 1),
        RatedPrompt("ref:2", [1, 9], 1),
        RatedPrompt("tied:0", [9, 8, 1], 2),
        RatedPrompt("tied:9", [1, 1, 9], 2),
    ]
    score = ties_score(prompts)
    assert score.ref == pytest.approx(1 / 3)
    assert score.tied == 0.5
    assert (score.margin, score.hard) == (1.0, 1.0)  # only of prompt 0


@pytest.mark.parametrize(
    ("prompts", "problem"),
    [
        ([RatedPrompt("ref:1", [5, 1], 1)], "no number occurs in both"),
        ([RatedPrompt("both:1", [5, 1], 1)], "must be ref:<n> or tied:<n>"),
        ([RatedPrompt("ref:one", [5, 1], 1)], "must be ref:<n> or tied:<n>"),
        ([RatedPrompt("ref:1", [5, 1], 1)] * 2, "ref:1 was rated twice"),
        ([RatedPrompt("ref:1", [5, 1], 2)], "2 right ones of 2"),
        ([RatedPrompt("ref:1", [5, 1], 0)], "0 right ones of 2"),
        ([RatedPrompt("ref:1", [], 1)], "1 right ones of 0"),
        ([RatedPrompt("tied:1", [5, 1], -1)], "-1 right ones of 2"),
    ],
)
def test_ties_that_cannot_be_scored_give_the_reason(
    prompts: list[RatedPrompt], problem: str
) -> None:
    with pytest.raises(DataError, match=problem):
        ties_score(prompts)


_RATINGS = st.lists(st.integers(-1, 10), min_size=3, max_size=6)


@given(st.lists(st.tuples(_RATINGS, _RATINGS), min_size=1, max_size=3))
def test_score_keeps_its_range(pairs: list[tuple[list[int], list[int]]]) -> None:
    prompts = [
        prompt
        for number, (ref, tied) in enumerate(pairs)
        for prompt in (RatedPrompt(f"ref:{number}", ref, 1), RatedPrompt(f"tied:{number}", tied, 2))
    ]
    score = ties_score(prompts)
    assert -0.01 <= score.total <= 1.01
    assert score.hard <= score.margin


Row = dict[str, Any]


def row(identity: Any, subset: str = "Focus", **changes: Any) -> Row:
    made = {
        "id": identity,
        "prompt": "Name a colour.",
        "chosen": ["blue"],
        "rejected": ["one", "two", "three"],
        "num_correct": 1,
        "subset": subset,
    }
    return {**made, **changes}


def tie(identity: str, right: int = 2) -> Row:
    chosen = ["red", "green", "blue"][:right]
    return row(identity, "Ties", chosen=chosen, rejected=["seven", "dog"], num_correct=right)


def write(folder: Path, *rows: Any) -> Path:
    lines = [each if isinstance(each, str) else json.dumps(each) for each in rows]
    (folder / "reward-bench-2.jsonl").write_text("\n".join(lines))
    return folder


def answered(sample_id: str, answer: str | None) -> Episode:
    events = () if answer is None else (Answered(0, answer),)
    turn = Turn((Message("user", ("?",)),), "text", 0.0, events, "stop")
    status, reason = ("truncated", "turns") if answer is None else ("terminated", "")
    return Episode("e", sample_id, "Ties", 0, 0, 0, (turn,), status, reason)  # type: ignore[arg-type]


def test_chosen_response_changes_places_by_its_id(tmp_path: Path) -> None:
    source = RewardBench2(write(tmp_path, *(row(number) for number in range(400))))
    assert source.problems == []
    places: Counter[int] = Counter()
    for index in range(400):
        sample = source[index]
        place = int(sample.answers[0])
        candidates = list(sample.ground_truth.candidates)
        assert candidates[place - 1] == "blue"
        # The chosen response is swapped with one response; the others keep their positions.
        others = ["blue", "one", "two", "three"]
        others[0], others[place - 1] = others[place - 1], others[0]
        assert candidates == others
        assert place == place_of_chosen(str(index)) + 1
        places[place] += 1
    assert set(places) == {1, 2, 3, 4}
    assert max(places.values()) < 140  # 100 expected; the standard deviation is 8.7
    assert source[0].images == ()
    assert (source[7].id, source[7].kind) == ("rewardbench2-Focus-7", "Focus")


def test_places_are_those_of_the_published_shuffle() -> None:
    # Values of default_rng(int(md5(id).hexdigest(), 16) % 2**32).integers(0, 4).
    assert [place_of_chosen(identity) for identity in "01234567"] == [2, 3, 1, 2, 3, 2, 0, 2]


def test_subsets(tmp_path: Path) -> None:
    rows = [row(1), row(1, "Math"), row(2, "Precise IF"), tie("ref:1", 1), tie("tied:1")]
    write(tmp_path, *rows)
    assert [RewardBench2(tmp_path)[index].kind for index in range(3)] == [
        "Focus",
        "Math",
        "Precise IF",
    ]
    assert len(RewardBench2(tmp_path, subset="Math")) == 1
    with pytest.raises(UnknownNameError, match="Did you mean 'Ties'"):
        RewardBench2(tmp_path, subset="Tie")
    with pytest.raises(DataError, match="No row of"):
        RewardBench2(tmp_path, subset="Safety")


def test_tie_asks_about_each_response(tmp_path: Path) -> None:
    source = RewardBench2(write(tmp_path, tie("ref:1", 1), tie("tied:1")), subset="Ties")
    assert len(source) == 3 + 4
    sample = source[4]
    assert sample.id == "rewardbench2-Ties-tied:1-1"
    assert sample.ground_truth.candidates == ("green",)
    assert sample.answers == ("True",)
    assert sample.ground_truth.rating == (1, 10)
    assert sample.ground_truth.tie == Tie(row="tied:1", place=1, right=2, responses=4)
    assert [source[index].answers[0] for index in range(3, 7)] == ["True", "True", "False", "False"]


def test_ratings_are_put_together(tmp_path: Path) -> None:
    source = RewardBench2(write(tmp_path, tie("ref:1", 1), tie("tied:1")), subset="Ties")
    answers = ["9", "6", "4", "8", "Rating: 7", "5/10 no, 5", None]
    ids = [source[index].id for index in range(7)]
    episodes = [answered(each, said) for each, said in zip(ids, answers, strict=True)]
    # ref: gap 9 - 6 = 3; tied: spread 8 - 7 = 1, gap 7 - max(5, -1 if unrated) = 2: see test_ties.
    totals = source.totals(episodes)
    assert totals["Ties"] == pytest.approx(1.00761594, abs=1e-8)
    assert totals["Ties margin"] == 1.0
    assert source.totals(episodes[::-1]) == totals
    assert source.totals(episodes[:-1]) == {}  # a row without all of its ratings does not count
    assert source.totals([]) == {}
    # A wrong response whose episode was aborted does not win by default: the gaps are 9 - 10 and
    # 7 - 10, so that no prompt counts.
    failure = Failure("service", "server", "gone")
    for place in (1, 5):
        episodes[place] = replace(episodes[place], status="aborted", failure=failure, turns=())
    lost = source.totals(episodes)
    assert lost["Ties ref"] == lost["Ties tied"] == 0.0


@pytest.mark.parametrize(
    ("answer", "rating"),
    [
        ("7", 7),
        ("10", 10),
        ("I considered 3 points. Final: 8", 8),
        ("<score>9</score>", 9),
        ("8.", 8),
        ("0", -1),
        ("11", -1),
        ("100", -1),
        ("ten", -1),
        ("", -1),
        (None, -1),
        ("<" * 100_000, -1),
    ],
)
def test_last_number_is_the_rating(answer: str | None, rating: int) -> None:
    assert rating_of(answer) == rating


@pytest.mark.parametrize(
    ("answer", "rating"),
    [("0", 0), ("73", 73), ("100", 100), ("101", -1), ("1000", -1), ("of 100 I give 50", 50)],
)
def test_rating_lies_on_its_scale(answer: str, rating: int) -> None:
    assert rating_of(answer, (0, 100)) == rating


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("null", "expected an object"),
        (row(2, "Chat"), "There is no subset called 'Chat'"),
        (row(2, rejected=["a", "b"]), "1 chosen and 2 rejected"),
        (row(2, chosen=["a", "b"]), "2 chosen and 3 rejected"),
        (row(2, chosen="a"), "chosen must be a list of texts"),
        (row(2, rejected=[1, 2, 3]), "rejected must be a list of texts"),
        (row(2, prompt=""), "no prompt"),
        (row(None), "no id"),
        (row(1), "used before"),
    ],
)
def test_row_that_is_invalid_is_listed_and_the_others_are_read(
    tmp_path: Path, bad: Any, problem: str
) -> None:
    source = RewardBench2(write(tmp_path, row(1), bad, row(3)))
    assert len(source) == 2
    (listed,) = source.problems
    assert listed.row == 2
    assert problem in listed.problem


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (row("tied:2", "Ties", num_correct=2), "num_correct is 2, but 1 responses are chosen"),
        (row("tie-2", "Ties"), "must be ref:<n> or tied:<n>"),
        (row("ref:2", "Ties", rejected=[]), "rejected must be a list of texts"),
    ],
)
def test_tie_that_is_invalid_is_listed_and_the_others_are_read(
    tmp_path: Path, bad: Any, problem: str
) -> None:
    source = RewardBench2(write(tmp_path, tie("ref:1", 1), bad), subset="Ties")
    assert len(source) == 3
    assert problem in source.problems[0].problem
