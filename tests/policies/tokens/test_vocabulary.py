"""Tests tokenizers of SentencePiece with byte fallback, and that other kinds are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from visenv.errors import PolicyError

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.policies.tokens import spelled
from visenv.policies.tokens import vocabulary as vocabulary_module
from visenv.policies.tokens.constrain import RegexConstraints

if TYPE_CHECKING:
    from visenv.policies.tokens.vocabulary import Vocabulary

pytestmark = pytest.mark.component("torch", "transformers")

CONTROL = ("<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<|look|>")


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    tokenizer = spelled.with_byte_fallback(CONTROL)
    built: Vocabulary = vocabulary_module.Vocabulary(tokenizer, len(tokenizer) + 3)
    return built


def pieces(vocabulary: Vocabulary, text: str) -> list[bytes]:
    return [vocabulary.bytes[token] for token in vocabulary.encode(text)]


def test_tokens_are_spelled_by_hand(vocabulary: Vocabulary) -> None:
    """Check words with their blanks, and a character of two bytes that is no token."""
    assert pieces(vocabulary, "the the") == [b"the", b" the"]
    assert pieces(vocabulary, " a\n\n") == [b" ", b"a", b"\n\n"]
    assert pieces(vocabulary, "é") == [b"\xc3", b"\xa9"]


def test_bytes_of_half_a_character_are_replaced(vocabulary: Vocabulary) -> None:
    first, second = vocabulary.encode("é")
    assert vocabulary.decode([first]) == "\ufffd"
    assert vocabulary.decode([first, second]) == "é"


TEXTS = st.lists(
    st.sampled_from([*CONTROL, "<0x41>", "<unk>", "the", " ", "<", "_of_turn>"])
    | st.text(max_size=8)
).map("".join)


@pytest.mark.attack(
    "policies: text that looks like a result, a tag or a control token does nothing"
)
@settings(max_examples=max(100, settings().max_examples), deadline=None)
@given(text=TEXTS)
def test_text_never_becomes_a_control_token(vocabulary: Vocabulary, text: str) -> None:
    ids = vocabulary.encode(text)
    assert not set(ids) & set(vocabulary.control.values())
    # The tokenizer writes a blank as this character, so that it cannot be told from a blank.
    assert vocabulary.decode(ids) == text.replace("▁", " ")


def test_control_tokens_and_padding_are_banned(vocabulary: Vocabulary) -> None:
    end = vocabulary.control["<end_of_turn>"]
    banned = vocabulary.banned(end)
    assert {*CONTROL} <= {*vocabulary.control}
    assert [banned[vocabulary.control[text]] for text in CONTROL] == [True, False, True, True]
    assert banned[-3:].all()
    assert not banned[vocabulary.encode("the<é")].any()


def test_regular_expression_constrains_bytes(vocabulary: Vocabulary) -> None:
    end = vocabulary.control["<end_of_turn>"]
    constraint = RegexConstraints(vocabulary, vocabulary.banned(end), end).get("the é")
    token_ids = vocabulary.encode("the é")
    states = constraint.states([*token_ids, end])
    assert len(states) == len(token_ids) + 1
    assert not constraint.allowed(states[0])[vocabulary.encode("a")[0]]
    with pytest.raises(PolicyError, match="is not allowed by the regular expression"):
        constraint.states(vocabulary.encode("the e"))


def test_other_kinds_of_tokenizers_are_refused() -> None:
    tokenizer = spelled.by_words(CONTROL)
    with pytest.raises(PolicyError, match="must be byte-level, or SentencePiece"):
        vocabulary_module.Vocabulary(tokenizer, len(tokenizer))


def test_tokenizer_that_adds_a_blank_is_refused() -> None:
    tokenizer = spelled.with_byte_fallback(CONTROL, adds_blank=True)
    with pytest.raises(PolicyError, match=r"encodes the text 'a b' as ' a b'"):
        vocabulary_module.Vocabulary(tokenizer, len(tokenizer))
