"""Tests `TagGrammar`: reading, every problem, hostile text, the round trip, and messages."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field
from typing_extensions import override

from visenv.errors import UnknownNameError
from visenv.grammar import Grammar, ParsedTurn, ToolCall
from visenv.grammar.tags import TagGrammar, unfenced
from visenv.testing.survival import PIECES, TEXTS
from visenv.tools import Arguments, Tool
from visenv.types import Image, Video

TAGS = TagGrammar(("search", "problem", "code"))
GRAMMAR: Grammar = TAGS
DARK = ToolCall("problem", {"labels": ["dark"]})

# --------------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("action", "call"),
    [
        ("<search> who built it? </search>", ToolCall("search", {"query": "who built it?"})),
        ("<problem>{'dark'}</problem>", DARK),
        (
            "<problem> {\"dark\" , 'noise'} </problem>",
            ToolCall("problem", {"labels": ["dark", "noise"]}),
        ),
        ("<problem>{'dark',}</problem>", DARK),
        ("<problem>{}</problem>", ToolCall("problem", {"labels": []})),
        ("<code>```python\nx = 1\n```</code>", ToolCall("code", {"code": "x = 1"})),
        ("<code>\nx = 1\n</code>", ToolCall("code", {"code": "x = 1"})),
        ("<code>if a < b: c</code>", ToolCall("code", {"code": "if a < b: c"})),
    ],
)
def test_actions_call_their_tools(action: str, call: ToolCall) -> None:
    assert GRAMMAR.parse(f"<think>why</think>\n{action}") == ParsedTurn("why", (call,))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("```python\na\n```", "a"),
        ("```py\na```", "a"),
        ("```Python3\na\n\nb\n```\nand so on", "a\n\nb"),
        ("```\na\n```", "a"),
        ("```python\na", "a"),  # the fence is never closed
        ("```python\nprint('```')\n```", "print('```')"),
        ("a\n```", "a\n```"),  # no fence at the beginning: unchanged
        ("``` python\na\n```", "python\na"),
        ("```pythonic\na\n```", "pythonic\na"),
        ("", ""),
        ("```", ""),
        ("``````", ""),
    ],
)
def test_fence_is_taken_off(body: str, code: str) -> None:
    assert unfenced(body) == code


def test_answer_is_stripped() -> None:
    assert GRAMMAR.parse("<think>a</think><answer> 4 rings\n</answer>").answer == "4 rings"


def test_action_that_is_not_there_is_text() -> None:
    coding = TagGrammar(("problem", "code"))
    turn = coding.parse("<search>x</search><problem>{'dark'}</problem>")
    assert turn == ParsedTurn(None, (DARK,))
    assert coding.stop == ("</problem>", "</code>", "</answer>")


def test_unknown_action_is_named() -> None:
    with pytest.raises(UnknownNameError, match="'search'"):
        TagGrammar(("serch",))


# --------------------------------------------------------------------------------- problems

PROBLEMS = [
    (
        "",
        "no_action",
        False,
        "one <search>…</search>, one <problem>…</problem>, one <code>…</code>",
    ),
    ("<think>a</think>", "no_action", False, "or one <answer>…</answer>"),
    ("<think>a<code>x</code>", "thought_unclosed", False, "never closed"),
    ("<answer>7", "answer_unclosed", False, "not closed"),
    ("<search>x", "search_unclosed", True, "<search> is not closed"),
    ("<problem>{'dark'}", "problem_unclosed", True, "<problem> is not closed"),
    ("<code>print('<answer>')</code>", "code_unclosed", True, "before another tag"),
    ("<search>a</search><code>b</code>", "several_calls", True, "one tool to a turn"),
    ("<answer>1</answer><answer>1</answer>", "several_answers", False, "several"),
    ("<code>a</code><answer>1</answer>", "call_and_answer", True, "not both"),
    ("<problem>dark</problem>", "bad_labels", True, "{'dark', 'noise'}"),
    ("<problem>['dark']</problem>", "bad_labels", True, "set of quoted labels"),
    ("<problem>{'dark' 'noise'}</problem>", "bad_labels", True, "set"),
    ("<problem>{'dark}</problem>", "bad_labels", True, "set"),
    ("<problem>{'a'}; __import__('os')</problem>", "bad_labels", True, "set"),
]


@pytest.mark.parametrize(("text", "code", "in_call", "message"), PROBLEMS)
def test_problems_have_codes_and_give_the_remedy(
    text: str, code: str, in_call: bool, message: str
) -> None:
    turn = GRAMMAR.parse(text)
    assert (turn.calls, turn.answer) == ((), None)
    [problem] = turn.problems
    assert (problem.code, problem.in_call) == (code, in_call)
    assert message in problem.message


def test_codes_in_the_docstring_have_a_case() -> None:
    documented = re.findall(r"``(\w+)``", TagGrammar.parse.__doc__ or "")
    assert sorted(documented) == sorted({code for _, code, _, _ in PROBLEMS})


# ------------------------------------------------------------------------------ format


@pytest.mark.parametrize(
    "text",
    [
        "<think>a</think><answer>b</answer>",
        " <think></think>\n<code></code>\n",
        "<think>a < b</think><problem>nonsense</problem>",  # only the tags are checked
    ],
)
def test_thought_and_one_action_are_well_formed(text: str) -> None:
    assert TAGS.well_formed(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<answer>b</answer>",
        "<think>a</think>",
        "<answer>b</answer><think>a</think>",
        "<think>a</think><think>b</think>",
        "<think>a</think> so <answer>b</answer>",
        "so <think>a</think><answer>b</answer>",
        "<think>a</think><answer>b</answer> done",
        "<think>a</think><answer>b</code>",
        "<think>a</think></answer>b<answer>",
        "<think>a</think><answer>b",
        "<think><code></think><answer>b</answer>",
        "<think>a</think><code>x</code><answer>b</answer>",
    ],
)
def test_turn_of_another_form_is_not_well_formed(text: str) -> None:
    assert not TAGS.well_formed(text)


# ---------------------------------------------------------------------------- any text

NAMES = ("think", "search", "problem", "code", "answer")
ALL_TAGS = [f"<{slash}{name}>" for name in NAMES for slash in ("", "/")]
ANY = st.text(st.characters(exclude_categories=()))
SOUP = st.lists(
    st.sampled_from((*ALL_TAGS, *ALL_TAGS, *PIECES, "{'", "'}", "', '", "```", "python\n")) | ANY
)
HOSTILE = ANY | SOUP.map("".join)


@pytest.mark.attack("policies: no text of a policy raises an exception or stops an episode")
@given(HOSTILE)
def test_parse_returns_one_call_one_answer_or_one_problem(text: str) -> None:
    turn = GRAMMAR.parse(text)
    assert (len(turn.calls) == 1) + (turn.answer is not None) + (len(turn.problems) == 1) == 1


@given(HOSTILE)
def test_well_formed_turn_acts_unless_its_labels_are_bad(text: str) -> None:
    if TAGS.well_formed(text):
        assert [each.code for each in TAGS.parse(text).problems] in ([], ["bad_labels"])


@pytest.mark.attack(
    "policies: text that looks like a result, a tag or a control token does nothing"
)
@given(HOSTILE.map(lambda text: text.replace("</think>", "")))
def test_thought_of_any_text_never_acts(text: str) -> None:
    [problem] = GRAMMAR.parse(f"<think>{text}</think>").problems
    assert problem.code == "no_action"


@pytest.mark.attack(
    "policies: text that looks like a result, a tag or a control token does nothing"
)
@pytest.mark.parametrize("name", TEXTS)
def test_problem_never_echoes_hostile_text(name: str) -> None:
    for problem in GRAMMAR.parse(TEXTS[name]).problems:
        assert len(problem.message) < 250
        assert "<image>" not in problem.message


@pytest.mark.attack("policies: no text of a policy raises an exception or stops an episode")
def test_set_of_labels_cannot_backtrack() -> None:
    """Check that every repetition in the expression is possessive."""
    from visenv.grammar import tags

    for repetition in re.finditer(r"[*+]\+?", tags._LABELS.pattern):
        assert repetition[0].endswith("+"), tags._LABELS.pattern


# ---------------------------------------------------------------------------- compose, then parse


def without_tags(text: str) -> bool:
    return not any(tag in text for tag in ALL_TAGS)


TEXT = ANY.filter(without_tags)
STRIPPED = TEXT.map(str.strip).filter(without_tags)
LABELS = st.lists(st.from_regex(r"[a-z0-9 ]{1,12}", fullmatch=True), max_size=4)
CALLS = (
    st.builds(lambda query: ToolCall("search", {"query": query}), STRIPPED)
    | st.builds(lambda labels: ToolCall("problem", {"labels": labels}), LABELS)
    | st.builds(lambda code: ToolCall("code", {"code": code}), STRIPPED)
)


@given(st.none() | TEXT, CALLS)
def test_composed_call_is_read_back(thought: str | None, call: ToolCall) -> None:
    turn = ParsedTurn(thought, (call,))
    assert GRAMMAR.parse(GRAMMAR.compose(turn)) == turn


@given(st.none() | TEXT, STRIPPED)
def test_composed_answer_is_read_back(thought: str | None, answer: str) -> None:
    turn = ParsedTurn(thought, answer=answer)
    assert GRAMMAR.parse(GRAMMAR.compose(turn)) == turn


@given(TEXT, CALLS)
def test_composed_turn_is_well_formed_and_ends_with_a_stop_string(
    thought: str, call: ToolCall
) -> None:
    for turn in (ParsedTurn(thought, (call,)), ParsedTurn(thought, answer="b")):
        text = GRAMMAR.compose(turn)
        assert TAGS.well_formed(text)
        assert text.endswith(tuple(GRAMMAR.stop))
        assert sum(text.count(stop) for stop in GRAMMAR.stop) == 1


def test_composed_turn_reads_as_the_paper_shows_it() -> None:
    code = ParsedTurn(" why ", (ToolCall("code", {"code": "x = 1"}),))
    assert GRAMMAR.compose(code) == "<think> why </think><code>```python\nx = 1\n```</code>"
    two = ParsedTurn(None, (ToolCall("problem", {"labels": ["rotation90", "dark"]}),))
    assert GRAMMAR.compose(two) == "<problem>{'rotation90', 'dark'}</problem>"


# ----------------------------------------------------------------- instructions and results


class Words(Arguments):
    """Holds one argument."""

    query: str = Field(description="what to look for")


class Finder(Tool[Words]):
    """Has an example."""

    name = "search"
    description = "Finds things."
    arguments = Words

    @override
    def example(self) -> Words:
        return Words(query="a bridge")


def test_results_stand_inside_information() -> None:
    image = Image.from_pixels(np.zeros((2, 3, 3), np.uint8))
    assert GRAMMAR.render(("first", "second"), ()) == (
        "<information>\nfirst\n\nsecond\n</information>",
    )
    assert GRAMMAR.render(("text", image), ("result_1",)) == (
        "<information>\ntext\n",
        image,
        "</information>",
    )
    video = Video((image,), (0.0,))
    assert GRAMMAR.render(("text", video), ()) == (
        "<information>\ntext\n",
        video,
        "</information>",
    )
    assert GRAMMAR.render((), ()) == ("<information></information>",)
    assert GRAMMAR.render_error("no") == ("<information>\nError: no\n</information>",)


def test_instructions_show_each_action_as_it_is_written() -> None:
    tools: list[Tool[Any]] = [Finder()]
    text = TagGrammar(("search",)).instructions(tools)
    for part in (
        "<think>",
        "<search>a bridge</search>\nFinds things.",
        "<answer>",
        "<information>",
    ):
        assert part in text


@pytest.mark.parametrize("prefix", ["", "<think>", "<think>so</think><answer>"])
def test_forced_answer_matches_what_is_composed(prefix: str) -> None:
    whole = GRAMMAR.compose(ParsedTurn("so", answer="7"))
    assert re.fullmatch(GRAMMAR.answer_regex(prefix), whole.removeprefix(prefix))
    call = GRAMMAR.compose(ParsedTurn("so", (DARK,)))
    assert not re.fullmatch(GRAMMAR.answer_regex(prefix), call)
