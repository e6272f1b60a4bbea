"""Tests plans of numbered actions: valid plans, refused plans, and hostile input."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.grammar import ParsedTurn, ToolCall
from visenv.grammar.plan import LONGEST_TURN, TEXT_KEYS, PlanGrammar
from visenv.testing.survival import TEXTS

ACTIONS = ("find a Mug", "pick up the Mug", "find a Sofa", "put down the object in hand")
GRAMMAR = PlanGrammar(ACTIONS)


def turn(plan: Any, **changes: Any) -> str:
    texts: dict[str, Any] = dict.fromkeys(TEXT_KEYS, "a")
    return json.dumps(texts | {"executable_plan": plan} | changes)


def action(number: Any, name: Any = None) -> dict[str, Any]:
    given_name = ACTIONS[number] if name is None and number in range(len(ACTIONS)) else name
    return {"action_id": number, "action_name": given_name}


def codes(text: str, grammar: PlanGrammar = GRAMMAR) -> list[str]:
    return [problem.code for problem in grammar.parse(text).problems]


def test_actions_of_a_plan_become_calls_in_order() -> None:
    parsed = GRAMMAR.parse(turn([action(0), action(1)]))
    assert parsed.problems == ()
    assert parsed.thought == "a\na\na"
    assert parsed.calls == (
        ToolCall("act", {"action_id": 0, "action_name": "find a Mug"}),
        ToolCall("act", {"action_id": 1, "action_name": "pick up the Mug"}),
    )


def test_empty_plan_is_the_answer_that_ends_the_episode() -> None:
    parsed = GRAMMAR.parse(turn([]))
    assert (parsed.answer, parsed.calls, parsed.problems) == ("", (), ())


@pytest.mark.parametrize("wrong", [-1, 4, 10**9, 10**400])
def test_first_id_out_of_range_cuts_the_plan(wrong: int) -> None:
    parsed = GRAMMAR.parse(turn([action(2), action(wrong, "x"), action(0)]))
    assert [call.arguments["action_id"] for call in parsed.calls] == [2]
    assert parsed.problems == ()
    assert codes(turn([action(wrong, "x"), action(0)])) == ["out_of_range"]


@pytest.mark.parametrize("wrong", [True, False, 3.0, "3", None, [1], {}, 2.5])
def test_id_that_is_no_integer_is_refused_wherever_it_is(wrong: Any) -> None:
    assert codes(turn([{"action_id": wrong, "action_name": "find a Mug"}])) == ["bad_id"]
    assert codes(turn([action(0), {"action_id": wrong, "action_name": "x"}])) == ["bad_id"]


@pytest.mark.parametrize("name", ["find a Sofa", "", None, 0, "FIND A MUG"])
def test_name_that_contradicts_its_id_is_refused_unless_names_are_ignored(name: Any) -> None:
    text = turn([{"action_id": 0, "action_name": name}])
    assert codes(text) == ["bad_name"]
    assert "Action 0 is 'find a Mug'" in GRAMMAR.parse(text).problems[0].message
    lenient = PlanGrammar(ACTIONS, checks_names=False)
    assert lenient.parse(text).calls[0].arguments["action_name"] == "find a Mug"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "bad_json"),
        ("[1]", "not_an_object"),
        (turn([action(0)], language_plan=3), "bad_text"),
        (turn([action(0)], language_plan=None), "bad_text"),
        (turn("find a Mug"), "bad_plan"),
        (turn({"0": action(0)}), "bad_plan"),
        (turn([0]), "bad_action"),
        (turn([action(0)] * 21), "too_many_actions"),
        (turn([action(0)] * 10**5), "too_long"),
        ('{"executable_plan": ' + "[" * 10_000, "bad_json"),
        (turn([]).replace("[]", "NaN"), "bad_json"),
        (turn([]).replace("[]", '[{"action_id": NaN}]'), "bad_json"),
        (turn([]) + turn([]), "bad_json"),
        ("x" * (LONGEST_TURN + 1), "too_long"),
    ],
)
def test_broken_turn_has_one_problem_with_a_short_message(text: str, code: str) -> None:
    assert codes(text) == [code]
    assert len(GRAMMAR.parse(text).problems[0].message) < 600


def test_fence_is_taken_off_and_two_are_refused() -> None:
    fenced = f"```json\n{turn([action(0)])}\n```"
    assert len(GRAMMAR.parse(fenced).calls) == 1
    assert codes(f"```\n{fenced}\n```") == ["bad_json"]


def test_turn_of_language_alone_has_no_description_of_an_image() -> None:
    grammar = PlanGrammar(ACTIONS, describes_images=False)
    text = grammar.compose(ParsedTurn("b\nc", calls=(ToolCall("act", action(0)),)))
    assert "visual_state_description" not in text
    assert grammar.parse(text).thought == "b\nc"


def test_parse_refuses_a_megabyte_in_linear_time() -> None:
    start = time.process_time()
    GRAMMAR.parse('{"a": "' + "\\u0041" * 2**18)
    assert time.process_time() - start < 5  # quadratic time would take minutes


@pytest.mark.attack("policies: no text of a policy raises an exception or stops an episode")
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_hostile_texts_are_problems(text: str) -> None:
    assert GRAMMAR.parse(text).problems


@given(st.text(st.characters(exclude_categories=())))
def test_text_of_any_kind_is_read_without_an_error(text: str) -> None:
    GRAMMAR.parse(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
entries = st.fixed_dictionaries({"action_id": json_values, "action_name": json_values})


@given(st.lists(json_values | entries) | json_values)
def test_plan_of_any_kind_is_read_without_an_error(plan: Any) -> None:
    parsed = GRAMMAR.parse(turn(plan))
    assert parsed.problems or parsed.answer == "" or parsed.calls


line = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")))


@given(st.tuples(line, line, line), st.lists(st.sampled_from(range(4)), max_size=20))
def test_parse_reads_back_what_compose_writes(texts: tuple[str, ...], ids: list[int]) -> None:
    calls = tuple(ToolCall("act", {"action_id": k, "action_name": ACTIONS[k]}) for k in ids)
    turned = ParsedTurn("\n".join(texts), calls, None if ids else "")
    assert GRAMMAR.parse(GRAMMAR.compose(turned)) == turned


@given(st.lists(st.sampled_from(range(4)), max_size=20), st.text(max_size=40))
def test_regular_expression_accepts_what_compose_writes(ids: list[int], text: str) -> None:
    calls = tuple(ToolCall("act", {"action_id": k, "action_name": ACTIONS[k]}) for k in ids)
    plain = "".join(character for character in text if character.isascii() and character >= " ")
    written = GRAMMAR.compose(ParsedTurn(f"{plain}\nb\nc", calls, None if ids else ""))
    assert re.fullmatch(GRAMMAR.turn_regex(), written.replace("\\u007f", ""))


def test_regular_expression_is_bounded() -> None:
    expression = GRAMMAR.turn_regex()
    assert "*" not in expression
    assert "+" not in expression
    too_many = GRAMMAR.compose(ParsedTurn("", (ToolCall("act", action(0)),) * 21))
    assert not re.fullmatch(expression, too_many)


@pytest.mark.component("outlines-core")
def test_regular_expression_compiles_for_constrained_decoding() -> None:
    outlines = pytest.importorskip("outlines_core")
    vocabulary = {chr(code): [code] for code in range(32, 127)}
    small = PlanGrammar(ACTIONS, most_actions=6, text_characters=100)
    index = outlines.Index(small.turn_regex(), outlines.Vocabulary(200, vocabulary))
    state = index.get_initial_state()
    for character in small.compose(ParsedTurn("a\nb\nc", (ToolCall("act", action(0)),))):
        state = index.get_next_state(state, ord(character))
        assert state is not None, f"{character!r} must be allowed"
    assert index.is_final_state(state)
