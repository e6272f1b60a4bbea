"""Tests the public reward: every cell of its table, and agreement with the public expressions."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from visenv.envs.arft import compat
from visenv.envs.arft.coding.world.sources import coding_truth
from visenv.types import EventLog, Sample, TurnTaken

SAMPLE = Sample(
    "s", "?", answers=("dark green",), ground_truth=coding_truth(("rotation90", "dark"), ())
)


def accuracy(text: str, step: str, sample: Sample = SAMPLE) -> float:
    return compat.accuracy(text, step, sample)


# ---------------------------------------------------------------------------- accuracy


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("<think>a</think><answer>dark green</answer>", 1.0),
        ("<answer>very dark green</answer>", 0.8),  # 2·2/5
        ("<answer>green green</answer>", 0.5),  # one word in common: 2·1/4
        ("dark green", 1.0),  # no tag: the whole text is the answer
        (
            "<answer>dark\ngreen</answer>",
            0.0,
        ),  # over two lines: the whole text, "answerdark greenanswer"
        ("<answer>dark green", 0.5),  # not closed: "answerdark green", 2·1/4
        ("<code>x</code><answer>dark green</answer>", 0.0),
        ("<answer>dark green</answer><problem>", 0.0),
        ("", 0.0),
    ],
)
def test_answer(text: str, score: float) -> None:
    assert accuracy(text, "answer") == pytest.approx(score)


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("<think>a</think><code>```python\nx\n```</code>", 0.9),
        ("<code>1 / 0</code>", 0.9),
        ("no tag at all", 0.9),
        ("", 0.9),
        ("<code>x</code><answer>7</answer>", 0.0),
        ("<problem>{'dark'}</problem>", 0.0),
    ],
)
def test_code(text: str, score: float) -> None:
    assert accuracy(text, "code") == score


def sample_with(*problems: str) -> Sample:
    return Sample("s", "?", answers=("a",), ground_truth=coding_truth(problems, ()))


@pytest.mark.parametrize(
    ("truth", "said", "score"),
    [
        (("dark",), "{'dark'}", 1.0),
        (("rotation90", "dark"), "{'dark', 'rotation90'}", 1.0),
        (("rotation90", "dark"), "{'rotation90'}", 0.5),
        (("rotation180", "noise"), "{'rotation180'}", 0.5),
        (("rotation90", "dark"), "{'dark'}", 0.0),
        (("rotation90", "dark"), "{'rotation180'}", 0.0),
        (("blur", "noise"), "{'blur'}", 0.0),
        (("rotation90",), "{'dark'}", 0.0),
        (("dark",), '{"dark"}', 0.0),  # only single quotes are read
        (("dark",), "{}", 0.0),
        (("dark",), "dark", 0.0),
    ],
)
def test_problems(truth: tuple[str, ...], said: str, score: float) -> None:
    sample = sample_with(*truth)
    assert accuracy(f"<think>a</think><problem>{said}</problem>", "problem", sample) == score


@pytest.mark.parametrize("tag", ["answer", "code"])
def test_problems_beside_another_tag(tag: str) -> None:
    text = f"<problem>{{'dark'}}</problem><{tag}>"
    assert accuracy(text, "problem", sample_with("dark")) == 0.0


def test_ablation_scores_answers_exactly() -> None:
    text = "<answer>very dark green</answer>"
    assert compat.accuracy(text, "answer", SAMPLE, "em") == 0.0
    assert compat.accuracy("<answer>Dark green.</answer>", "answer", SAMPLE, "em") == 1.0


# ---------------------------------------------------------------------------- form

# Expressions of the public script. Each has to match the whole completion with DOTALL.
FORMS = {
    "answer": r"<think>.*?</think>\s*<answer>.*?</answer>",
    "code": r"<think>.*?</think>\s*<code>\s*```python(.*?)```.*?</code>",
    "problem": r"^<think>.*?</think>\s*<problem>\s*\{\s*'[^']+'\s*(?:,\s*'[^']+'\s*)*\}\s*"
    r"</problem>$",
}
OPENED = ("<think>", "<code>", "<answer>", "<problem>")
PIECES = (
    *("<think>", "</think>", "<code>", "</code>", "<answer>", "</answer>", "<problem>"),
    *("</problem>", "```python", "```", "{'dark'}", "{'a', 'b'}", "{'a' 'b'}", " ", "\n", "x"),
)
SOUP = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
NEARLY = st.builds(
    "{}<think>{}</think>{}<{}>{}</{}>{}".format,
    *(SOUP.map(lambda text: text[:12]) for _ in range(3)),
    st.sampled_from(("answer", "code", "problem")),
    st.sampled_from(
        ("```python\nx\n```", "```python x", "{'dark'}", "{ 'a' , 'b' }", "{'a',}", "x")
    ),
    st.sampled_from(("answer", "code", "problem")),
    st.sampled_from(("", "", "", "\n", " x")),
)


@pytest.mark.parametrize("step", FORMS)
@given(text=SOUP | NEARLY)
@example(text="<think></think></think> <answer></answer>")
@example(text="<think>a</think><code> ```python x``` y</code></code>")
@example(text="<think>a</think>\n<problem> {'a', 'b'}\n</problem>")
def test_form_is_that_of_the_public_expressions(step: str, text: str) -> None:
    repeated = any(text.count(tag) >= 2 for tag in OPENED)
    matched = re.fullmatch(FORMS[step], text, re.DOTALL) is not None
    assert compat.has_form(text, step) == (matched and not repeated)


# ---------------------------------------------------------------------------- sums

TURNS = (
    "<think>a</think><problem>{'rotation90'}</problem>",
    "<think>a</think><code>```python\nx\n```</code>",
    "<think>a</think><answer>dark green</answer>",
)


def paid(*texts: str) -> tuple[float, float]:
    log = EventLog([TurnTaken(turn, text, None) for turn, text in enumerate(texts)])
    return compat.accuracy_term(log, SAMPLE), compat.format_term(log, SAMPLE)


def test_turn_is_rewarded_by_the_step_at_its_position() -> None:
    # half for the rotation alone, 0.9, 1
    assert paid(*TURNS) == pytest.approx((0.5 + 0.9 + 1.0, 3.0))
    assert paid(*TURNS[:1]) == pytest.approx((0.5, 1.0))
    # code where problems are expected, then problems where code is: tags of other steps
    assert paid(TURNS[1], TURNS[0], TURNS[2]) == pytest.approx((0.0 + 0.0 + 1.0, 1.0))
    # there is no step for a fourth turn
    assert paid(TURNS[0], TURNS[1], TURNS[1], TURNS[2]) == pytest.approx((0.5 + 0.9 + 0.0, 2.0))
    assert paid() == (0.0, 0.0)


def test_top_is_three_steps() -> None:
    right = TURNS[0].replace("{'rotation90'}", "{'rotation90', 'dark'}")
    assert sum(paid(right, *TURNS[1:])) == pytest.approx(compat.TOP)


# ------------------------------------------------------------------------- crops of the public code


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        # 366, 723, 506, 851 thousandths of 500 x 332: 183, 240.04, 253, 282.5, cut to whole pixels
        ("crop = image[10:20, 30:40]", "crop = image[240:282, 183:253]"),
        ("image[y1:y2, x1:x2]", "image[240:282, 183:253]"),
        ("image[int(0.1 * h):int(0.2 * h), a:b]", "image[240:282, 183:253]"),
        ("image.shape[:2]", "image.shape[:2]"),
        ("image[0]", "image[0]"),
        ("image[y:y + h]", "image[y:y + h]"),
        ("image[a:b, c:d, :]", "image[a:b, c:d, :]"),
        ("a[1:2, 3:4] + b[5:6, 7:8]", "a[240:282, 183:253] + b[240:282, 183:253]"),
    ],
)
def test_slices_of_two_axes_are_replaced(code: str, expected: str) -> None:
    assert compat.with_box(code, [366, 723, 506, 851], (500, 332)) == expected


# The expression of the public script.
PART = r"((?:[^\[\]:]|(?:\[[^\[\]]*\]))+?)"
SLICE = rf"\[\s*{PART}\s*:\s*{PART}\s*,\s*{PART}\s*:\s*{PART}\s*\]"
CODE = st.lists(
    st.sampled_from(["[", "]", ":", ",", " ", "a", "[0]", "[a:b", ", c:d]"]), max_size=9
)


@given(CODE.map("".join))
@example("image[box[0]:box[1], box[2]:box[3]]")
@example("[[a:b, c:d]]")
def test_slices_are_those_of_the_public_expression(code: str) -> None:
    wanted = re.sub(SLICE, "[2:4, 1:3]", code)
    assert compat.with_box(code, [100, 200, 300, 400], (10, 10)) == wanted
