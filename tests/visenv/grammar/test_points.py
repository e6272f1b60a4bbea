"""Tests points, time anchors and boxed answers: valid and dropped ones; no input raises."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.grammar.anchors import MOST_ANCHORS, read_anchors
from visenv.grammar.points import (
    MAX_LABEL,
    FrameNote,
    Point,
    PointsGrammar,
    SpanNote,
    read_references,
    without_tags,
)
from visenv.testing.survival import TEXTS

GRAMMAR = PointsGrammar()


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ("4", "4"),
        (" two words ", "two words"),
        ("I see <|begin_of_box|>4<|end_of_box|>.", "4"),
        ("<|begin_of_box|>3<|end_of_box|> or <|begin_of_box|> B. Yes. <|end_of_box|>", "B. Yes."),
        ("<|begin_of_box|>open", "<|begin_of_box|>open"),
        ("<|end_of_box|>x<|begin_of_box|>", "<|end_of_box|>x<|begin_of_box|>"),
    ],
)
def test_answer_is_the_last_box_or_all(body: str, answer: str) -> None:
    turn = GRAMMAR.parse(f"<think>so</think><answer>{body}</answer>")
    assert turn.answer == answer
    assert not turn.problems


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "no_action"),
        ("<think><answer>4</answer>", "thought_unclosed"),
        ("<think><answer>4</answer></think>", "no_action"),
        ("<think></think><answer>4", "answer_unclosed"),
        ("<answer>4</answer><answer>5</answer>", "several_answers"),
    ],
)
def test_malformed_turns_are_named(text: str, code: str) -> None:
    turn = GRAMMAR.parse(text)
    assert [problem.code for problem in turn.problems] == [code]
    assert "tool" not in turn.problems[0].message
    assert GRAMMAR.reasoning(text) == ""


def test_reasoning_is_all_but_the_final_answer() -> None:
    text = "<think>a</think><answer>b <|begin_of_box|>4<|end_of_box|> c</answer>"
    assert GRAMMAR.reasoning(text) == "a\nb "
    assert GRAMMAR.reasoning("<think>a</think><answer>4</answer>") == "a"


def test_points_are_read_with_labels() -> None:
    text = (
        '<point x="1" y="2.5" alt="cup">red cup</point> <points x1="3" y1="4" x2="5" y2="6" '
        "alt='two cups'></points> <points x3=7 y3=8>third</points><point x='9' y='10' alt='z'/>"
    )
    assert read_references(text).points == (
        Point(1, 2.5, "red cup"),
        Point(3, 4, "two cups"),
        Point(5, 6, "two cups"),
        Point(7, 8, "third"),
        Point(9, 10, "z"),
    )


@pytest.mark.parametrize(
    ("text", "points", "dropped"),
    [
        ('<point x="NaN" y="1">a</point>', (), 1),
        ('<point x="12px" y="1">a</point>', (), 1),
        ('<point x="1" y="inf">a</point>', (), 1),
        ('<point x="1e999" y="1">a</point>', (), 1),
        ('<point x="8\x1f" y="\u30001">a</point>', (Point(8, 1, "a"),), 0),
        ('<point x="8\x1f2" y="1">a</point>', (), 1),
        ('<point x="-3" y="1">a</point>', (Point(-3, 1, "a"),), 0),
        ('<point x="1e308" y="1">a</point>', (Point(1e308, 1, "a"),), 0),
        ('<point x="1">a</point>', (), 1),
        ('<point x="1" y="2" x="3">a</point>', (), 1),
        ("<point>a</point>", (), 1),
        ('<point x="1" y="2">never closed', (), 1),
        ('<point x="1" y="2"><point x="3" y="4">b</point></point>', (Point(3, 4, "b"),), 1),
        ('<points x1="1" y1="2" x2="3">a</points>', (Point(1, 2, "a"),), 1),
        ('<point x="1" y="2"></point>', (Point(1, 2, ""),), 0),
        (f'<point x="1" y="2">{"a" * (MAX_LABEL + 1)}</point>', (), 1),
        ('<point x="1" y="2"><b>a</b></point>', (Point(1, 2, "<b>a</b>"),), 0),
        ('<pointer x="1" y="2">a</pointer>', (), 0),
        ('<point x="1" y="2">a</point>' * 3, (Point(1, 2, "a"),), 0),
    ],
)
def test_points_that_are_malformed_are_dropped_and_counted(
    text: str, points: tuple[Point, ...], dropped: int
) -> None:
    found = read_references(text)
    assert found.points == points
    assert found.dropped == dropped


@pytest.mark.parametrize(
    ("text", "frame", "time"),
    [
        ("In frame 6 {p}.", 6, None),
        ("At 4.47 seconds {p}.", None, 4.47),
        ("[F17 @ t=19.21s] {p}.", 17, 19.21),
        ("{p} is there in Frame 3.", 3, None),
        ("frame 2 at 0.81 seconds, at {p} and frame 5 at 3.25 seconds.", 2, 0.81),
        ("comparing frame 1 and frame 4, the pan at {p} in frame 1 is small.", 1, None),
        ("First it rains, then comes frame 8. So {p}.", 8, None),
        ("In frame 8 it rains, and stops. So {p}.", None, None),
        ("Frame 8. It rains. So {p}.", None, None),
        ("From frame 2 to frame 5 {p}.", None, None),
        ("It takes for 3 seconds {p}.", None, None),
        ("frame 0 {p}", 0, None),
        ("frame 99 {p}", 99, None),
        ("[F-1 @ t=1.00s] {p}", -1, 1.0),
    ],
)
def test_point_belongs_to_the_closest_single_anchor(
    text: str, frame: int | None, time: float | None
) -> None:
    point = '<point x="1" y="2" alt="frame 77">cup</point>'
    found = read_references(text.format(p=point), video=True)
    assert found.points == (Point(1, 2, "cup", frame, time),)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("frames 7 through 20", (7, 20, None, None)),
        ("frames 1–6", (1, 6, None, None)),
        ("frame 25 onwards", (25, None, None, None)),
        ("from frame 25 at 19.52 seconds to frame 27", (25, 27, 19.52, None)),
        ("[F1-F6 @ t=0.00s-4.10s]", (1, 6, 0.0, 4.1)),
        ("[F1-F6 @ t=…]", (1, 6, None, None)),
        ("4.47 to 16.11 seconds", (None, None, 4.47, 16.11)),
        ("between 2.1 and 3.5 seconds", (None, None, 2.1, 3.5)),
        ("2.5 seconds onwards", (None, None, 2.5, None)),
        ("frames 9 to 3", (9, 3, None, None)),
    ],
)
def test_spans_are_read(text: str, span: tuple[float | None, ...]) -> None:
    found = read_references(f"It rains. We see {text} that it snows.", video=True)
    assert found.frames == ()
    assert [tuple(each[:4]) for each in found.spans] == [span]
    assert found.spans[0].description == f"We see {text} that it snows."


def test_frame_without_a_point_has_a_description() -> None:
    found = read_references("In frames 2, 3 and 5 it rains.", video=True)
    assert found.frames == tuple(
        FrameNote(frame, None, "In frames 2, 3 and 5 it rains.") for frame in (2, 3, 5)
    )
    assert found.spans == ()


def test_images_have_no_anchors() -> None:
    found = read_references('In frame 3 <point x="1" y="2">a</point>, frames 1 to 2.')
    assert found == ((Point(1, 2, "a"),), (), (), 0)


def test_descriptions_lose_their_markup_for_judges() -> None:
    assert without_tags('the <point x="1" y="2" alt="b">cup</point> falls') == "the cup falls"


@pytest.mark.slow
def test_descriptions_are_substrings_and_short() -> None:
    text = "frame 1 " * 100_000
    note = read_references(text, video=True).frames[0]
    assert len(note.description) <= 1000
    assert note.description in text


@pytest.mark.attack("policies: no text of a policy raises an exception or stops an episode")
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_hostile_text_never_raises(text: str) -> None:
    GRAMMAR.parse(text)
    GRAMMAR.reasoning(text)
    read_references(text, video=True)
    without_tags(text)


PIECES = st.sampled_from(
    [
        *("<point ", "<points ", 'x="1" ', 'y="2" ', "x1=3 ", "y1='4' ", ">", "/>", "</point>"),
        *("a", "frame 3", "frames 2, 3", " to ", "[F1-F2 @ t=", "4.5 s", ". ", ", ", "\n", '"'),
        *("<think>", "</think>", "<answer>", "</answer>", "<|begin_of_box|>", "\ud800", "１"),
    ]
)


@pytest.mark.attack("policies: no text of a policy raises an exception or stops an episode")
@given(st.lists(PIECES, max_size=40).map("".join))
def test_points_of_any_text_are_read(text: str) -> None:
    GRAMMAR.parse(text)
    found = read_references(text, video=True)
    assert found.dropped >= 0
    assert len(set(found.points)) == len(found.points)
    descriptions = [note.description for note in found.frames]
    descriptions += [note.description for note in found.spans]
    assert all(description in text for description in descriptions)


@given(st.text("".join(filter(str.isspace, map(chr, range(0x3001)))) + "18.e+-", max_size=6))
def test_coordinate_of_any_digits_and_white_space_is_a_number_or_dropped(text: str) -> None:
    found = read_references(f'<point x="{text}" y="2">a</point>')
    assert len(found.points) + found.dropped == 1
    assert all(math.isfinite(point.x) for point in found.points)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 4000),
            st.integers(0, 4000),
            st.text("abc xyz", min_size=1, max_size=9).filter(str.strip),
        ),
        max_size=8,
        unique=True,
    )
)
def test_points_are_read_back(points: list[tuple[int, int, str]]) -> None:
    written = "".join(f'<point x="{x}" y="{y}">{label}</point>' for x, y, label in points)
    expected = dict.fromkeys(Point(x, y, " ".join(label.split())) for x, y, label in points)
    assert read_references(written).points == tuple(expected)


def test_span_notes_keep_missing_values_as_none() -> None:
    found = read_references("frame 25 onwards it rolls", video=True)
    assert found.spans == (SpanNote(25, None, None, None, "frame 25 onwards it rolls"),)


@pytest.mark.parametrize(
    "text", ["frames 1, " + "1, " * 330_000, "frame 1 " * 125_000, "1 s, 2 s " * 110_000]
)
def test_number_of_anchors_is_limited(text: str) -> None:
    assert len(read_anchors(text)) == MOST_ANCHORS
    assert read_anchors(text)[:5] == read_anchors(text[:200])[:5]
    started = time.process_time()
    read_references(text)
    assert time.process_time() - started < 20  # of a text of 1 MB; it ends a quadratic search
