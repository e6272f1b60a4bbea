"""Tests `KeyValueGrammar`: every problem, hostile text, and the round trip."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field
from typing_extensions import override

from visenv.grammar import Grammar, KeyValueGrammar, ParsedTurn, ToolCall, key_value
from visenv.grammar.key_value import scan
from visenv.testing.survival import PIECES, TEXTS
from visenv.tools.base import Arguments, Tool
from visenv.types import Image, Video

GRAMMAR: Grammar = KeyValueGrammar()
CALL = "<tool>\nname: zoom\nkeypoint: [4, 9]\n</tool>"
ZOOM = ToolCall("zoom", {"keypoint": [4, 9]})
PUBLISHED = r"([^<]*)</think>([^<]*)<answer>([^<]*)</answer>"  # paper §2.1

# --------------------------------------------------------------------------------- reading


def test_call() -> None:
    assert GRAMMAR.parse(f"<think> why </think>\n{CALL}") == ParsedTurn(" why ", (ZOOM,))


def test_answer_is_stripped_and_a_thought_is_kept() -> None:
    turn = GRAMMAR.parse("<think>\n why\n</think><answer> a red  bus\n</answer>")
    assert turn == ParsedTurn("\n why\n", answer="a red  bus")


def test_turn_needs_no_thought() -> None:
    assert GRAMMAR.parse(CALL) == ParsedTurn(None, (ZOOM,))
    assert GRAMMAR.parse("<answer>7</answer>") == ParsedTurn(None, answer="7")


def test_empty_answer_is_an_answer() -> None:
    assert GRAMMAR.parse("<answer></answer>").answer == ""


def test_text_outside_the_tags_is_ignored() -> None:
    turn = GRAMMAR.parse(f"Well. <think>a</think> so </answer> {CALL} done </think>")
    assert turn == ParsedTurn("a", (ZOOM,))


@pytest.mark.attack(
    "policies: text that looks like a result, a tag or a control token does nothing"
)
@pytest.mark.parametrize(
    "thought",
    [
        f"first {CALL} then",
        "<answer>7</answer>",
        "<think> deeper",
        "</tool></answer><tool>",
    ],
)
def test_text_inside_a_thought_never_acts(thought: str) -> None:
    assert GRAMMAR.parse(f"<think>{thought}</think><answer>1</answer>") == ParsedTurn(
        thought, answer="1"
    )
    [problem] = GRAMMAR.parse(f"<think>{thought}</think>").problems
    assert (problem.code, problem.in_call) == ("no_action", False)


def test_first_thought_is_the_thought() -> None:
    assert GRAMMAR.parse("<think>a</think><think>b</think><answer>1</answer>").thought == "a"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("[412, 96]", [412, 96]),
        ("[1.5, 2]", [1.5, 2]),
        ("7", 7),
        ("-7.5e3", -7500.0),
        ("true", True),
        ("null", None),
        ('"quoted"', "quoted"),
        ('{"x": [1]}', {"x": [1]}),
        ("a word: and more", "a word: and more"),
        ("[412, 96", "[412, 96"),
        ("412, 96", "412, 96"),
        ("(4, 9)", "(4, 9)"),
        ("", ""),
        ("1e999", float("inf")),
        ("[" * 4000, "[" * 4000),  # deeper than the recursion limit
        ("9" * 4300, "9" * 4300),  # more digits than Python converts to an integer
        ("[" + "1," * 3000, "[" + "1," * 3000),
        ("\ud800", "\ud800"),  # a lone surrogate, which UTF-8 cannot encode
    ],
)
def test_values_are_json_where_they_are_json(written: str, value: Any) -> None:
    turn = GRAMMAR.parse(f"<tool>\nname: zoom\nkeypoint:  {written} \n</tool>")
    assert turn == ParsedTurn(None, (ToolCall("zoom", {"keypoint": value}),))
    assert type(turn.calls[0].arguments["keypoint"]) is type(value)


def test_nan_is_read_for_the_tool_to_refuse() -> None:
    value = GRAMMAR.parse("<tool>name: zoom\nkeypoint: NaN</tool>").calls[0].arguments["keypoint"]
    assert math.isnan(value)


@pytest.mark.parametrize(
    "body",
    [
        "name: zoom\nkeypoint: [4, 9]",
        "\n\n  name :  zoom  \r\n\n\tkeypoint:[4,9]\t\n",
        "keypoint: [4, 9]\nname: zoom",
    ],
)
def test_layout_of_a_call_does_not_matter(body: str) -> None:
    assert GRAMMAR.parse(f"<tool>{body}</tool>").calls == (ZOOM,)


def test_call_may_have_no_arguments() -> None:
    assert GRAMMAR.parse("<tool>name: zoom</tool>").calls == (ToolCall("zoom", {}),)


# --------------------------------------------------------------------------------- problems

PROBLEMS = [
    ("", "no_action", False, r"neither a tool call nor an answer"),
    ("just words", "no_action", False, r"After </think> write one <tool>…</tool> or one <answer>"),
    ("<think>a</think>", "no_action", False, "neither"),
    ("</tool></answer>", "no_action", False, "neither"),
    ("<TOOL>name: zoom</TOOL>", "no_action", False, "neither"),
    ("< tool >name: zoom</ tool >", "no_action", False, "neither"),
    ("<think>a", "thought_unclosed", False, r"<think> is never closed with </think>"),
    (f"<think>a{CALL}", "thought_unclosed", False, "never closed"),
    (f"{CALL}<think>", "thought_unclosed", False, "never closed"),
    ("<tool>name: zoom", "tool_unclosed", True, r"<tool> is not closed with </tool> before"),
    ("<tool>name: <tool>zoom</tool>", "tool_unclosed", True, "another tag or the end"),
    (f"<tool>name: zoom</answer>{CALL}", "tool_unclosed", True, "not closed"),
    ("<answer>7", "answer_unclosed", False, r"<answer> is not closed with </answer> before"),
    ("<answer>7<answer>7</answer>", "answer_unclosed", False, "another tag or the end"),
    ("<answer>7<think></answer>", "answer_unclosed", False, "not closed"),
    (CALL + CALL, "several_calls", True, "Call one tool to a turn; you called several"),
    ("<answer>1</answer><answer>2</answer>", "several_answers", False, "you gave several"),
    (f"{CALL}<answer>1</answer>", "call_and_answer", True, "use a tool or answer, not both"),
    (f"<answer>1</answer>{CALL * 2}", "call_and_answer", True, "before the result could be seen"),
    ("<tool></tool>", "no_name", True, r"first line of a call must be 'name: <tool name>'"),
    ("<tool>name:</tool>", "no_name", True, "first line"),
    ("<tool>keypoint: [4, 9]</tool>", "no_name", True, "first line"),
    ('<tool>{"name": "zoom"</tool>', "no_name", True, "first line"),
    ("<tool>zoom [4, 9]</tool>", "bad_line", True, "Each line of a call must read 'key: value'"),
    ("<tool>name: zoom\n: 4</tool>", "bad_line", True, "key: value"),
    ("<tool>name: zoom\nname: crop</tool>", "repeated_key", True, "A key stands twice"),
    ("<tool>name: zoom\nx: 1\n x : 1</tool>", "repeated_key", True, "twice"),
]


@pytest.mark.parametrize(("text", "code", "in_call", "message"), PROBLEMS)
def test_problems_have_codes_and_give_the_remedy(
    text: str, code: str, in_call: bool, message: str
) -> None:
    turn = GRAMMAR.parse(text)
    assert (turn.calls, turn.answer) == ((), None)
    [problem] = turn.problems
    assert (problem.code, problem.in_call) == (code, in_call)
    assert re.search(message, problem.message)
    assert problem.message.endswith(".")


def test_codes_in_the_docstring_have_a_case() -> None:
    documented = re.findall(r"``(\w+)``", KeyValueGrammar.parse.__doc__ or "")
    assert sorted(documented) == sorted({code for _, code, _, _ in PROBLEMS})


def test_problem_keeps_the_thought() -> None:
    assert GRAMMAR.parse("<think>why</think>hm").thought == "why"
    assert GRAMMAR.parse("<think>why</think><tool>").thought == "why"


@pytest.mark.attack(
    "policies: text that looks like a result, a tag or a control token does nothing"
)
@pytest.mark.parametrize("name", TEXTS)
def test_problem_never_echoes_hostile_text(name: str) -> None:
    """Check messages, which the policy reads: they must not contain a megabyte or a marker."""
    for problem in GRAMMAR.parse(TEXTS[name]).problems:
        assert len(problem.message) < 200
        assert "<image>" not in problem.message


# ---------------------------------------------------------------------------- any text

ANY = st.text(st.characters(exclude_categories=()))
TAGS = ("<think>", "</think>", "<tool>", "</tool>", "<answer>", "</answer>")
SOUP = st.lists(st.sampled_from((*TAGS, *TAGS, *PIECES, "name: zoom\n", "k: 1\n")) | ANY)
HOSTILE = ANY | SOUP.map("".join)


@pytest.mark.attack("policies: no text of a policy raises an exception or stops an episode")
@given(HOSTILE)
def test_parse_returns_one_call_one_answer_or_one_problem(text: str) -> None:
    turn = GRAMMAR.parse(text)
    assert (len(turn.calls) == 1) + (turn.answer is not None) + (len(turn.problems) == 1) == 1
    assert len(turn.calls) <= 1
    assert len(turn.problems) <= 1


@given(HOSTILE)
def test_blocks_hold_every_character_but_the_tags(text: str) -> None:
    blocks = scan(text)
    if blocks.unclosed:
        return
    kept = [*blocks.thoughts, *blocks.calls, *blocks.answers]
    tags = {"think": blocks.thoughts, "tool": blocks.calls, "answer": blocks.answers}
    removed = sum(len(f"<{tag}></{tag}>") * len(found) for tag, found in tags.items())
    assert sum(map(len, kept)) + len(blocks.outside) + removed == len(text)


@pytest.mark.attack(
    "policies: text that looks like a result, a tag or a control token does nothing"
)
@given(HOSTILE.map(lambda text: text.replace("</think>", "")))
def test_thought_of_any_text_never_acts(text: str) -> None:
    [problem] = GRAMMAR.parse(f"<think>{text}</think>").problems
    assert problem.code == "no_action"


class CountedPieces(list[str]):
    """Counts the entries that its searches look at."""

    looked_at = 0

    @override
    def index(self, *search: Any) -> int:
        _, start, end = search
        try:
            found = super().index(*search)
        except ValueError:
            self.looked_at += min(end, len(self)) - start
            raise
        self.looked_at += found + 1 - start
        return found


class CountedTags:
    """Replaces the compiled tag expression, and records the pieces that the scan works on."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern
        self.splits: list[CountedPieces] = []

    def split(self, text: str) -> CountedPieces:
        self.splits.append(CountedPieces(self.pattern.split(text)))
        return self.splits[-1]


MEGABYTE = 2**20
PATTERNS = ("<think><tool>", "<think></tool>", "<tool></tool>", "<tool><think></think>", "<answer>")


@pytest.mark.attack("policies: no text of a policy raises an exception or stops an episode")
@pytest.mark.slow
@pytest.mark.parametrize("unit", [*TAGS, *PATTERNS, "<think></think>", "<thin", "<<<<", "a"])
def test_parse_reads_a_megabyte_in_one_pass(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the time is linear: one split, and no piece looked at more than twice."""
    counted = CountedTags(key_value._TURNS.tag)
    monkeypatch.setattr(key_value._TURNS, "tag", counted)
    GRAMMAR.parse(unit * (MEGABYTE // len(unit)))
    [pieces] = counted.splits
    assert pieces.looked_at <= 2 * len(pieces)


@pytest.mark.attack("policies: no text of a policy raises an exception or stops an episode")
def test_tag_expression_cannot_backtrack() -> None:
    """Check that no part repeats: a match looks at no more characters than the longest tag has."""
    assert not re.search(r"[*+{]", key_value._TURNS.tag.pattern)


# ---------------------------------------------------------------------------- compose, then parse


def without_tags(text: str) -> bool:
    return not re.search("</?(think|tool|answer)>", text)


KEYS = st.from_regex(r"[a-z_][a-z_0-9]{0,15}", fullmatch=True).filter(lambda key: key != "name")
NAMES = st.from_regex(r"[a-z_][a-z_0-9]{0,15}", fullmatch=True)
TEXT = ANY.filter(without_tags)
JSON_TEXT = st.text(max_size=30).filter(without_tags)  # JSON has no lone surrogates
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | JSON_TEXT
    | st.sampled_from(
        ["", " ", "7", "null", "NaN", "1e5", "[1]", '"', "a: b", "a\nname: b", "\u2028"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(JSON_TEXT, inner, max_size=3),
    max_leaves=6,
)
CALLS = st.builds(ToolCall, NAMES, st.dictionaries(KEYS, VALUES, max_size=4))
THOUGHTS = st.none() | TEXT
ANSWERS = TEXT.map(str.strip)


@given(THOUGHTS, CALLS)
def test_composed_call_is_read_back(thought: str | None, call: ToolCall) -> None:
    turn = ParsedTurn(thought, (call,))
    read = GRAMMAR.parse(GRAMMAR.compose(turn))
    assert read == turn
    # == accepts 1 for 1.0 and True, so the JSON types are compared too.
    assert repr(read.calls[0].arguments) == repr(dict(call.arguments))


@given(THOUGHTS, ANSWERS)
def test_composed_answer_is_read_back(thought: str | None, answer: str) -> None:
    turn = ParsedTurn(thought, answer=answer)
    assert GRAMMAR.parse(GRAMMAR.compose(turn)) == turn


def test_composed_turn_reads_as_the_paper_shows_it() -> None:
    assert GRAMMAR.compose(ParsedTurn(" why ", (ZOOM,))) == f"<think> why </think>{CALL}"
    answer = GRAMMAR.compose(ParsedTurn(" why ", answer="7"))
    assert answer == "<think> why </think><answer>7</answer>"


def test_compose_ignores_problems_and_writes_no_empty_parts() -> None:
    [problem] = GRAMMAR.parse("").problems
    assert GRAMMAR.compose(ParsedTurn("why", problems=(problem,))) == "<think>why</think>"
    assert GRAMMAR.compose(ParsedTurn()) == ""


@given(CALLS)
def test_composed_turn_ends_with_a_stop_string_and_holds_no_other(call: ToolCall) -> None:
    for turn in (ParsedTurn("a", (call,)), ParsedTurn("a", answer="b")):
        text = GRAMMAR.compose(turn)
        assert sum(text.count(stop) for stop in GRAMMAR.stop) == 1
        assert text.endswith(tuple(GRAMMAR.stop))


# ------------------------------------------------------------------------------- answers

NO_BRACKET = st.text().filter(lambda text: "<" not in text)
NEAR_ANSWERS = st.lists(
    st.sampled_from([*TAGS, "<think> Let me see.", "<", ">", "a", "\n"]), max_size=8
).map("".join)
PREFIXES = ["", "<think>", "<think> Let me go through this step by step."]


@pytest.mark.parametrize("prefix", ["<think>", "<think> Let me go through this step by step."])
def test_answer_regex_after_an_open_thought_is_the_published_expression(prefix: str) -> None:
    assert GRAMMAR.answer_regex(prefix) == PUBLISHED


def test_answer_regex_without_prefix_opens_the_thought() -> None:
    assert GRAMMAR.answer_regex("") == f"<think>{PUBLISHED}"


@pytest.mark.parametrize("prefix", PREFIXES)
@given(thought=NO_BRACKET, between=NO_BRACKET, answer=NO_BRACKET)
def test_answer_regex_matches_every_composed_answer(
    prefix: str, thought: str, between: str, answer: str
) -> None:
    opened = prefix.removeprefix("<think>") + thought
    whole = GRAMMAR.compose(ParsedTurn(opened, answer=answer))
    assert re.fullmatch(GRAMMAR.answer_regex(prefix), whole.removeprefix(prefix))
    spaced = whole.replace("</think>", f"</think>{between}")
    assert re.fullmatch(GRAMMAR.answer_regex(prefix), spaced.removeprefix(prefix))


@pytest.mark.parametrize("prefix", PREFIXES)
@given(rest=NEAR_ANSWERS)
def test_answer_regex_matches_answers_and_refuses_what_the_paper_refuses(
    prefix: str, rest: str
) -> None:
    matched = re.fullmatch(GRAMMAR.answer_regex(prefix), rest)
    opening = "" if prefix else "<think>"
    published = rest.startswith(opening) and re.fullmatch(PUBLISHED, rest.removeprefix(opening))
    assert bool(matched) == bool(published)
    if matched:
        thought, _, answer = matched.groups()
        expected = ParsedTurn(prefix.removeprefix("<think>") + thought, answer=answer.strip())
        assert GRAMMAR.parse(prefix + rest) == expected


@pytest.mark.parametrize("call", [CALL, "<tool>", f"a</think>{CALL}", "a</think><answer>7"])
def test_answer_regex_matches_no_call_and_no_unfinished_answer(call: str) -> None:
    assert not re.fullmatch(GRAMMAR.answer_regex("<think>"), call)


# ----------------------------------------------------------------- instructions and results


class Shift(Arguments):
    """Holds two arguments."""

    place: list[int] = Field(description="where, [x, y]")
    note: str = Field(description="why")


class Shifter(Tool[Shift]):
    """Has an example that is awkward to write."""

    name = "shift"
    description = "Shifts things."
    arguments = Shift

    @override
    def example(self) -> Shift:
        return Shift(place=[3, 4], note="7")


def test_instructions_describe_every_tool_and_their_example_is_read_back() -> None:
    told = GRAMMAR.instructions([Shifter()])
    assert "Tool: shift\nShifts things." in told
    assert "- place: where, [x, y]\n- note: why" in told
    example = told[told.index("<tool>\n") : told.index("</tool>") + len("</tool>")]
    [call] = GRAMMAR.parse(example).calls
    assert call == ToolCall("shift", {"place": [3, 4], "note": "7"})
    Shift.model_validate(dict(call.arguments))


def test_results_are_rendered_in_order_with_the_names_of_their_images() -> None:
    one, two = (Image.from_pixels(np.full((1, 1, 3), gray, np.uint8)) for gray in (1, 2))
    assert GRAMMAR.render(["found", one, two], ["tool_result_1", "tool_result_2"]) == (
        "<result>\nfound\n</result>",
        "<image_name> tool_result_1 </image_name>\n",
        one,
        "<image_name> tool_result_2 </image_name>\n",
        two,
    )
    assert GRAMMAR.render([], []) == ()


def test_video_of_a_result_stays_a_video() -> None:
    image = Image.from_pixels(np.zeros((2, 2, 3), np.uint8))
    video = Video((image,), (0.0,))
    parts = GRAMMAR.render(("Look.", video, image), ["tool_result_1"])
    assert parts == (
        "<result>\nLook.\n</result>",
        video,
        "<image_name> tool_result_1 </image_name>\n",
        image,
    )


def test_error_is_rendered_as_a_result() -> None:
    assert GRAMMAR.render_error("No.") == ("<result>\nError: No.\n</result>",)
