"""Tests that the reward of stage 2 is corrected for chance if the evidence is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reward_terms import unweighted
from visenv.envs.arm.answer_rewards import AnswerRewards
from visenv.envs.arm.evidence import (
    LARGEST_PAGE_SWEEP,
    CallRule,
    chance_of,
    knows_evidence,
    shows_evidence,
    useful,
)
from visenv.envs.arm.ground_truth import (
    ConstraintCheck,
    DocumentTruth,
    JudgingTruth,
    judging_sample,
)
from visenv.envs.arm.rewards import EpisodeReading, terms
from visenv.envs.arm.verdicts import verdicts, write_verdict
from visenv.types import Answered, EventLog, QuestionTruth, Sample, ToolCalled, TurnTaken

PAGE = '<think>look</think><tool_call>{"name": "page", "arguments": {}}</tool_call>'


def shown(*calls: tuple[int, ...], total: int = 12) -> list[ToolCalled]:
    """Return calls that showed these pages of a document."""
    return [
        ToolCalled(
            turn, "page", {}, True, detail={
                "document": "d", "pages": [*pages], "document_pages": total})
        for turn, pages in enumerate(calls)
    ]  # fmt: skip


def judged(candidates: int, evidence: tuple[int, ...] = (3,)) -> Sample:
    truth = JudgingTruth(
        candidates=tuple("abcdefgh"[:candidates]), evidence_pages=evidence, document="d"
    )
    return judging_sample(
        id="1", instruction="?", truth=truth, verdict=True if candidates == 1 else 1
    )


def log_of(calls: list[ToolCalled], answer: str) -> EventLog:
    turn = len(calls)
    text = f"<think>so</think><answer>{answer}</answer>"
    taken = [event for call in calls for event in (TurnTaken(call.turn, PAGE, "look"), call)]
    return EventLog([*taken, TurnTaken(turn, text, "so"), Answered(turn, answer)])


def pay(
    sample: Sample, calls: list[ToolCalled], verdict: str, rule: CallRule = "evidence"
) -> float:
    log = log_of(calls, write_verdict(verdict))
    named = terms("stage2", EpisodeReading.of(None, rule))
    return sum(term.weight * unweighted(term, log, sample) for term in named)


@pytest.mark.parametrize(
    ("candidates", "wrong"),
    [(1, 0.3 - 0.5), (2, 0.3 - 0.5), (4, 0.3 - 0.5 / 3), (8, 0.3 - 0.5 / 7)],
)
def test_verdict_that_is_wrong_costs_what_a_lucky_guess_gains(
    candidates: int, wrong: float
) -> None:
    sample, calls = judged(candidates), shown((3,))
    options = verdicts(candidates)
    paid = [pay(sample, calls, option) for option in options]
    assert paid == pytest.approx([1.5, *[wrong] * (len(options) - 1)])
    blind = [pay(sample, [], option) for option in options]
    assert sum(paid) == pytest.approx(sum(blind))
    # Other rules pay as equation 5.
    assert pay(sample, calls, options[1], "belongs") == pytest.approx(0.4)
    assert pay(sample, calls, options[1], "published") == pytest.approx(0.4)


def queried(*pages: int, document: str = "d") -> list[ToolCalled]:
    """Return a query that showed these pages; without pages, one that found nothing."""
    detail = {"document": document, "pages": [*pages], "document_pages": 12} if pages else {}
    return [
        ToolCalled(0, "search", {"query": "5", "filename": document}, bool(pages), detail=detail)
    ]


@pytest.mark.parametrize(
    ("calls", "right", "wrong"),
    [
        (queried(3), 1.5, -0.2),
        (queried(4), 1.0, -0.2),  # else a query for the guessed value pays if the guess is right
        (queried(), 1.0, -0.2),
        (queried(4, document="another"), 1.0, 0.3),
        (shown((4,)), 1.0, 0.3),
    ],
)
def test_verdict_that_is_wrong_after_a_query_costs_the_same_whatever_it_found(
    calls: list[ToolCalled], right: float, wrong: float
) -> None:
    sample = judged(2)
    assert [pay(sample, calls, each) for each in "12"] == pytest.approx([right, wrong])
    truth = DocumentTruth(evidence_pages=(3,), document="d", options=("a", "b"))
    asked = Sample("q", "?", (), ("a",), ground_truth=truth)
    named = AnswerRewards(
        lambda answer, _: float(answer == "a"), EpisodeReading.of(None, "evidence")
    ).terms("stage2")
    paid = [
        sum(term.weight * unweighted(term, log_of(calls, answer), asked) for term in named)
        for answer in "ab"
    ]
    assert paid == pytest.approx([right, wrong])


def test_sample_without_known_evidence_is_paid_as_equation_5() -> None:
    sample = judged(2, ())
    assert not knows_evidence(sample)
    assert [pay(sample, shown((3,)), each) for each in "12"] == pytest.approx([1.5, 0.4])


def test_chance_is_known_from_the_possible_answers() -> None:
    check = ConstraintCheck(name="c", arguments={})
    truth = JudgingTruth(candidates=("a",), check=check)
    assert knows_evidence(judging_sample(id="1", instruction="?", truth=truth, verdict=True))
    assert [chance_of(judged(n)) for n in (1, 2, 4)] == [0.5, 0.5, 0.25]
    asked = [Sample("q", "?", (), ("a",), ground_truth=QuestionTruth(options=each))
             for each in ((), ("a",), ("a", "b", "c"))]  # fmt: skip
    assert [chance_of(each) for each in asked] == pytest.approx([0, 0, 1 / 3])


@pytest.mark.parametrize("options", range(2, 10))
def test_guess_of_an_answer_gains_nothing(options: int) -> None:
    truth = DocumentTruth(evidence_pages=(3,), document="d", options=tuple("abcdefghi"[:options]))
    sample = Sample("q", "?", (), ("a",), ground_truth=truth)
    rewards = AnswerRewards(
        lambda answer, _: float(answer == "a"), EpisodeReading.of(None, "evidence")
    )
    named = rewards.terms("stage2")
    gains = []
    for answer in truth.options:
        paid = [
            sum(term.weight * unweighted(term, log_of(calls, answer), sample) for term in named)
            for calls in (shown((3,)), [])
        ]
        gains.append(paid[0] - paid[1])
    assert gains[0] == pytest.approx(0.5)
    assert sum(gains) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("calls", "total", "counts"),
    [
        (((3,),), 12, True),
        (((3, 5, 6, 7, 8),), 12, True),  # the best page of a query
        (((5, 3, 6, 7, 8),), 12, True),  # the second best
        (((5, 6, 3, 7, 8),), 12, False),  # of one evidence page, two pages of a query count
        (((1,), (2,), (4,), (3,)), 12, True),  # a third of the pages
        (((1,), (2,), (4,), (5,), (3,)), 12, False),
        (((1,), (2,), (4,), (3,)), 9, False),
        (((2,), (3,)), 4, True),  # one more page than the evidence
        (((1,), (2,), (3,)), 4, False),
        (((3,), (3,), (3,), (3,)), 4, True),  # the same page again
        (((1,), (2,), (4,), (5,), (3,)), 0, True),  # a saved episode without the number of pages
    ],
)
def test_sweep_of_pages_is_no_evidence(
    calls: tuple[tuple[int, ...], ...], total: int, counts: bool
) -> None:
    made = shown(*calls, total=total)
    assert shows_evidence(made, judged(2)) == counts
    log = log_of(made, "1")
    assert useful(log, judged(2), "evidence") == counts
    assert useful(log, judged(2), "belongs")


@given(st.integers(1, 40), st.lists(st.integers(1, 40), max_size=12), st.integers(1, 40))
def test_pages_beyond_a_third_of_the_document_never_count(
    total: int, pages: list[int], evidence: int
) -> None:
    calls = shown(*[(page,) for page in pages], total=total)
    if shows_evidence(calls, judged(2, (evidence,))):
        assert evidence in pages
        assert len({*pages}) <= max(2, LARGEST_PAGE_SWEEP * total)
