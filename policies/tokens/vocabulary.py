"""Maps each token id to bytes, a control token, or nothing.

Byte-level BPE tokens are byte strings, and the bytes of a character may be in several tokens;
decoding joins bytes first. Text is encoded such that the result contains no control token.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visenv.errors import PolicyError

_LOOKS_LIKE_CONTROL = re.compile(r"<\|[^|<>\s]+\|>\Z")


class Vocabulary:
    """Holds the tokens of one tokenizer.

    Args:
        tokenizer: A fast byte-level BPE tokenizer (Qwen's).
        size: Rows of the model's output; checkpoints pad them beyond the tokenizer's tokens.

    Attributes:
        bytes: The bytes of each token, by id; empty for control tokens and padding rows.
        control: Ids of control tokens by their text: the special ones, and others that look like
            control tokens (Qwen's ``<|fim_prefix|>`` is not marked as special, but text must not
            produce it).

    Raises:
        PolicyError: If the tokenizer is not byte-level.
    """

    def __init__(self, tokenizer: Any, size: int) -> None:
        self._tokenizer = tokenizer
        added = tokenizer.added_tokens_decoder
        self.control = {
            token.content: token_id
            for token_id, token in added.items()
            if token.special or _LOOKS_LIKE_CONTROL.match(token.content)
        }
        self.bytes = [b""] * size
        for token, token_id in tokenizer.get_vocab().items():
            if token_id in added:
                self.bytes[token_id] = b"" if token in self.control else token.encode()
            else:
                self.bytes[token_id] = _to_bytes(token)
        unmarked = [text for text in self.control if not added[self.control[text]].special]
        # The texts of the template occur in every turn.
        self._ids = lru_cache(maxsize=1024)(self._tokenize)
        self._unmarked = re.compile("|".join(map(re.escape, unmarked)) or r"(?!)")

    def encode(self, text: str) -> list[int]:
        """Return the token ids of plain text.

        Text that looks like a control token is encoded as letters.
        """
        return [token for piece in self._pieces(text) for token in self._ids(piece)]

    def decode(self, token_ids: list[int]) -> str:
        """Return the text of tokens, without control tokens; invalid UTF-8 becomes U+FFFD."""
        return b"".join([self.bytes[token] for token in token_ids]).decode(errors="replace")

    def banned(self, end_id: int) -> NDArray[np.bool_]:
        """Return the tokens that are never sampled, bool ``[size]``: padding, control tokens."""
        banned = np.array([not token for token in self.bytes])
        banned[end_id] = False
        return banned

    def _pieces(self, text: str) -> list[str]:
        # The tokenizer spells out special tokens as letters; the others are split after their "<".
        cuts = [match.start() + 1 for match in self._unmarked.finditer(text)]
        return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    def _tokenize(self, text: str) -> tuple[int, ...]:
        text = text.encode(errors="replace").decode()  # a lone surrogate cannot be encoded
        encoded = self._tokenizer(text, add_special_tokens=False, split_special_tokens=True)
        return tuple(encoded["input_ids"])


def _byte_alphabet() -> dict[str, int]:
    """Return the printable character for each byte in a byte-level vocabulary (GPT-2)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + offset): byte for offset, byte in enumerate(others)
    }


_ALPHABET = _byte_alphabet()


def _to_bytes(token: str) -> bytes:
    try:
        return bytes([_ALPHABET[character] for character in token])
    except KeyError as error:
        raise PolicyError(
            f"The tokenizer is not byte-level: its token {token!r} is not spelled in bytes."
        ) from error
