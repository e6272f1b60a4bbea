"""Builds small tokenizers of the kinds that checkpoints have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

WORDS = ("the", "▁the", "▁<", "\n\n", "\n\n\n", "\n\n\n\n")
"""Tokens of more than one character in the tokenizer with byte fallback."""


def with_byte_fallback(control: Sequence[str], *, adds_blank: bool = False) -> Any:
    """Return a tokenizer like Gemma's: text with ``▁`` for blanks, and a token for each byte.

    Args:
        control: Its control tokens.
        adds_blank: Whether it writes a blank before each text, as that of Llama 2.
    """
    letters = ["▁", "\n", "<", *"abcdefghijklmnopqrstuvwxyz"]
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    pieces = ["<unk>", *bytes_, *letters, "he", "▁t", *WORDS]
    vocabulary = {piece: place for place, piece in enumerate(pieces)}
    merges = [("h", "e"), ("▁", "t"), ("t", "he"), ("▁t", "he"), ("▁", "<"), ("\n", "\n")]
    merges += [("\n\n", "\n\n"), ("\n\n", "\n")]
    built = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True))
    blanks = normalizers.Replace(" ", "▁")
    before = [normalizers.Prepend("▁")] if adds_blank else []
    built.normalizer = normalizers.Sequence([*before, blanks])
    built.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return _fast(built, control)


def by_words(control: Sequence[str]) -> Any:
    """Return a tokenizer that knows only whole words (WordPiece)."""
    built = Tokenizer(models.WordPiece({"<unk>": 0, "a": 1, "b": 2}, unk_token="<unk>"))
    built.pre_tokenizer = pre_tokenizers.Whitespace()
    built.decoder = decoders.WordPiece()
    return _fast(built, control)


def _fast(built: Tokenizer, control: Sequence[str]) -> Any:
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=built, unk_token="<unk>")
    added = [transformers.AddedToken(each, special=True, normalized=False) for each in control]
    fast.add_tokens(added)
    return fast
