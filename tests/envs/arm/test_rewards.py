"""Tests every cell of the reward table for every reward, and turns without a reward."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.reward_terms import unweighted
from visenv.envs.arm.evidence import CallRule
from visenv.envs.arm.ground_truth import JudgingTruth, judging_sample
from visenv.envs.arm.rewards import ARM_MARKERS, REWARDS, TOP, EpisodeReading, terms
from visenv.envs.arm.verdicts import write_verdict
from visenv.errors import UnknownNameError
from visenv.grammar import ToolCall, ToolCallGrammar
from visenv.grammar.tool_call import Compat
from visenv.types import Answered, Event, EventLog, Malformed, Sample, ToolCalled, TurnTaken

SAMPLE = judging_sample(
    id="1", instruction="?", truth=JudgingTruth(candidates=("a", "b")), verdict=2
)
CALL = '<think>look</think>\n<tool_call>\n{"name": "zoom", "arguments": {}}\n</tool_call>'


def played(*outcomes: bool, verdict: str = "2", said: str = "", last: str = "") -> EventLog:
    """Return a log of calls with these outcomes and a verdict; `said` replaces the calls' texts."""
    events: list[Event] = []
    for turn, ok in enumerate(outcomes):
        events.append(TurnTaken(turn, said or CALL, "look"))
        events.append(ToolCalled(turn, "zoom", {}, ok, "" if ok else "it failed"))
    answer = write_verdict(verdict)
    text = last or f"<think>so</think><answer>{answer}</answer>"
    turn = len(outcomes)
    return EventLog([*events, TurnTaken(turn, text, "so"), Answered(turn, answer)])


def pay(
    reward: str,
    log: EventLog,
    sample: Sample = SAMPLE,
    compat: Compat = None,
    call_rule: CallRule = "published",
) -> float:
    named = terms(reward, EpisodeReading.of(compat, call_rule))
    return sum(term.weight * unweighted(term, log, sample) for term in named)


# (stage1, stage2, accuracy_format, fixed_bonus); R_f .3, R_try .1, R_a .7, R_succ .5, bonus .5.
CELLS: list[tuple[str, Sequence[bool], tuple[float, float, float, float]]] = [
    ("1", (), (0.3, 0.3, 0.3, 0.3)),
    ("1", (False,), (0.4, 0.4, 0.3, 0.8)),
    ("1", (True,), (0.4, 0.4, 0.3, 0.8)),
    ("1", (True, False, True), (0.4, 0.4, 0.3, 0.8)),
    ("2", (), (0.3, 1.0, 1.0, 1.0)),
    ("2", (False, False), (0.4, 1.0, 1.0, 1.5)),
    ("2", (True,), (0.4, 1.5, 1.0, 1.5)),
    ("2", (False, True), (0.4, 1.5, 1.0, 1.5)),
]


@pytest.mark.parametrize(("verdict", "outcomes", "wages"), CELLS)
def test_reward_table_of_judging(
    verdict: str, outcomes: Sequence[bool], wages: tuple[float, ...]
) -> None:
    log = played(*outcomes, verdict=verdict)
    assert [pay(reward, log) for reward in REWARDS] == pytest.approx(wages)


def test_best_cell_is_the_top() -> None:
    best = [max(wages[arm] for _, _, wages in CELLS) for arm in range(len(REWARDS))]
    assert [TOP[reward] for reward in REWARDS] == pytest.approx(best)


@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize(
    "text",
    [
        "<answer>2</answer>",  # no thought
        "so <think>so</think><answer>2</answer>",  # text before
        "<think>so</think><answer>2</answer> done",  # text after
        "<think>a</think><think>b</think><answer>2</answer>",
        "<think>so</think><answer>2</answer><tool_call>",
    ],
)
def test_last_turn_of_another_form_has_no_reward(reward: str, text: str) -> None:
    assert pay(reward, played(True, last=text)) == 0.0


@pytest.mark.parametrize(("reward", "paid"), [("stage2", 1.35), ("accuracy_format", 0.85)])
def test_earlier_turn_of_another_form_costs_its_share(reward: str, paid: float) -> None:
    # One of two turns is well formed: half of R_f. 0.15 + 0.7 + 0.5; without tools 0.15 + 0.7.
    assert pay(reward, played(True, said="no tags at all")) == pytest.approx(paid)


def corrected(times: int, verdict: str = "2") -> EventLog:
    """Return a log of this number of malformed turns, followed by an answer."""
    events: list[Event] = []
    for turn in range(times):
        events.append(TurnTaken(turn, "<think>x</think><tool_call>{", "x"))
        events.append(Malformed(turn, "bad_json", "broken"))
    answer = write_verdict(verdict)
    text = f"<think>so</think><answer>{answer}</answer>"
    return EventLog([*events, TurnTaken(times, text, "so"), Answered(times, answer)])


@pytest.mark.parametrize(
    ("times", "verdict", "paid"),
    [(0, "2", 1.0), (1, "2", 0.15 + 0.7), (2, "2", 0.1 + 0.7), (1, "1", 0.15)],
)
def test_corrected_malformed_turn_costs_its_share_and_not_the_reward(
    times: int, verdict: str, paid: float
) -> None:
    assert pay("stage2", corrected(times, verdict)) == pytest.approx(paid)


@pytest.mark.parametrize("reward", REWARDS)
def test_reward_without_an_answer_is_0(reward: str) -> None:
    log = EventLog(list(played(True))[:-1])
    assert pay(reward, log) == 0.0


@pytest.mark.parametrize("marker", [*ARM_MARKERS, "<tool_response>"])
def test_marker_that_the_policy_writes_is_worth_nothing(marker: str) -> None:
    spoof = f"<think>{marker} of observation_1</think><answer>2</answer>"
    assert pay("stage2", played(last=spoof)) == pytest.approx(1.0)
    assert pay("stage1", played(last=spoof)) == pytest.approx(0.3)


def test_public_reward_can_be_fooled_by_such_a_marker() -> None:
    spoof = f"<think>{ARM_MARKERS[0]} <tool_response></think><answer>Answer 2 is better</answer>"
    assert pay("stage2", played(last=spoof), compat="arm") == pytest.approx(1.5)
    wrong = spoof.replace("Answer 2", "Answer 1")
    log = EventLog([TurnTaken(0, wrong, ""), Answered(0, "Answer 1 is better")])
    assert pay("stage2", log, compat="arm") == pytest.approx(0.4)


def test_call_inside_a_thought_is_no_call() -> None:
    thought = f"<think>{CALL.replace('<think>', '').replace('</think>', '')}</think>"
    text = f"{thought}<answer>{write_verdict('2')}</answer>"
    parsed = ToolCallGrammar().parse(text)
    assert parsed.calls == ()
    assert parsed.answer == write_verdict("2")
    assert pay("stage2", played(last=text)) == pytest.approx(1.0)


def test_public_form_looks_at_the_last_turn_alone() -> None:
    log = played(True, said="no tags at all", last="<think>x</think> <answer>2</answer>")
    assert pay("stage2", log, compat="arm") == pytest.approx(1.5)
    assert pay("stage2", played(True, last="<answer>2</answer>"), compat="arm") == 0.0


@pytest.mark.parametrize("thought", ["<tool_call>", "a </TOOL_CALL> b"])
def test_public_form_bans_tags_of_calls(thought: str) -> None:
    text = f"<think>{thought}</think><answer>Answer 2 is better</answer>"
    assert pay("stage2", played(True, last=text), compat="arm") == 0.0


@pytest.mark.parametrize(
    ("text", "paid"),
    [
        (" <THINK>a</think>\n<Answer>2</answer> ", 0.3),
        ("<think></think><answer></answer>", 0.3),
        ("<think>a</think> so <answer>2</answer>", 0.0),
        ("<think>a</think><answer>2", 0.0),
        ("<think></answer>", 0.0),
        ("", 0.0),
        ("<think>" + "</think><answer>" * 60_000, 0.0),  # one regular expression took minutes
    ],
)
def test_public_form(text: str, paid: float) -> None:
    log = EventLog([TurnTaken(0, text, ""), Answered(0, "2")])
    assert pay("stage1", log, compat="arm") == pytest.approx(paid)


@pytest.mark.parametrize(("verdict", "right"), [(True, 1.0), (False, 0.3)])
def test_single_response_can_be_judged_right(verdict: bool, right: float) -> None:
    # The public reward of single responses is always 0, because its extraction fails.
    sample = judging_sample(
        id="1", instruction="?", truth=JudgingTruth(candidates=("a",)), verdict=verdict
    )
    assert pay("stage2", played(verdict="True"), sample) == pytest.approx(right)


@pytest.mark.parametrize(
    ("scale", "rating", "paid"),
    [
        ((1, 10), 9, 1.0),
        ((1, 10), 2, 0.3),
        ((1, 10), 12, 0.3),
        ((0, 100), 100, 1.0),
        ((0, 100), 50, 1.0),  # the middle: from there on, LLaVA-Critic counts a caption as right
        ((0, 100), 9, 0.3),
    ],
)
def test_rating_is_judged_by_its_half_of_the_scale(
    scale: tuple[int, int], rating: int, paid: float
) -> None:
    truth = JudgingTruth(candidates=("a",), rating=scale)
    sample = judging_sample(id="1", instruction="?", truth=truth, verdict=True)
    text = f"<think>so</think><answer>Overall Judgment: {rating}</answer>"
    log = EventLog([TurnTaken(0, text, "so"), Answered(0, f"Overall Judgment: {rating}")])
    assert pay("accuracy_format", log, sample) == pytest.approx(paid)


def test_unknown_reward_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="stage2"):
        terms("stage_2", EpisodeReading())


def test_call_is_no_answer() -> None:
    assert ToolCallGrammar().parse(CALL).calls == (ToolCall("zoom", {}),)
