"""Tests `HermesGrammar`: several calls, plain answers, problems, hostile text, round trips."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.env import EpisodeLimits
from visenv.grammar import Grammar, HermesGrammar, ParsedTurn, ToolCall
from visenv.testing import toy
from visenv.testing.survival import PIECES, TEXTS

GRAMMAR: Grammar = HermesGrammar()


def call(amount: Any) -> str:
    written = json.dumps({"name": "add", "arguments": {"amount": amount}})
    return f"<tool_call>\n{written}\n</tool_call>"


@pytest.mark.parametrize("count", [1, 2, 5])
def test_calls_of_a_turn_are_read_in_order(count: int) -> None:
    text = "<think>why</think>\nFirst:\n" + "\n".join(map(call, range(count))) + "\nDone."
    calls = tuple(ToolCall("add", {"amount": number}) for number in range(count))
    assert GRAMMAR.parse(text) == ParsedTurn("why", calls)


@pytest.mark.parametrize(
    ("text", "turn"),
    [
        ("<think>a</think>\n\nThe sum is 7.", ParsedTurn("a", answer="The sum is 7.")),
        ("7", ParsedTurn(None, answer="7")),
        ("<think>a</think>So: <answer> 7 </answer>", ParsedTurn("a", answer="7")),
        # A call inside a thought is a thought.
        (f"<think>{call(1)}</think>7", ParsedTurn(call(1), answer="7")),
    ],
)
def test_turn_without_a_call_answers(text: str, turn: ParsedTurn) -> None:
    assert GRAMMAR.parse(text) == turn


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "no_action"),
        ("<think>a</think>\n ", "no_action"),
        ("<think>a", "thought_unclosed"),
        (call(1) + "<tool_call>{", "tool_call_unclosed"),
        (call(1) + call(2) + "<answer>3</answer>", "call_and_answer"),
        ("<answer>3</answer><answer>4</answer>", "several_answers"),
        (call(1) + "<tool_call>{]</tool_call>" + call(2), "bad_json"),
        (call(1) + '<tool_call>{"name": "add"}</tool_call>', "missing_key"),
    ],
)
def test_turn_with_a_problem_calls_nothing(text: str, code: str) -> None:
    turn = GRAMMAR.parse(text)
    assert [problem.code for problem in turn.problems] == [code]
    assert (turn.calls, turn.answer) == ((), None)


@given(st.lists(st.sampled_from([*TEXTS.values(), *PIECES])).map("".join))
def test_text_of_any_kind_is_read(text: str) -> None:
    turn = GRAMMAR.parse(text)
    assert bool(turn.calls) + (turn.answer is not None) + bool(turn.problems) == 1


WORDS = st.text(st.characters(exclude_characters="<", exclude_categories=["Cs"]))


@given(st.lists(st.integers(), min_size=1, max_size=4), WORDS, WORDS)
def test_composed_turns_are_read_back(amounts: list[int], thought: str, answer: str) -> None:
    calls = tuple(ToolCall("add", {"amount": amount}) for amount in amounts)
    for turn in (ParsedTurn(thought, calls), ParsedTurn(thought, answer=answer.strip())):
        assert GRAMMAR.parse(GRAMMAR.compose(turn)) == turn


def test_environment_shows_the_results_of_all_calls() -> None:
    env = toy.Adder(
        source=toy.Sums(), grammar=GRAMMAR, tools=[toy.Add()], limits=EpisodeLimits(turns=3)
    )
    env.reset(seed=0)
    first, second = env.sample.truth_as(toy.SumTruth).add
    *_, info = env.step(f"<think>both at once</think>\n{call(first)}\n{call(second)}")
    assert info["step"].messages[0].plain() == (
        f"<tool_response>\ntotal {first}\n</tool_response>"
        f"<tool_response>\ntotal {first + second}\n</tool_response>"
    )
    _, reward, terminated, _, _ = env.step(f"<think>done</think>\n{first + second}")
    assert (reward, terminated) == (1.0, True)


def test_instructions_contain_the_schemas_and_an_example() -> None:
    told = GRAMMAR.instructions([toy.Add()])
    assert '<tools>\n{"type": "function", "function": {"name": "add"' in told
    assert '{"name": "add", "arguments": {"amount": 7}}' in told
    assert "You have no tools" in GRAMMAR.instructions([])
