"""Tests that points become tags and anchors become phrases that the environment reads equally."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.envs.argos.curation.reformat import reformat
from visenv.grammar.points import Point, PointsGrammar, SpanNote, TraceReferences, read_references

CUP, LID = Point(12, 34, "cup"), Point(5, 6.5, "lid")


def rewritten(text: str, *points: Point) -> str:
    return reformat(f"<think>{text}</think><answer>a</answer>", TraceReferences(points))[7:-26]


CASES = {
    "the cup at (12, 34).": 'the cup at <point x1="12" y1="34" alt="cup">cup</point>.',
    "a lid [5, 6.5]": 'a lid <point x1="5" y1="6.5" alt="lid">lid</point>',
    "nothing at (1, 2)": "nothing at (1, 2)",
    "In [F3 @ t=1.00s], it": "In frame 3 at 1.00 seconds, it",
    "In [F3-F6 @ t=1.00-2.50s], it": "From frame 3 at 1.00 seconds to frame 6 at 2.50 seconds, it",
    "and during [F3-F6 @ t=1-2.5s]": "and from frame 3 at 1.00 seconds to frame 6 at 2.50 seconds",
    "[F1 @ t=0.00s, F2 @ t=0.50s]": "from frame 1 at 0.00 seconds to frame 2 at 0.50 seconds",
    "in [F1 @ t=0.00s, F4 @ t=1.5s]": "in frame 1 at 0.00 seconds and frame 4 at 1.50 seconds",
    "[F1 is dark]": "[F1 is dark]",
    "[see (12, 34)]": '[see <point x1="12" y1="34" alt="cup">cup</point>]',
}


@pytest.mark.parametrize("text", CASES)
def test_trace_is_rewritten(text: str) -> None:
    assert rewritten(text, CUP, LID) == CASES[text]


def test_names_of_one_place_are_taken_in_order() -> None:
    text = rewritten("(12, 34) (12, 34) (12, 34)", CUP, Point(12, 34, "handle"))
    assert [point.label for point in read_references(text).points] == ["cup", "handle"]
    assert text.count('alt="handle"') == 2


def test_markup_in_a_name_opens_no_tag() -> None:
    text = rewritten("it (12, 34)", Point(12, 34, 'cup"><point x="1" y="1">a</point>'))
    assert [(point.x, point.y) for point in read_references(text).points] == [(12.0, 34.0)]


@pytest.mark.parametrize("answer", ["(12, 34)", "at (1, 1)<|begin_of_box|>(12, 34)<|end_of_box|>"])
def test_final_answer_stays(answer: str) -> None:
    text = f"<think>(12, 34)</think><answer>{answer}</answer>"
    changed = reformat(text, TraceReferences((CUP,)))
    grammar = PointsGrammar()
    assert grammar.parse(changed).answer == grammar.parse(text).answer == "(12, 34)"
    assert "<point" in changed


@given(
    st.integers(1, 31),
    st.integers(1, 31),
    st.floats(0, 1000).map(lambda time: round(time, 2)),
    st.integers(0, 4000),
    st.integers(0, 4000),
)
def test_environment_reads_the_same_points_and_spans(
    first: int, more: int, time: float, x: int, y: int
) -> None:
    last, end = first + more, time + 1
    text = rewritten(
        f"In [F{first}-F{last} @ t={time:.2f}-{end:.2f}s], the cup falls. "
        f"The cup at ({x}, {y}) in [F{first} @ t={time:.2f}s] is red.",
        Point(x, y, "cup"),
    )
    found = read_references(text, video=True)
    assert found.points == (Point(x, y, "cup", first, time),)
    assert [each[:4] for each in found.spans] == [(first, last, time, float(f"{end:.2f}"))]
    assert isinstance(found.spans[0], SpanNote)
    assert found.frames == ()


@given(st.text(alphabet="[(F12, @t=.s)-]<answer>box|", max_size=200))
def test_reformat_rewrites_any_trace(text: str) -> None:
    assert isinstance(reformat(text, TraceReferences((CUP, LID))), str)
