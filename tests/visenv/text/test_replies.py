"""Tests which part of a reply states the answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.text.replies import stated


@pytest.mark.parametrize(
    ("reply", "text", "contained"),
    [
        ("It is B.", "It is B.", False),
        ("<think>A?</think>\nB", "B", False),
        ("\\boxed{A} no, \\boxed{\\text{B}}", "\\text{B}", True),
        ("<answer>A</answer> <answer>B</answer>", "B", True),
        ("\\boxed{A} <answer>B</answer>", "B", True),
        ("<answer>B</answer> \\boxed{A}", "A", True),
        ("\\boxed{B", "\\boxed{B", False),
        ("<answer>B", "<answer>B", False),
        ('{"answer": "B", "why": "A is wrong"}', "B", True),
        ('```json\n{"final_answer": ["A", "C"]}\n```', "A, C", True),
        ("{'answer': 'B'}", "B", True),
        ('{"winner": "Answer 1", "why": "cut', "Answer 1", True),
        ('{"answer": null}', "", True),
        ('{"answer": "A"} {"answer": "B"}', "A\nB", True),
        ('{"why": "no answer"}', '{"why": "no answer"}', False),
        ("B<|im_end|>", "B", False),
        ("B — sure", "B - sure", False),
    ],
)
def test_stated(reply: str, text: str, contained: bool) -> None:
    found = stated(reply)
    assert (found.text, found.contained) == (text, contained)


def test_text_after_a_box_is_kept() -> None:
    assert stated("\\boxed{1} then B").after == " then B"


@given(st.text())
def test_part_of_any_reply_is_a_text(reply: str) -> None:
    assert isinstance(stated(reply).text, str)


@pytest.mark.parametrize(
    "piece", ["\\boxed{", "<answer>", '{"answer": [', '{"answer": "', "{", "```json\n{"]
)
def test_containers_without_end_are_read_in_linear_time(piece: str) -> None:
    assert isinstance(stated(piece * 50_000).text, str)
