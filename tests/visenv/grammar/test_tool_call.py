"""Tests `ToolCallGrammar`: reading, every problem, hostile text, the round trip, and schemas."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field
from typing_extensions import override

from visenv.errors import UnknownNameError
from visenv.grammar import Grammar, ParsedTurn, ToolCall, ToolCallGrammar, tool_call
from visenv.grammar.json_call import LONGEST_CALL, read_call
from visenv.testing.survival import PIECES, TEXTS
from visenv.tools.base import Arguments, Tool
from visenv.types import Image, Video

GRAMMAR: Grammar = ToolCallGrammar()
BODY = '{"name": "zoom", "arguments": {"bbox_2d": [4, 9.5]}}'
CALL = f"<tool_call>\n{BODY}\n</tool_call>"
ZOOM = ToolCall("zoom", {"bbox_2d": [4, 9.5]})


def wrapped(body: str) -> str:
    return f"<tool_call>{body}</tool_call>"


def with_arguments(written: str) -> str:
    return wrapped(f'{{"name": "zoom", "arguments": {written}}}')


# --------------------------------------------------------------------------------- reading


def test_call() -> None:
    assert GRAMMAR.parse(f"<think> why </think>\n{CALL}") == ParsedTurn(" why ", (ZOOM,))


def test_answer_is_stripped_and_a_thought_is_kept() -> None:
    turn = GRAMMAR.parse("<think>\n why\n</think><answer> Overall Judgment: True\n</answer>")
    assert turn == ParsedTurn("\n why\n", answer="Overall Judgment: True")


def test_turn_needs_no_thought() -> None:
    assert GRAMMAR.parse(CALL) == ParsedTurn(None, (ZOOM,))
    assert GRAMMAR.parse("<answer>7</answer>") == ParsedTurn(None, answer="7")


def test_text_outside_the_tags_is_ignored() -> None:
    turn = GRAMMAR.parse(f"Well. <think>a</think> so </answer> {CALL} done </think>")
    assert turn == ParsedTurn("a", (ZOOM,))


@pytest.mark.attack(
    "policies: text that looks like a result, a tag or a control token does nothing"
)
@pytest.mark.parametrize("thought", [f"first {CALL} then", "<answer>7</answer>", "<think> more"])
def test_text_inside_a_thought_never_acts(thought: str) -> None:
    turn = GRAMMAR.parse(f"<think>{thought}</think><answer>1</answer>")
    assert turn == ParsedTurn(thought, answer="1")


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ('{"name": "zoom", "arguments": {}}', {}),
        ('{"arguments": {"x": 1}, "name": "zoom"}', {"x": 1}),
        (
            '\n\t{"name":"zoom","arguments":{"x":[true,null,-1.5e3]}}  ',
            {"x": [True, None, -1500.0]},
        ),
        ('{"name": "zoom", "arguments": {"q": "growth <5% & < 3"}}', {"q": "growth <5% & < 3"}),
        ('{"name": "zoom", "arguments": {"q": "caf\\u00e9 漢\\n"}}', {"q": "café 漢\n"}),
        ('{"name": "zoom", "arguments": {"q": "\\ud83d\\ude00"}}', {"q": "😀"}),
        (
            '{"name": "zoom", "arguments": {"o": {"a": 1}, "p": {"a": 1}}}',
            {"o": {"a": 1}, "p": {"a": 1}},
        ),
    ],
)
def test_calls_are_json(body: str, arguments: dict[str, Any]) -> None:
    assert GRAMMAR.parse(wrapped(body)).calls == (ToolCall("zoom", arguments),)


# --------------------------------------------------------------------------------- problems

TURN_PROBLEMS = [
    ("", "no_action", False, "one <tool_call>…</tool_call> or one <answer>"),
    ("<think>a</think>", "no_action", False, "neither"),
    ("<TOOL_CALL>{}</TOOL_CALL>", "no_action", False, "neither"),
    ("<tool>name: zoom</tool>", "no_action", False, "neither"),
    ("<think>a", "thought_unclosed", False, "never closed with </think>"),
    (f"<tool_call>{BODY}", "tool_call_unclosed", True, "not closed with </tool_call>"),
    (f"<tool_call>{BODY}</answer>", "tool_call_unclosed", True, "before another tag or the end"),
    ("<answer>7", "answer_unclosed", False, "not closed with </answer>"),
    (CALL + CALL, "several_calls", True, "Call one tool to a turn"),
    ("<answer>1</answer><answer>2</answer>", "several_answers", False, "Give one <answer>"),
    (f"{CALL}<answer>1</answer>", "call_and_answer", True, "not both in one turn"),
]
FORM = 'A call is one JSON object, {"name": "<tool name>", "arguments": {…}}'
CALL_PROBLEMS = [
    (wrapped(""), "bad_json", f"There is no JSON in your call. {FORM}"),
    (wrapped(" \n "), "bad_json", "There is no JSON"),
    (wrapped("zoom [4, 9]"), "bad_json", "breaks at the end of 'z': expected value"),
    (wrapped(BODY[:-1]), "bad_json", "[4, 9.5]}': EOF while parsing an object"),
    (wrapped(BODY + "}"), "bad_json", "trailing characters"),
    (wrapped(f"```json\n{BODY}\n```"), "bad_json", "breaks at the end of '`': expected value"),
    (with_arguments('{"x": [1, 2,]}'), "bad_json", "[1, 2,]': trailing comma"),
    (with_arguments('{\n"é": 1,\n"éé" x}'), "bad_json", r"""\n"\xe9\xe9" x': expected `:`"""),
    (with_arguments("{'x': 1}"), "bad_json", "': key must be a string"),
    (with_arguments('{"x": "a\nb"}'), "bad_json", "control character"),
    (with_arguments('{"x": "\\ud800"}'), "bad_json", "hex escape"),
    (with_arguments('{"x": 1_000}'), "bad_json", "1_"),
    (with_arguments('{"x": ' + "9" * 5000 + "}"), "bad_json", "number out of range"),
    (with_arguments('{"x": ' + "[" * 300 + "]" * 300 + "}"), "too_deep", "nested too deeply"),
    (wrapped("[" * LONGEST_CALL), "too_deep", "on few levels"),
    (wrapped("[" * 100_000), "too_long", "100000 characters long; at most 65536 are read"),
    (with_arguments('"' + "a" * 2**20 + '"'), "too_long", "at most 65536"),
    (with_arguments('{"x": "\ud800"}'), "bad_character", "half of a surrogate pair"),
    (with_arguments('{"x": 1, "y": 2, "x": 1}'), "repeated_key", "The key 'x' stands twice"),
    (with_arguments('{"o": [{"a": 1, "a": 1}]}'), "repeated_key", "The key 'a' stands twice"),
    (wrapped('{"name": "a", "name": "a", "arguments": {}}'), "repeated_key", "'name' stands"),
    (with_arguments('{"x": NaN}'), "not_finite", "'NaN' is not a finite number"),
    (with_arguments('{"x": [-Infinity]}'), "not_finite", "'-Infinity' is not"),
    (with_arguments('{"x": 1e999}'), "not_finite", "'1e999' is not"),
    (wrapped(f"[{BODY}]"), "not_an_object", "you wrote [{'name': 'zoom'"),
    (wrapped('"zoom"'), "not_an_object", "you wrote 'zoom'"),
    (wrapped("null"), "not_an_object", "you wrote None"),
    (wrapped("{}"), "missing_key", "The key 'name' is missing; there are: none"),
    (
        wrapped('{"name": "zoom"}'),
        "missing_key",
        "The key 'arguments' is missing; there are: 'name'",
    ),
    (wrapped('{"Name": "a", "parameters": {}}'), "missing_key", "are: 'Name', 'parameters'"),
    (wrapped(BODY[:-1] + ', "id": 1}'), "extra_key", "The key 'id' does not belong in a call"),
    (
        wrapped('{"name": 7, "arguments": {}}'),
        "bad_name",
        '"name" must be the name of a tool, got 7',
    ),
    (wrapped('{"name": "", "arguments": {}}'), "bad_name", "got ''"),
    (
        with_arguments("null"),
        "bad_arguments",
        'must be a JSON object, {"<argument>": <value>}, got None',
    ),
    (with_arguments("[1]"), "bad_arguments", "got [1]"),
    (with_arguments('"{}"'), "bad_arguments", "got '{}'"),
]


def short_id(value: Any) -> str:
    return repr(value)[:40] if isinstance(value, str) else repr(value)


@pytest.mark.parametrize(("text", "code", "in_call", "message"), TURN_PROBLEMS)
def test_problems_of_a_turn_have_their_codes(
    text: str, code: str, in_call: bool, message: str
) -> None:
    turn = GRAMMAR.parse(text)
    assert (turn.calls, turn.answer) == ((), None)
    [problem] = turn.problems
    assert (problem.code, problem.in_call) == (code, in_call)
    assert message in problem.message


@pytest.mark.parametrize(("text", "code", "message"), CALL_PROBLEMS, ids=short_id)
def test_problems_of_a_call_name_the_mistake_and_its_place(
    text: str, code: str, message: str
) -> None:
    turn = GRAMMAR.parse(f"<think>why</think>{text}")
    assert (turn.thought, turn.calls, turn.answer) == ("why", (), None)
    [problem] = turn.problems
    assert (problem.code, problem.in_call) == (code, True)
    assert message in problem.message
    assert problem.message.endswith(".")
    assert len(problem.message) < 400


def test_codes_in_the_docstrings_have_a_case() -> None:
    of_a_call = {code for _, code, _ in CALL_PROBLEMS}
    of_a_turn = {code for _, code, _, _ in TURN_PROBLEMS}
    assert set(re.findall(r"``(\w+)``", read_call.__doc__ or "")) == of_a_call
    assert set(re.findall(r"``(\w+)``", ToolCallGrammar.parse.__doc__ or "")) == (
        of_a_call | of_a_turn
    )


# ---------------------------------------------------------------------------- any text

ANY = st.text(st.characters(exclude_categories=()))
TAGS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<answer>", "</answer>")
BODY_PIECES = (
    '{"name": "zoom", ',
    '"arguments": ',
    "{",
    "}",
    "[",
    "]",
    '"x": ',
    "1e999",
    ",",
    BODY,
)
SOUP = st.lists(st.sampled_from((*TAGS, *TAGS, *PIECES, *BODY_PIECES)) | ANY).map("".join)
BODIES = st.lists(st.sampled_from((*PIECES, *BODY_PIECES)) | ANY).map("".join)
HOSTILE = ANY | SOUP | BODIES.map(wrapped)
BOTH = [GRAMMAR, ToolCallGrammar("arm")]


@pytest.mark.attack("policies: no text of a policy raises an exception or stops an episode")
@given(HOSTILE)
def test_parse_returns_one_call_one_answer_or_one_problem(text: str) -> None:
    for grammar in BOTH:
        turn = grammar.parse(text)
        said = (len(turn.calls) == 1, turn.answer is not None, len(turn.problems) == 1)
        assert sum(said) == 1
        assert max(len(turn.calls), len(turn.problems)) <= 1


@given(HOSTILE)
def test_calls_are_read_as_json(text: str) -> None:
    """Check that the standard library reads the same calls from the body."""
    for call in GRAMMAR.parse(text).calls:
        [body] = tool_call.scan(text).calls
        assert json.loads(body) == {"name": call.name, "arguments": dict(call.arguments)}


@pytest.mark.attack("policies: no text of a policy raises an exception or stops an episode")
@pytest.mark.parametrize("name", TEXTS)
def test_hostile_texts_are_answered_shortly(name: str) -> None:
    for grammar in BOTH:
        for problem in grammar.parse(TEXTS[name]).problems:
            assert len(problem.message) < 400
            assert problem.message.isprintable()


@pytest.mark.attack("policies: no text of a policy raises an exception or stops an episode")
@pytest.mark.slow
@pytest.mark.parametrize("unit", [*TAGS, "<tool_call></think>", "<tool_call>{", "[", '{"a":', "é"])
def test_parse_reads_a_megabyte_by_either_way(unit: str) -> None:
    """Check that the time is linear: quadratic time would exceed the time limit of the test."""
    text = unit * (2**20 // len(unit))
    for grammar in BOTH:
        grammar.parse(text)
        grammar.parse(wrapped(text))


def test_keys_of_which_the_last_is_repeated_are_read_in_one_pass() -> None:
    keys = ",".join(f'"{number}":0' for number in range(6000))
    [problem] = GRAMMAR.parse(with_arguments(f'{{{keys},"5999":0}}')).problems
    assert problem.code == "repeated_key"


# ---------------------------------------------------------------------------- compose, then parse


def without_tags(text: str) -> bool:
    return not re.search("</?(think|tool_call|answer)>", text)


TEXT = ANY.filter(without_tags)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(["</tool_call>", "a <answer>7</answer>", "\\u003c", "\u2028", '"}}'])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
CALLS = st.builds(ToolCall, st.text(min_size=1), st.dictionaries(st.text(), VALUES, max_size=4))


@given(st.none() | TEXT, CALLS)
def test_composed_call_is_read_back(thought: str | None, call: ToolCall) -> None:
    turn = ParsedTurn(thought, (call,))
    read = GRAMMAR.parse(GRAMMAR.compose(turn))
    assert read == turn
    # == accepts 1 for 1.0 and True, so the JSON types are compared too.
    assert repr(read.calls[0].arguments) == repr(dict(call.arguments))


@given(st.none() | TEXT, TEXT.map(str.strip))
def test_composed_answer_is_read_back(thought: str | None, answer: str) -> None:
    turn = ParsedTurn(thought, answer=answer)
    assert GRAMMAR.parse(GRAMMAR.compose(turn)) == turn


@given(CALLS, st.sampled_from(["arm", None]))
def test_composed_turn_is_read_the_same_by_both_ways(call: ToolCall, compat: Any) -> None:
    grammar = ToolCallGrammar(compat)
    for turn in (ParsedTurn("a", (call,)), ParsedTurn("a", answer="b")):
        text = grammar.compose(turn)
        assert grammar.parse(text) == turn
        assert sum(text.count(stop) for stop in grammar.stop) == 1
        assert text.endswith(tuple(grammar.stop))


def test_composed_turn_reads_as_the_paper_shows_it() -> None:
    assert GRAMMAR.compose(ParsedTurn(" why ", (ZOOM,))) == f"<think> why </think>\n{CALL}"
    answer = GRAMMAR.compose(ParsedTurn(" why ", answer="7"))
    assert answer == "<think> why </think>\n<answer>7</answer>"
    assert GRAMMAR.compose(ParsedTurn()) == ""


# ------------------------------------------------------------------- the published dialect

ARM = ToolCallGrammar("arm")


@pytest.mark.parametrize(
    ("text", "call", "answer"),
    [
        (f"<think>a</think>{CALL}", ZOOM, None),
        # The first of several calls is executed; text after it is cut, including an answer.
        (f"{CALL}{wrapped('no call')}<answer>1</answer>", ZOOM, None),
        (f"<think>a</think>{CALL} and <answer>1</answer>", ZOOM, None),
        # An answer before the call does not end the episode.
        (f"<answer>1</answer>{CALL}", ZOOM, None),
        # The public expression does not treat thoughts differently.
        (f"<think>maybe {CALL} or not</think><answer>1</answer>", ZOOM, None),
        # Further keys are ignored, the last of a repeated key counts, NaN is a number.
        (wrapped(BODY[:-1] + ', "id": 1}'), ZOOM, None),
        (with_arguments('{"x": 1, "x": 2}'), ToolCall("zoom", {"x": 2}), None),
        (with_arguments('{"x": Infinity}'), ToolCall("zoom", {"x": float("inf")}), None),
        # Malformed calls are dropped, and the turn is final, with or without an answer.
        (f"{wrapped(BODY[:-1])}{CALL}", None, wrapped(BODY[:-1])),
        (f"<answer>1</answer>{wrapped('{}')}", None, "1"),
        (wrapped('{"name": 7, "arguments": {}}'), None, None),
        (f"</tool_call>{CALL}", None, "</tool_call>"),
        (f"<tool_call>{BODY}", None, f"<tool_call>{BODY}"),
        ("<think>a</think><ANSWER> 1 </Answer><answer>2</answer>", None, "1"),
        ("<answer>1", None, "<answer>1"),
        ("", None, ""),
    ],
)
def test_turns_are_read_as_the_public_code_reads_them(
    text: str, call: ToolCall | None, answer: str | None
) -> None:
    turn = ARM.parse(text)
    assert turn.problems == ()
    assert turn.calls == (() if call is None else (call,))
    assert turn.answer == (text if call is None and answer is None else answer)


def test_published_arguments_that_are_no_object_fail_as_the_tool_would() -> None:
    [problem] = ARM.parse(with_arguments("[1]")).problems
    assert (problem.code, problem.in_call) == ("bad_arguments", True)


@given(HOSTILE)
def test_calls_are_those_of_the_public_expression(text: str) -> None:
    """Compare with the public parser's expression and reader, on the text cut as in its loop."""
    cut = text[: text.find("</tool_call>") + 12] if "</tool_call>" in text else text
    found = re.search(r"<tool_call>(.*?)</tool_call>", cut, re.DOTALL)
    try:
        call = json.loads(found[1]) if found else None
        expected = isinstance(call, dict) and isinstance(call["name"], str) and "arguments" in call
    except (ValueError, RecursionError, KeyError):
        expected = False
    turn = ARM.parse(text)
    assert bool(turn.calls or turn.problems) == expected


def test_unknown_compat_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="arm"):
        ToolCallGrammar("verl")  # type: ignore[arg-type]


# ------------------------------------------------------------------------------- answers

NO_BRACKET = st.text().filter(lambda text: "<" not in text)


@given(thought=NO_BRACKET, blank=st.sampled_from(["", "\n", " \n\t"]), answer=NO_BRACKET)
def test_expression_matches_what_is_left_of_an_answer(
    thought: str, blank: str, answer: str
) -> None:
    whole = f"<think>{thought}</think>{blank}<answer>{answer}</answer>"
    for prefix in ("", "<think>", f"<think>{thought}</think>{blank}<answer>"):
        assert whole.startswith(prefix)
        assert re.fullmatch(GRAMMAR.answer_regex(prefix), whole.removeprefix(prefix))
    after_thought = whole.removeprefix(f"<think>{thought}</think>")
    assert re.fullmatch(GRAMMAR.answer_regex("<think></think>"), after_thought)


@given(
    st.sampled_from(["", "<think>", "<think> So.", "<think></think>", "<think>a</think><answer>"]),
    st.lists(st.sampled_from([*TAGS, "<", ">", "a", "\n"]), max_size=8).map("".join),
)
def test_answer_regex_matches_only_answers(prefix: str, rest: str) -> None:
    turn = GRAMMAR.parse(prefix + rest)
    if re.fullmatch(GRAMMAR.answer_regex(prefix), rest):
        assert (turn.answer is not None, turn.problems) == (True, ())
        assert turn.thought is not None


@pytest.mark.parametrize("call", [CALL, "a</think>" + CALL, "a</think> so <answer>7</answer>"])
def test_expression_matches_no_call_and_no_chatter(call: str) -> None:
    assert not re.fullmatch(GRAMMAR.answer_regex("<think>"), call)


# ----------------------------------------------------------------- instructions and results


def picture() -> Image:
    return Image.from_pixels(np.zeros((2, 3, 3), np.uint8))


def test_result_is_one_response_and_names_each_image() -> None:
    first, second = picture(), picture()
    parts = GRAMMAR.render((first, "Two views.", second), ["observation_1", "observation_2"])
    assert parts == (
        "<tool_response>\nobservation_1:\n",
        first,
        "\nTwo views.\nobservation_2:\n",
        second,
        "\n</tool_response>",
    )


def test_video_of_a_result_stays_a_video() -> None:
    image, video = picture(), Video((picture(),), (0.0,))
    assert GRAMMAR.render(("Look.", video, image), ["observation_1"]) == (
        "<tool_response>\nLook.\n",
        video,
        "\nobservation_1:\n",
        image,
        "\n</tool_response>",
    )


def test_text_result_is_one_part() -> None:
    assert GRAMMAR.render(("True",), ()) == ("<tool_response>\nTrue\n</tool_response>",)
    assert GRAMMAR.render((), ()) == ("<tool_response>\n</tool_response>",)


def test_error_is_rendered_as_a_response() -> None:
    assert GRAMMAR.render_error("No.") == ("<tool_response>\nError: No.\n</tool_response>",)


# -------------------------------------------------------------------------------- schemas


class Range(Arguments):
    lower: Annotated[int, Field(ge=0)]


class BoxArguments(Arguments):
    """For programmers."""

    image: str = Field(description="Which.", min_length=1)
    title: Annotated[
        list[Annotated[float, Field(ge=0, le=1000)]],
        Field(min_length=4, max_length=4, description="A field may be called title."),
    ]
    ranges: list[Range] = Field(default_factory=list, max_length=8)


class BoxTool(Tool[BoxArguments]):
    name = "box"
    description = 'Cuts "out" <a> part.'
    arguments = BoxArguments

    @override
    def example(self) -> BoxArguments:
        return BoxArguments(image="original_image", title=[0, 0, 500, 500])


def test_schemas_keep_items_and_bounds() -> None:
    text = GRAMMAR.instructions([BoxTool(), BoxTool()])
    lines = text.split("<tools>\n")[1].split("\n</tools>")[0].split("\n")
    assert len(lines) == 2
    schema = json.loads(lines[0])
    assert (schema["type"], schema["function"]["name"]) == ("function", "box")
    assert schema["function"]["description"] == 'Cuts "out" <a> part.'
    parameters = schema["function"]["parameters"]
    assert parameters["properties"]["title"] == {
        "type": "array",
        "items": {"type": "number", "minimum": 0, "maximum": 1000},
        "minItems": 4,
        "maxItems": 4,
        "description": "A field may be called title.",
    }
    assert parameters["properties"]["image"]["minLength"] == 1
    assert parameters["$defs"]["Range"]["properties"]["lower"]["minimum"] == 0
    assert parameters["required"] == ["image", "title"]
    assert parameters["additionalProperties"] is False
    assert "For programmers" not in text


def test_example_in_the_instructions_is_a_call_of_the_first_tool() -> None:
    [body] = re.findall(r"<tool_call>\n(.*)\n</tool_call>", GRAMMAR.instructions([BoxTool()]))
    [call] = GRAMMAR.parse(wrapped(body)).calls
    assert call.name == "box"
    assert BoxArguments(**call.arguments) == BoxTool().example()


def test_instructions_without_tools_mention_no_call() -> None:
    text = GRAMMAR.instructions([])
    assert "tool_call" not in text
    assert "<answer></answer>" in text
