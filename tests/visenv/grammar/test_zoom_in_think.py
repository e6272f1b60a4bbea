from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.grammar import ParsedTurn, ToolCall, ZoomInThinkGrammar
from visenv.grammar.zoom_in_think import LONGEST_BLOCK, scan

GRAMMAR = ZoomInThinkGrammar()
BOXES = [[12, 40, 96, 88], [120, 44.5, 180, 90]]


def test_round_1_is_a_thought_with_boxes_inside() -> None:
    turn = GRAMMAR.parse(
        "<think>Far away. <zoom>[[12, 40, 96, 88], [1, 2, 3, 4]]</zoom> So.</think>"
    )
    boxes = [[12, 40, 96, 88], [1, 2, 3, 4]]
    assert turn == ParsedTurn("Far away.  So.", (ToolCall("zoom", {"boxes": boxes}),))


def test_round_2_is_a_second_thought_and_an_answer() -> None:
    turn = GRAMMAR.parse("<rethink>Both are blue.</rethink>\n<answer> 2 </answer>")
    assert turn == ParsedTurn("Both are blue.", answer="2")


def test_thought_without_boxes_is_well_formed() -> None:
    assert GRAMMAR.parse("<think>It is clear.</think>") == ParsedTurn("It is clear.")


def test_text_after_the_thought_is_ignored() -> None:
    text = "<think>a<zoom>[[1, 2, 3, 4]]</zoom></think> More <zoom>[[5, 6, 7, 8]]</zoom>"
    assert GRAMMAR.parse(text).calls == (ToolCall("zoom", {"boxes": [[1, 2, 3, 4]]}),)
    assert scan(text).outside == " More <zoom>[[5, 6, 7, 8]]</zoom>"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "no_action"),
        ("no tags", "no_action"),
        ("<zoom>[[1, 2, 3, 4]]</zoom>", "no_action"),
        ("<rethink>only</rethink>", "no_action"),
        ("<think>open", "thought_unclosed"),
        ("<think>a <zoom>[[1, 2, 3, 4]]</think>", "zoom_unclosed"),
        ("<think><zoom>[[1,2,3,4]]</zoom><zoom>[[1,2,3,4]]</zoom></think>", "several_calls"),
        ("<think><zoom>[[1, 2, 3, 4]]</zoom></think><answer>4</answer>", "call_and_answer"),
        ("<think>It is <answer>4</answer>.</think>", "answer_in_thought"),
        ("<think><answer>4 <zoom>[[1, 2, 3, 4]]</zoom></answer></think>", "answer_in_thought"),
        ("<answer>1</answer><answer>2</answer>", "several_answers"),
        ("<rethink>a</rethink><answer>4", "answer_unclosed"),
        ("<think><zoom>the bus</zoom></think>", "bad_boxes"),
        ("<think><zoom>[]</zoom></think>", "bad_boxes"),
        ("<think><zoom>[10, 20, 60, 80]</zoom></think>", "bad_boxes"),
        ("<think><zoom>{}</zoom></think>", "bad_boxes"),
        (f"<think><zoom>{'[' * 100_000}</zoom></think>", "bad_boxes"),
        (f"<think><zoom>{' ' * (LONGEST_BLOCK + 1)}</zoom></think>", "too_long"),
    ],
)
def test_malformed_turn_names_its_problem(text: str, code: str) -> None:
    turn = GRAMMAR.parse(text)
    assert [problem.code for problem in turn.problems] == [code]
    assert not turn.calls
    assert turn.answer is None


def test_thought_may_mention_the_tag_of_the_answer() -> None:
    turn = GRAMMAR.parse("<think>Later I write <answer> once.</think>")
    assert turn == ParsedTurn("Later I write <answer> once.")


def test_open_rethink_does_not_hide_the_answer() -> None:
    turn = GRAMMAR.parse("<rethink>never closed <answer>4</answer>")
    assert turn.answer == "4"
    assert turn.thought is None


def test_odd_boxes_are_left_for_the_tool_to_judge() -> None:
    body = '[[NaN, 1, 2, 3], ["a", 1, 2, 3], [1, 2, 3], 7, [1e308, 0, 1, 2]]'
    (call,) = GRAMMAR.parse(f"<think><zoom>{body}</zoom></think>").calls
    assert len(call.arguments["boxes"]) == 5


@pytest.mark.slow
@pytest.mark.timeout(60)  # quadratic time takes minutes
@pytest.mark.parametrize(
    "piece",
    ["<think>", "<zoom>", "</zoom>", "<answer>", "<rethink>", "<rethink></think>", "<zoom>[["],
)
def test_parse_reads_a_megabyte_of_tags(piece: str) -> None:
    text = piece * (2**20 // len(piece))
    for opened in (text, f"<think>{text}</think>"):
        turn = GRAMMAR.parse(opened)
        assert turn.answer is None
        assert not turn.calls


@given(st.text(alphabet=st.characters(exclude_characters="<", exclude_categories=["Cs"])))
def test_compose_is_the_inverse_of_parse(thought: str) -> None:
    first = ParsedTurn(thought, (ToolCall("zoom", {"boxes": BOXES}),))
    second = ParsedTurn(thought, answer="two")
    plain = ParsedTurn(thought)
    for turn in (first, second, plain):
        assert GRAMMAR.parse(GRAMMAR.compose(turn)) == turn


TAGS = [
    f"<{slash}{name}>" for name in ("think", "zoom", "rethink", "answer") for slash in ("", "/")
]


@given(st.lists(st.sampled_from([*TAGS, "[[1, 2, 3, 4]]", "a", " ", "\ud800"]), max_size=30))
def test_tags_in_any_order_are_read(pieces: list[str]) -> None:
    text = "".join(pieces)
    turn = GRAMMAR.parse(text)
    assert bool(turn.problems) or turn.thought is not None or turn.answer is not None
    assert not (turn.calls and turn.answer is not None)


def test_instructions_show_the_boxes_of_the_tool() -> None:
    from visenv.envs.mags.magnifier.magnify import BareCrop
    from visenv.envs.mags.tools import MultiBoxZoom, ZoomSettings

    zoom = MultiBoxZoom(BareCrop(), ZoomSettings(100))
    said = GRAMMAR.instructions([zoom])
    assert f"<zoom>{json.dumps(zoom.example().boxes)}</zoom>" in said


@pytest.mark.parametrize("prefix", ["", "<rethink>", "<rethink> so", "<think>", "<answer>"])
def test_answer_regex_matches_what_completes_the_prefix(prefix: str) -> None:
    import re

    whole = {
        "": "<rethink>so</rethink> <answer>4</answer>",
        "<rethink>": "so</rethink><answer>4</answer>",
        "<rethink> so": "</rethink><answer>4</answer>",
        "<think>": "so</think><answer>4</answer>",
        "<answer>": "4</answer>",
    }[prefix]
    assert re.fullmatch(GRAMMAR.answer_regex(prefix), whole)
    assert GRAMMAR.parse(prefix + whole).answer == "4"
