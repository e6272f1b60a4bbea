"""Defines a turn while it is sampled: its allowed tokens, the choice of the next one, its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from visenv.types import FinishReason

from ..tokens.constrain import RegexConstraint
from ..tokens.family import ModelFamily
from ..tokens.session import TokenStream
from ..tokens.template import Increment
from .head import IMPOSSIBLE


@dataclass(slots=True, eq=False)
class RunningTurn:
    """Holds a turn that is being sampled.

    Attributes:
        stream: The stream that the turn continues.
        increment: The new messages, which `show` appends to the stream.
        rng: Draws one uniform number for each token; None is greedy.
        temperature: Divisor of the logits.
        limit: Maximum number of tokens.
        stop: Strings that end the turn, as bytes.
        constraint: The constraint of the turn, or None.
        token_ids: The sampled tokens.
        logprobs: The log-probabilities of the sampled tokens, in nats.
        finish: The finish reason, or None while the turn continues.
    """

    stream: TokenStream
    increment: Increment
    rng: np.random.Generator | None
    temperature: float
    limit: int
    stop: tuple[bytes, ...] = ()
    constraint: RegexConstraint | None = None
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish: FinishReason | None = None
    state: int = 0
    tail: bytes = b""

    def __post_init__(self) -> None:
        if self.constraint is not None:
            self.state = self.constraint.start

    @property
    def read(self) -> int:
        """Return the number of tokens with known keys and values: all but the last sampled one."""
        return len(self.stream.token_ids) + max(len(self.token_ids) - 1, 0)

    def show(self, family: ModelFamily, context: int) -> None:
        """Append the increment to the stream, and limit the turn to the rest of the context.

        Args:
            family: The family of the model.
            context: Maximum number of tokens in a stream.
        """
        self.stream.show(self.increment, family)
        self.limit = min(self.limit, context - len(self.stream.token_ids))

    def take(self, token: int, logprob: float, ends: bool, spelled: bytes) -> None:
        """Add a sampled token, and check whether it ends the turn.

        Args:
            token: The id of the token.
            logprob: The log-probability of the token, in nats.
            ends: Whether it is the token that ends turns.
            spelled: The bytes of the token.
        """
        self.token_ids.append(token)
        self.logprobs.append(logprob)
        if ends:
            self.finish = "stop"
            return
        matched = True
        if self.constraint is not None:
            self.state = self.constraint.after(self.state, token)
            matched = self.constraint.matches(self.state)
        if self.stop:
            text = self.tail + spelled
            if matched and any(stop in text for stop in self.stop):
                self.finish = "stop"
                return
            kept = max(map(len, self.stop)) - 1  # possibly the start of a stop string
            self.tail = text[max(len(text) - kept, 0) :]
        if len(self.token_ids) >= self.limit:
            self.finish = "length"


def choose(rows: Sequence[RunningTurn], logits: torch.Tensor) -> tuple[list[int], list[float]]:
    """Return the next token of each turn, and its log-probability.

    Args:
        rows: The turns; each that continues draws one uniform number from its own generator. A
            turn that has ended draws none, so that the next turn of its session does not depend on
            the length of the other turns in the batch.
        logits: ``[rows, vocabulary]``, at their temperatures; excluded tokens are masked in place.
    """
    logprobs = torch.log_softmax(_constrain(rows, logits), -1)  # [rows, vocabulary]
    chosen = logprobs.argmax(-1)  # [rows]
    if any(turn.rng is not None for turn in rows):
        drawn = [
            turn.rng.random() if turn.rng is not None and turn.finish is None else 0.0
            for turn in rows
        ]
        uniform = torch.tensor(drawn, dtype=torch.float64, device=logits.device)
        greedy = torch.tensor([turn.rng is None for turn in rows], device=logits.device)
        chosen = torch.where(greedy, chosen, draw(logprobs, uniform))
    picked = logprobs.gather(1, chosen[:, None])[:, 0]  # [rows]
    return chosen.tolist(), picked.tolist()


def distinct_streams(streams: Sequence[TokenStream]) -> tuple[list[TokenStream], list[int]]:
    """Return the streams to read, and for each given stream the index of the one that equals it.

    Equal new streams, as at the beginning of a group, are read once.
    """
    places: dict[object, int] = {}
    distinct: list[TokenStream] = []
    index: list[int] = []
    for stream in streams:
        key: object = id(stream)
        if stream.memory is None:
            key = (tuple(stream.token_ids), tuple(each.item.sha256 for each in stream.shown))
        if key not in places:
            places[key] = len(distinct)
            distinct.append(stream)
        index.append(places[key])
    return distinct, index


def draw(scores: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """Sample each row by the inverse of its cumulative distribution.

    Args:
        scores: ``[rows, vocabulary]``: log-probabilities, not necessarily normalized.
        uniform: float64 ``[rows]`` in ``[0, 1)``.

    Returns:
        int64 ``[rows]``: the first token whose cumulative probability exceeds the uniform number.
    """
    cumulative = torch.softmax(scores, -1).double().cumsum(-1)
    total = cumulative[:, -1:].contiguous()  # [rows, 1]
    drawn = torch.searchsorted(cumulative, uniform[:, None] * total, right=True)  # [rows, 1]
    # Rounding may increase the product to the total; then return the last token with a probability.
    return torch.minimum(drawn, torch.searchsorted(cumulative, total))[:, 0]


def _constrain(rows: Sequence[RunningTurn], logits: torch.Tensor) -> torch.Tensor:
    bound = [row for row, turn in enumerate(rows) if turn.constraint is not None]
    if not bound:
        return logits
    allowed = [turn.constraint.allowed(turn.state) for turn in rows if turn.constraint is not None]
    excluded = ~torch.stack(allowed).to(logits.device)  # [bound rows, vocabulary]
    logits[bound] = logits[bound].masked_fill(excluded, IMPOSSIBLE)
    return logits
