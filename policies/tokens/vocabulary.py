"""Maps each token id to bytes, a control token, or nothing.

Two kinds of tokenizers are supported. The tokens of a byte-level tokenizer (GPT-2, Qwen) are byte
strings. Those of SentencePiece with byte fallback (Gemma) are text, with ``▁`` for a blank, and one
token ``<0x41>`` for each byte, by which it spells characters that it does not know. In both, the
bytes of a character may be in several tokens; decoding joins bytes first. Text is encoded such that
the result contains no control token.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visenv.errors import PolicyError

_LOOKS_LIKE_CONTROL = re.compile(r"<\|[^|<>\s]+\|>\Z")
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_BLANK = "▁"


class Vocabulary:
    """Holds the tokens of one tokenizer.

    Args:
        tokenizer: A fast tokenizer, byte-level or SentencePiece with byte fallback.
        size: Rows of the model's output; checkpoints pad them beyond the tokenizer's tokens.

    Attributes:
        bytes: The bytes of each token, by id; empty for control tokens and padding rows.
        control: Ids of control tokens by their text: the special ones, and others that look like
            control tokens (Qwen's ``<|fim_prefix|>`` is not marked as special, but text must not
            produce it).

    Raises:
        PolicyError: If the tokenizer is of another kind, changes the text that it encodes, or has
            more tokens than the model.
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
        known = tokenizer.get_vocab()
        beyond = [token for token, token_id in known.items() if token_id >= size]
        if beyond:
            first = min(beyond, key=known.__getitem__)
            raise PolicyError(
                f"The token {first!r} of the tokenizer has the id {known[first]}, and the model "
                f"has only {size} tokens. Use the tokenizer of the model."
            )
        to_bytes = _spelling(tokenizer, known)
        for token, token_id in known.items():
            if token_id in added:
                self.bytes[token_id] = b"" if token in self.control else token.encode()
            else:
                self.bytes[token_id] = to_bytes(token)
        unmarked = [text for text in self.control if not added[self.control[text]].special]
        # The texts of the template occur in every turn.
        self._ids = lru_cache(maxsize=1024)(self._tokenize)
        self._unmarked = re.compile("|".join(map(re.escape, unmarked)) or r"(?!)")
        if (found := self.decode(self.encode("a b"))) != "a b":
            raise PolicyError(
                f"The tokenizer encodes the text 'a b' as {found!r}. Texts are encoded piece by "
                "piece, so a tokenizer that adds blanks cannot be used."
            )

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


def _spelling(tokenizer: Any, known: dict[str, int]) -> Callable[[str], bytes]:
    """Return the function that spells a token of the tokenizer in bytes.

    The tokenizer's own decoder shows its kind: what it makes of ``Ġ`` and of ``<0x41>``. Another
    kind raises `PolicyError`.
    """
    decoder = getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", None)
    if decoder is not None and decoder.decode(["x", "Ġ"]) == "x ":
        return _byte_level
    falls_back = all(f"<0x{byte:02X}>" in known for byte in range(256))
    if decoder is not None and falls_back and decoder.decode(["x", "<0x41>", "▁y"]) == "xA y":
        return _byte_fallback
    raise PolicyError(
        f"The tokenizer ({type(tokenizer).__name__}) must be byte-level, or SentencePiece with "
        "byte fallback, because the bytes of its tokens are not known otherwise. Use another "
        "checkpoint."
    )


def _byte_level(token: str) -> bytes:
    try:
        return bytes([_ALPHABET[character] for character in token])
    except KeyError as error:
        raise PolicyError(
            f"The tokenizer is not byte-level: its token {token!r} is not spelled in bytes."
        ) from error


def _byte_fallback(token: str) -> bytes:
    byte = _BYTE.fullmatch(token)
    return bytes([int(byte[1], 16)]) if byte else token.replace(_BLANK, " ").encode()
