"""Constrains tokens by regular expressions, with the finite automata of outlines-core."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import outlines_core
import torch
from numpy.typing import NDArray

from visenv.errors import PolicyError

from .vocabulary import Vocabulary


class RegexConstraint:
    """Applies one regular expression to one vocabulary; all turns with this expression share it.

    Attributes:
        start: The initial state of the automaton.
    """

    def __init__(self, index: outlines_core.Index, size: int, end_id: int) -> None:
        self.start: int = index.get_initial_state()
        self._index = index
        self._size = size
        self._end = end_id
        self._final = frozenset(index.get_final_states())
        self._masks: dict[int, torch.Tensor] = {}

    def allowed(self, state: int) -> torch.Tensor:
        """Return the allowed tokens, bool ``[vocabulary]``.

        The end token is allowed after a match.
        """
        if state not in self._masks:
            mask = torch.zeros(self._size, dtype=torch.bool)
            mask[self._index.get_allowed_tokens(state) or []] = True
            mask[self._end] = self.matches(state)
            self._masks[state] = mask
        return self._masks[state]

    def states(self, token_ids: Sequence[int]) -> list[int]:
        """Return the state before each token of a turn that was sampled with this constraint.

        Raises:
            PolicyError: If a token is not allowed at its place.
        """
        states = []
        state = self.start
        for place, token in enumerate(token_ids):
            if not self.allowed(state)[token]:
                raise PolicyError(
                    f"The token {token} at the index {place} of the turn is not allowed by the "
                    "regular expression with which the turn was sampled."
                )
            states.append(state)
            if token != self._end:
                state = self.after(state, token)
        return states

    def after(self, state: int, token: int) -> int:
        """Return the state after a token that is allowed and not the end."""
        following: int = self._index.get_next_state(state, token)
        return following

    def matches(self, state: int) -> bool:
        """Return whether the text so far is a full match."""
        return state in self._final


class RegexConstraints:
    """Builds the constraint of each regular expression once.

    Args:
        vocabulary: The tokens.
        banned: bool ``[vocabulary]``: tokens that are never sampled.
        end_id: The token that ends a turn.

    Attributes:
        size: Number of tokens in the vocabulary.
    """

    def __init__(self, vocabulary: Vocabulary, banned: NDArray[np.bool_], end_id: int) -> None:
        self.size = len(banned)
        self._vocabulary = vocabulary
        self._banned = banned
        self._end = end_id
        self._built: dict[str, RegexConstraint] = {}

    def get(self, regex: str) -> RegexConstraint:
        """Return the constraint of a regular expression (the syntax of Rust's regex crate).

        Raises:
            PolicyError: If the expression is invalid, or no sequence of tokens matches it.
        """
        if regex not in self._built:
            try:
                index = outlines_core.Index(regex, self._spelling)
            except ValueError as error:
                raise PolicyError(f"Cannot constrain sampling to {regex!r}: {error}") from error
            self._built[regex] = RegexConstraint(index, self.size, self._end)
        return self._built[regex]

    @cached_property
    def _spelling(self) -> outlines_core.Vocabulary:
        tokens: dict[bytes, list[int]] = defaultdict(list)
        for token_id, spelled in enumerate(self._vocabulary.bytes):
            if spelled and not self._banned[token_id]:
                tokens[spelled].append(token_id)
        return outlines_core.Vocabulary(self._end, dict(tokens))
