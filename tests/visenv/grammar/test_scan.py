"""Tests that `parse` reads a turn without stray tags in one match, and gets the same blocks."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from visenv.grammar import key_value
from visenv.grammar.blocks import TagBlocks
from visenv.grammar.key_value import KeyValueGrammar, scan

TAGS = ("<think>", "</think>", "<tool>", "</tool>", "<answer>", "</answer>")
PLAIN = st.text().filter(lambda text: "<" not in text)
PIECES = st.sampled_from((*TAGS, "<", "\n", " ", "x")) | PLAIN
WHOLE = st.builds("<think>{}</think>{}<{}>{}</{}>".format, PLAIN, *([PIECES] * 4))


GRAMMAR = KeyValueGrammar()


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("<think>a</think>\n<tool>b</tool>", TagBlocks(("a",), ("b",), (), "\n", "", ("tool",))),
        ("<think></think><answer></answer>", TagBlocks(("",), (), ("",), "", "", ())),
    ],
)
def test_complete_turn_is_not_cut(
    text: str, blocks: TagBlocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scan(text) == blocks
    parsed = key_value._TURNS.combine(blocks)
    monkeypatch.setattr(key_value._TURNS, "scan", None)
    assert GRAMMAR.parse(text) == parsed


@given(st.lists(PIECES).map("".join) | WHOLE)
@example("<think>a</think><tool>b</answer>")
@example("<think>a</think> so <answer>b</answer>")
@example("<think>a</think><answer>b</answer>\n")
@example("<think>a < b</think><answer>b</answer>")
def test_scanner_reads_the_same_both_ways(text: str) -> None:
    assert GRAMMAR.parse(text) == key_value._TURNS.combine(scan(text))


@given(PLAIN, st.sampled_from(["", " ", "\n\u2028\t"]), PLAIN, st.sampled_from(["tool", "answer"]))
def test_scanner_reads_complete_turns_the_same(
    thought: str, between: str, body: str, tag: str
) -> None:
    text = f"<think>{thought}</think>{between}<{tag}>{body}</{tag}>"
    assert GRAMMAR.parse(text) == key_value._TURNS.combine(scan(text))
