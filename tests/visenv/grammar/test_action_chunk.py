"""Tests the grammar of action chunks: JSON after an optional thought; no input raises."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.grammar import ActionChunkGrammar, ParsedTurn, ToolCall

GRAMMAR = ActionChunkGrammar()
ROWS = [[127, 140, 0, 127, 254, 127, 1]]


def test_turn_is_the_call_of_one_tool() -> None:
    turn = GRAMMAR.parse('{"actions": [[127, 140, 0, 127, 254, 127, 1]]}')
    assert turn == ParsedTurn(None, (ToolCall("act", {"actions": ROWS}),))


def test_thought_may_come_first() -> None:
    turn = GRAMMAR.parse('<think>{"no": 1}</think>\n{"actions": []}')
    assert turn.thought == '{"no": 1}'
    assert turn.calls == (ToolCall("act", {"actions": []}),)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "bad_json"),
        ("move up", "bad_json"),
        ('{"actions": [[NaN]]}', "bad_json"),
        ('{"actions": [[1]]} and more', "bad_json"),
        ("[[1, 2]]", "not_an_object"),
        ("<think>never closed", "thought_unclosed"),
        ('{"a": "\ud800"}', "bad_json"),
        ("[" * 60_000, "bad_json"),
        ("x" * 70_000, "too_long"),
    ],
)
def test_malformed_turn_has_a_problem_that_counts_as_a_call(text: str, code: str) -> None:
    (problem,) = GRAMMAR.parse(text).problems
    assert (problem.code, problem.in_call) == (code, True)
    assert len(problem.message) < 400


@given(st.text(st.characters(exclude_categories=())))
def test_parse_never_raises(text: str) -> None:
    turn = GRAMMAR.parse(text)
    assert bool(turn.calls) != bool(turn.problems)


@given(st.lists(st.lists(st.floats(-1, 1), min_size=1), min_size=1), st.none() | st.just("go"))
def test_compose_is_read_back_to_the_bit(rows: list[list[float]], thought: str | None) -> None:
    turn = ParsedTurn(thought, (ToolCall("act", {"values": rows}),))
    read = GRAMMAR.parse(GRAMMAR.compose(turn))
    assert read == turn
    assert json.dumps(read.calls[0].arguments) == json.dumps({"values": rows})


def test_fence_around_the_object_is_taken_off_and_two_are_refused() -> None:
    turn = '{"actions": [[127, 127, 127, 127, 127, 127, 0]]}'
    for fenced in (f"```json\n{turn}\n```", f"<think>up</think>\n```\n{turn}\n```"):
        assert GRAMMAR.parse(fenced).calls == GRAMMAR.parse(turn).calls
    assert GRAMMAR.parse(f"```\n```json\n{turn}\n```\n```").problems[0].code == "bad_json"
