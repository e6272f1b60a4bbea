"""Tests ``compat="embodiedbench"`` against the rules of EmbodiedBench's parser.

The expected results were read from EmbodiedBench at commit b247936 (`json_to_action` of its
planner): -1 for a reply that it cannot use, -2 for a plan that ends the episode, otherwise ids.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from visenv.envs.embodied.compat import EmbodiedBenchGrammar
from visenv.grammar.plan import TEXT_KEYS

ACTIONS = ("find a Mug", "pick up the Mug", "find a Sofa", "put down the object in hand")
GRAMMAR = EmbodiedBenchGrammar(ACTIONS)
UNUSED, END = -1, -2

Result = int | list[int]


def read(text: str) -> Result:
    parsed = GRAMMAR.parse(text)
    if parsed.problems:
        assert (parsed.calls, parsed.answer) == ((), None)
        return UNUSED
    if parsed.answer is not None:
        assert (parsed.calls, parsed.answer) == ((), "")
        return END
    assert all(ACTIONS[call.arguments["action_id"]] == call.arguments["action_name"]
               for call in parsed.calls)  # fmt: skip
    return [call.arguments["action_id"] for call in parsed.calls]


def ids(*numbers: Any) -> list[dict[str, Any]]:
    return [{"action_id": number, "action_name": "x"} for number in numbers]


def reply(plan: Any, **changes: Any) -> str:
    texts: dict[str, Any] = dict.fromkeys(TEXT_KEYS, "a")
    return json.dumps(texts | {"executable_plan": plan} | changes)


GOOD = reply(ids(0, 1))

KINDS: list[tuple[str, str, Result]] = [
    ("plan", GOOD, [0, 1]),
    ("no text keys", json.dumps({"executable_plan": ids(0)}), [0]),
    ("null text", reply(ids(0), language_plan=None), [0]),
    ("list as language plan", reply(ids(0), language_plan=["1. find", "2. take"]), [0]),
    ("further key", reply(ids(0), confidence=0.9), [0]),
    ("NaN in an unused key", reply(ids(0), confidence=float("nan")), [0]),
    ("21 actions", reply(ids(*[2] * 21)), [2] * 21),
    ("5,000 actions", reply(ids(*[2] * 5000)), [2] * 5000),
    ("no names", reply([{"action_id": 3}]), [3]),
    ("name is a number", reply([{"action_id": 3, "action_name": 5}]), [3]),
    ("code fence", f"```json\n{GOOD}\n```", UNUSED),
    ("text before", f"Here is my plan: {GOOD}", UNUSED),
    ("text after", f"{GOOD} Done.", UNUSED),
    ("two objects", GOOD + GOOD, UNUSED),
    ("white space around", f" \n\t{GOOD}\r\n ", [0, 1]),
    ("empty list", reply([]), END),
    ("empty object as plan", reply({}), END),
    ("empty text as plan", reply(""), END),
    ("text as plan", reply("find a Mug"), UNUSED),
    ("object as plan", reply({"action_id": 0}), UNUSED),
    ("null as plan", reply(None), UNUSED),
    ("number as plan", reply(3), UNUSED),
    ("no plan", json.dumps(dict.fromkeys(TEXT_KEYS, "a")), UNUSED),
    ("list of ids", reply([0, 1]), UNUSED),
    ("action without an id", reply([*ids(0), {"action_name": "find a Mug"}]), UNUSED),
    ("list as reply", f"[{GOOD}]", UNUSED),
    ("first id out of range", reply(ids(4, 0)), UNUSED),
    ("first id negative", reply(ids(-1, 0)), UNUSED),
    ("later id out of range", reply(ids(0, 2, 99, 1)), [0, 2]),
    ("text as id", reply(ids(0, "1")), UNUSED),
    ("text as id after one out of range", reply(ids(0, 9, "1")), [0]),
    ("null as id", reply(ids(None)), UNUSED),
    ("infinite id", reply(ids(0, float("inf"))), [0]),
    ("nothing", "", UNUSED),
    ("single quotes", GOOD.replace('"', "'"), UNUSED),
    ("trailing comma", GOOD[:-1] + ",}", UNUSED),
    ("half a surrogate pair", GOOD.replace('"a"', '"\\ud800"'), [0, 1]),
    ("line break in a text", GOOD.replace('"a"', '"a\nb"'), UNUSED),
    ("plan twice", GOOD[:-1] + ', "executable_plan": [{"action_id": 3}]}', [3]),
    ("byte order mark", "\ufeff" + GOOD, UNUSED),
    ("deep nesting", '{"executable_plan": ' + "[" * 100_000, UNUSED),
    ("id of 5,000 digits", reply(ids(0)).replace('"action_id": 0', '"action_id": ' + "1" * 5000),
     UNUSED),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"), [kind[1:] for kind in KINDS], ids=[kind[0] for kind in KINDS]
)
def test_kind_of_reply_is_read_as_by_embodiedbench(text: str, expected: Result) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("plan", "expected"),
    [(ids(True), UNUSED), (ids(3.0), UNUSED), (ids(float("nan")), UNUSED),
     (ids(0, True, 1), [0]), (ids(0, 2.5), [0]), (ids(0, True, "1"), UNUSED), (ids(7.0), UNUSED)],
)  # fmt: skip
def test_number_that_is_no_integer_ends_the_plan(plan: Any, expected: Result) -> None:
    # EmbodiedBench executes the actions before it, and then asks the policy again.
    assert read(reply(plan)) == expected


values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)
numbers = st.integers(-2, 6) | st.integers(0, 3)
entries = st.builds(
    lambda number, rest: {"action_id": number} | rest,
    numbers | values,
    st.dictionaries(st.sampled_from(["action_name", "why"]), values, max_size=2),
)
plans = st.lists(st.builds(lambda n: {"action_id": n}, numbers), max_size=30) | st.lists(
    entries | values, max_size=4
) | values  # fmt: skip
objects = st.dictionaries(st.sampled_from([*TEXT_KEYS, "score"]), values).flatmap(
    lambda rest: st.builds(lambda plan: rest | {"executable_plan": plan}, plans)
)
wrappers = st.sampled_from(
    ["{}", "{}", "{}", "```json\n{}\n```", " {}\n", "Plan: {}", "{}.", "[{}]"]
)


@st.composite
def replies(draw: st.DrawFn) -> str:
    text = json.dumps(draw(objects | values))
    if draw(st.booleans()):
        return draw(wrappers).replace("{}", text)
    begin = draw(st.integers(0, len(text)))
    return text[:begin] + draw(st.sampled_from(["", ",", '"', "NaN", "\n", "]"])) + text[begin:]


def expected_result(text: str) -> Result:
    """Return what EmbodiedBench does, from the description of its rules, one rule at a time."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return UNUSED
    plan = value.get("executable_plan") if isinstance(value, dict) else None
    if plan in ([], {}, ""):
        return END
    if not isinstance(plan, list):
        return UNUSED
    if not all(isinstance(entry, dict) and "action_id" in entry for entry in plan):
        return UNUSED
    good: list[Any] = []
    for entry in plan:
        number = entry["action_id"]
        if not isinstance(number, int | float):  # booleans are integers in Python
            return UNUSED
        if number < 0 or number >= len(ACTIONS):
            break
        good.append(number)
    for place, number in enumerate(good):  # what its environment does with the list
        if type(number) is not int:
            good = good[:place]
            break
    return good or UNUSED


@settings(max_examples=400)
@given(replies())
def test_replies_made_from_the_kinds_are_read_as_by_embodiedbench(text: str) -> None:
    assert read(text) == expected_result(text)


def test_rules_of_the_test_give_the_results_of_the_table() -> None:
    assert {name: expected_result(text) for name, text, _ in KINDS} == {
        name: expected for name, _, expected in KINDS
    }
