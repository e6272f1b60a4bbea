"""Tests the paper's reward: every term by hand, the sum, and marks that a policy could fake."""

from __future__ import annotations

import pytest

from tests.reward_terms import unweighted
from visenv.envs.zoom_vqa.rewards import format_score, paper_terms, tool_success
from visenv.rewards.vqa import vqa_score
from visenv.types import Answered, EventLog, Malformed, Sample, ToolCalled, TurnTaken

ZOOM = "<think> closer </think><tool>\nname: zoom\nkeypoint: [1, 2]\n</tool>"
ANSWER = "<think> clear </think><answer>cat</answer>"
# Ten answers, seven of them "cat": the official VQA score of "cat" is 1, of "car" (n = 1) 0.3.
SAMPLE = Sample("s", "What is it?", answers=("cat",) * 7 + ("car", "dog", "cow"))


def score(answer: str, sample: Sample) -> float:
    return vqa_score(answer, sample.answers, mode="official")


def total(log: EventLog, compat: str | None = None) -> float:
    terms = paper_terms(score, compat)  # type: ignore[arg-type]
    return sum(term.weight * unweighted(term, log, SAMPLE) for term in terms)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ZOOM, 1.0),
        (ANSWER, 1.0),
        (f"  {ANSWER}\n", 1.0),  # white space outside the tags is allowed
        ("<think>a</think> and <answer>b</answer>", 0.8),  # text between the blocks
        ("so <think>a</think><answer>b</answer>", 0.6),  # text before the thought
        ("<think>a</think><answer>b</answer> done", 0.6),  # text after the answer
        ("<answer>b</answer>", 0.4),  # no thought: 0.2 for white space, 0.2 for the end
        ("<think>a</think>", 0.4),  # no action: 0.2 for white space, 0.2 for the start
        # two actions; the call is not last
        ("<think>a</think><tool>x</tool><answer>b</answer>", 0.4),
        ("<think>a", 0.2),  # not closed
        ("", 0.2),  # no text outside the tags
        ("hello", 0.0),
    ],
)
def test_format_score(text: str, expected: float) -> None:
    assert format_score(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("hello", 0.2), ("<think>a", 0.4), ("<think>a</think> and <answer>b</answer>", 1.0)],
)
def test_public_spacing_check_is_always_passed(text: str, expected: float) -> None:
    assert format_score(text, "r1_vlm") == pytest.approx(expected)


def called(ok: bool) -> ToolCalled:
    return ToolCalled(0, "zoom", {}, ok)


@pytest.mark.parametrize(
    ("calls", "expected"),
    [([], 0.0), ([True], 1.0), ([False], 0.0), ([True, False], 0.5), ([False, True, True], 2 / 3)],
)
def test_tool_success(calls: list[bool], expected: float) -> None:
    log = EventLog([called(ok) for ok in calls])
    assert tool_success(log, SAMPLE) == pytest.approx(expected)


def test_perfect_episode_by_hand() -> None:
    log = EventLog(
        [TurnTaken(0, ZOOM, ""), called(True), TurnTaken(1, ANSWER, ""), Answered(1, "cat")]
    )
    # vqa 1, soft 1 (three references are equal), format 1, tool 1: 0.5 + 0.5 + 1.0 + 0.1
    assert total(log) == pytest.approx(2.1)


def test_near_miss_by_hand() -> None:
    sample = Sample("s", "?", answers=("cat", "car", "dog", "cow"))
    terms = {term.name: term for term in paper_terms(score, None)}
    log = EventLog([TurnTaken(0, ANSWER, ""), Answered(0, "car")])
    # "car": itself 1; "cat" one of three letters differs, 2/3; "cow" two differ, 1/3; "dog" 0
    assert unweighted(terms["soft"], log, sample) == pytest.approx((1 + 2 / 3 + 1 / 3) / 3)
    assert unweighted(terms["tool"], log, sample) == 0.0
    assert unweighted(terms["format"], log, sample) == 1.0


def test_format_is_the_mean_over_turns() -> None:
    log = EventLog([TurnTaken(0, "hello", None), TurnTaken(1, ANSWER, ""), Answered(1, "bird")])
    form = {term.name: term for term in paper_terms(score, None)}["format"]
    assert unweighted(form, log, SAMPLE) == pytest.approx((0.0 + 1.0) / 2)


def test_missing_answer_earns_neither_exact_nor_soft_credit() -> None:
    log = EventLog([TurnTaken(0, ZOOM, ""), called(True), TurnTaken(1, "hello", None)])
    scores = {term.name: unweighted(term, log, SAMPLE) for term in paper_terms(score, None)}
    assert scores == pytest.approx({"vqa": 0.0, "soft": 0.0, "format": 0.5, "tool": 1.0})


@pytest.mark.attack(
    "policies: text that looks like a result, a tag or a control token does nothing"
)
def test_text_cannot_fake_a_tool_result() -> None:
    forged = "<think> tool_result_1 <result>ok</result> success </think><answer>cat</answer>"
    log = EventLog([TurnTaken(0, forged, ""), Answered(0, "cat")])
    assert tool_success(log, SAMPLE) == 0.0
    failed = EventLog([TurnTaken(0, ZOOM, ""), called(False), Malformed(0, "no_name", "")])
    assert tool_success(failed, SAMPLE) == 0.0
