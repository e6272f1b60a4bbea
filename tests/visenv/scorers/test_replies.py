"""Tests the readers of judges' replies: they are exact, never guess, and raise only their error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.scorers.judge import JsonScore, OneOf, ReplyError, YesNo

QUARTERS = JsonScore(values=(0, 0.25, 0.5, 0.75, 1))


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ('{"score": 0.7}', 0.7),
        (' {"score":1}\n', 1.0),
        ('{"score": 0}', 0.0),
        ('{"score": 1e-3}', 0.001),
        ('{"score": 0.9, "why": "…"}', 0.9),
        ('```json\n{"reasons": [1, {"score": 0}], "score": 0.9}\n```', 0.9),
        ('```json\n{"score": 0.5}\n```', 0.5),
        ('```\n{"score": 0.5}\n```', 0.5),
        ('```JSON {"score": 0.5, "why": "```"} ```', 0.5),
        ('{"why": "first line\nsecond line\t", "score": 1}', 1.0),
        ('<think>{"score": 0.1}? No.</think>\n{"score": 0.9}', 0.9),
    ],
)
def test_json_score_reads(text: str, score: float) -> None:
    assert JsonScore()(text) == score
    assert isinstance(JsonScore()(text), float)


HOSTILE = [
    "",
    "   ",
    "0.7",
    "0.7/1",
    '{"score": "0.7"}',
    '{"score": 0.7/1}',
    '{"score": NaN}',
    '{"score": Infinity}',
    '{"score": 1e999}',
    '{"score": 1.0001}',
    '{"score": -0.1}',
    '{"score": true}',
    '{"score": null}',
    '{"score": [0.7]}',
    '{"score": {"score": 0.7}}',
    '{"Score": 0.7}',
    '{"why": "x"}',
    '{"score": 0.2, "score": 0.9}',
    '[{"score": 0.7}]',
    'The score is {"score": 0.7}',
    '{"score": 0.7} {"score": 0.7}',
    '{"score": 0.7}\n</think>',
    "<!DOCTYPE html><html><body>502 Bad Gateway</body></html>",
    '{"score": 0.7',
    "[" * 100_000,
    '{"score":' * 100_000,
    '{"score": ' + "9" * 10_000_000 + "}",
    "x" * 10_000_000,
    '{"score": 0.7}' + " " * 20_000 + "x",
    "\ud800",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:30])
def test_json_score_refuses(text: str) -> None:
    with pytest.raises(ReplyError) as caught:
        JsonScore()(text)
    assert len(str(caught.value)) < 1000  # a hostile reply does not fill the log


def test_json_score_takes_only_the_values_that_are_allowed() -> None:
    assert [QUARTERS(json.dumps({"score": value})) for value in (0, 0.25, 1.0)] == [0, 0.25, 1]
    with pytest.raises(ReplyError, match=r"expected one of .*got 0.7"):
        QUARTERS('{"score": 0.7}')


def test_json_score_has_any_key_and_range() -> None:
    assert JsonScore("rating", 1, 5)('{"rating": 5}') == 5.0
    with pytest.raises(ReplyError, match="from 1 to 5"):
        JsonScore("rating", 1, 5)('{"rating": 11}')


@pytest.mark.parametrize("text", ["yes", " Yes. ", "YES\n", "<think>no?</think> yes"])
def test_yes_no_reads_yes(text: str) -> None:
    assert YesNo()(text) is True


@pytest.mark.parametrize("text", ["no", "No.", "nO"])
def test_yes_no_reads_no(text: str) -> None:
    assert YesNo()(text) is False


@pytest.mark.parametrize(
    "text", ["", "yes!", "yes no", "yes, because", "maybe", "y", "true", "yes..", "1", "<b>yes</b>"]
)
def test_yes_no_refuses(text: str) -> None:
    with pytest.raises(ReplyError):
        YesNo()(text)


def test_choice_is_returned_as_it_was_given() -> None:
    verdict = OneOf(("Correct", "Incorrect", "Not attempted"))
    assert verdict("not attempted.") == "Not attempted"
    assert verdict("CORRECT") == "Correct"
    with pytest.raises(ReplyError, match="expected one of"):
        verdict("Correct or Incorrect")


@given(st.text())
def test_readers_return_or_raise_reply_error_alone(text: str) -> None:
    for reader in (JsonScore(), QUARTERS, YesNo(), OneOf(("a", "b"))):
        try:
            value = reader(text)
        except ReplyError:
            continue
        assert value in (*QUARTERS.values, True, False, "a", "b") or 0 <= float(value) <= 1


@given(st.floats(0, 1))
def test_json_score_reads_back_what_json_wrote(score: float) -> None:
    assert JsonScore()(json.dumps({"score": score})) == score
