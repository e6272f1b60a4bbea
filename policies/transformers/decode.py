"""Sampling one turn for each of many sessions, as one batch.

Only tokens that attention has not seen yet are read: keys and values stay with their session
between turns. Sessions that begin alike (the members of a group) are read once. Every session
draws from its own generator, one uniform number to a token, so that what it says does not depend
on who else is in the batch, up to the rounding of another batch shape.

Log-probabilities are recorded as `TransformersPolicy.score` computes them, under the distribution
that was sampled from: at the sampling temperature (1 when greedy), among the tokens that are
neither banned nor excluded by the turn's regular expression. So the ratio of new to old probability
is exactly 1 before the first update, and a forced token, of probability 1, has no gradient. Scored
without the expression, excluded tokens would only ever be pushed up (they are never drawn, so no
advantage counts against them) until they turn up where nothing excludes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from visenv.types import FinishReason

from .cache import SlotCache
from .constrain import Constraint
from .network import IMPOSSIBLE, Features, Network
from .session import Stream
from .template import Increment
from .vision import ImageEncoder, rope_positions


@dataclass(slots=True, eq=False)
class Turn:
    """A turn being sampled.

    Attributes:
        stream: What it continues.
        increment: What was said since; `Decoder.sample` appends it to the stream.
        rng: Draws one uniform number for each token; None is greedy.
        temperature: Divides the logits.
        limit: Most tokens.
        stop: Strings that end the turn, as bytes.
        constraint: What the turn must match, or None.
        token_ids: What was sampled.
        logprobs: Of what was sampled.
        finish: Why it ended, or None while it goes on.
    """

    stream: Stream
    increment: Increment
    rng: np.random.Generator | None
    temperature: float
    limit: int
    stop: tuple[bytes, ...] = ()
    constraint: Constraint | None = None
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
        """Tokens of stream and turn whose keys and values are known: all but the last sampled."""
        return len(self.stream.token_ids) + max(len(self.token_ids) - 1, 0)


class Decoder:
    """Samples batches of turns.

    Args:
        network: The model.
        encoder: Its image encoder.
        spelling: Each token's bytes, by id.
        end_id: The token that ends a turn.
        placeholder: The token that stands for image features.
        context: Most tokens in a stream.
    """

    def __init__(
        self,
        network: Network,
        encoder: ImageEncoder,
        spelling: Sequence[bytes],
        end_id: int,
        placeholder: int,
        context: int,
    ) -> None:
        self._network = network
        self._encoder = encoder
        self._spelling = spelling
        self._end = end_id
        self._placeholder = placeholder
        self._context = context

    @torch.inference_mode()
    def sample(self, turns: Sequence[Turn], version: int) -> None:
        """Sample all turns to their ends; their streams keep the new keys and values.

        A turn whose context is full stays without a finish reason.

        Args:
            turns: Not more than one for a stream.
            version: Of the weights; older keys and values are computed anew.
        """
        # All new images go through the image processor in one call.
        self._encoder.encode([image for turn in turns for image in turn.increment.images])
        for turn in turns:
            turn.stream.show(turn.increment, self._encoder, self._placeholder)
            turn.limit = min(turn.limit, self._context - len(turn.stream.token_ids))
            if turn.stream.memory_version != version:
                turn.stream.memory = None
                turn.stream.memory_version = version
        rows = [turn for turn in turns if turn.limit > 0]
        if rows:
            self._run(rows)

    def _run(self, rows: list[Turn]) -> None:
        """Sample token by token; rows that are done leave when they are half of the batch."""
        cache, hidden, positions = self._prefill(rows)
        while True:
            for turn, token, logprob in zip(rows, *self._choose(rows, hidden), strict=True):
                if turn.finish is None:
                    self._take(turn, token, logprob)
            live = [row for row, turn in enumerate(rows) if turn.finish is None]
            if 2 * len(live) <= len(rows):
                for row, turn in enumerate(rows):
                    if turn.finish is not None:
                        turn.stream.memory = cache.memory(row, turn.read)
                if not live:
                    return
                rows = [rows[row] for row in live]
                cache.select(live)
                positions = positions[live]
            hidden = self._step(rows, cache, positions)

    def _prefill(self, turns: Sequence[Turn]) -> tuple[SlotCache, torch.Tensor, torch.Tensor]:
        """Read what is new in each stream; the first hidden state to sample from."""
        distinct, index = _distinct([turn.stream for turn in turns])
        known = [0 if stream.memory is None else stream.memory.shape[3] for stream in distinct]
        new = [len(stream.token_ids) - start for stream, start in zip(distinct, known, strict=True)]
        width = max(new)
        token_ids = np.full((len(distinct), width), self._end)
        positions = np.zeros((3, len(distinct), width), np.int64)
        following = np.zeros(len(distinct), np.int64)
        for row, stream in enumerate(distinct):
            token_ids[row, : new[row]] = stream.token_ids[known[row] :]
            whole = rope_positions(len(stream.token_ids), stream.spans, self._encoder.merge)
            positions[:, row, : new[row]] = whole[:, known[row] :]
            following[row] = whole[0, -1] + 1  # a prompt ends in text, where the axes agree
        cache = self._network.cache(len(distinct))
        cache.reserve(max(known) + width)
        for row, stream in enumerate(distinct):
            if stream.memory is not None:
                cache.store(row, stream.memory)
        hidden = self._read(distinct, known, token_ids, positions, cache)
        last = hidden[torch.arange(len(distinct)), torch.tensor(new) - 1]
        if len(distinct) < len(turns):
            cache.select(index)
            last = last[index]
        return cache, last, torch.from_numpy(following[index])

    def _read(
        self,
        streams: Sequence[Stream],
        known: Sequence[int],
        token_ids: NDArray[np.int64],
        positions: NDArray[np.int64],
        cache: SlotCache,
    ) -> torch.Tensor:
        device = self._network.device
        width = token_ids.shape[1]
        slots = torch.tensor(known)[:, None] + torch.arange(width)
        used = int(slots.max()) + 1
        cache.place(slots.to(device), used)
        visible = None
        if any(known):
            visible = (torch.arange(used) <= slots[:, None, :, None]).to(device)
        return self._network.read(
            torch.from_numpy(token_ids).to(device),
            torch.from_numpy(positions).to(device),
            self._look(streams, known),
            cache,
            visible,
        )

    def _look(self, streams: Sequence[Stream], known: Sequence[int]) -> list[Features]:
        """Features of the images not read yet, each distinct image looked at once."""
        images = [
            image
            for stream, start in zip(streams, known, strict=True)
            for image, span in zip(stream.images, stream.spans, strict=True)
            if span.offset >= start
        ]
        distinct = {image.sha256: image for image in images}
        seen = self._network.look(self._encoder.encode(list(distinct.values())))
        by_hash = dict(zip(distinct, seen, strict=True))
        return [by_hash[image.sha256] for image in images]

    def _step(
        self, rows: Sequence[Turn], cache: SlotCache, positions: torch.Tensor
    ) -> torch.Tensor:
        """Read each row's last token."""
        device = self._network.device
        token_ids = torch.tensor([[turn.token_ids[-1]] for turn in rows])
        slots = torch.tensor([[turn.read] for turn in rows])
        step = torch.tensor([len(turn.token_ids) - 1 for turn in rows])
        used = int(slots.max()) + 1
        cache.place(slots.to(device), used)
        visible = (torch.arange(used) <= slots[:, None, :, None]).to(device)
        where = (positions + step).to(device)[None, :, None].expand(3, -1, -1)
        return self._network.read(token_ids.to(device), where, (), cache, visible)[:, 0]

    def _choose(self, rows: Sequence[Turn], hidden: torch.Tensor) -> tuple[list[int], list[float]]:
        """One token for each row, and its log-probability."""
        temperature = torch.tensor([turn.temperature for turn in rows], device=hidden.device)
        logits = _constrain(rows, self._network.logits(hidden) / temperature[:, None])
        logprobs = torch.log_softmax(logits, -1)
        chosen = logprobs.argmax(-1)
        if any(turn.rng is not None for turn in rows):
            drawn = [0.0 if turn.rng is None else turn.rng.random() for turn in rows]
            uniform = torch.tensor(drawn, dtype=torch.float64, device=hidden.device)
            greedy = torch.tensor([turn.rng is None for turn in rows], device=hidden.device)
            chosen = torch.where(greedy, chosen, draw(logprobs, uniform))
        picked = logprobs.gather(1, chosen[:, None])[:, 0]
        return chosen.tolist(), picked.tolist()

    def _take(self, turn: Turn, token: int, logprob: float) -> None:
        """Add a token to a turn, and see whether it ends it."""
        turn.token_ids.append(token)
        turn.logprobs.append(logprob)
        if token == self._end:
            turn.finish = "stop"
            return
        matched = True
        if turn.constraint is not None:
            turn.state = turn.constraint.after(turn.state, token)
            matched = turn.constraint.matches(turn.state)
        if turn.stop:
            text = turn.tail + self._spelling[token]
            if matched and any(stop in text for stop in turn.stop):
                turn.finish = "stop"
                return
            turn.tail = text[1 - max(map(len, turn.stop)) :]
        if len(turn.token_ids) >= turn.limit:
            turn.finish = "length"


def draw(scores: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """Sample each row by the inverse of its cumulative distribution.

    Args:
        scores: ``[rows, vocabulary]``: log-probabilities, not necessarily normalised.
        uniform: float64 ``[rows]`` in ``[0, 1)``.

    Returns:
        int64 ``[rows]``: the first token whose cumulative probability exceeds the uniform number.
    """
    cumulative = torch.softmax(scores, -1).double().cumsum(-1)
    total = cumulative[:, -1:].contiguous()
    drawn = torch.searchsorted(cumulative, uniform[:, None] * total, right=True)
    # Rounding may lift the product to the total: then it is the last token that adds to it.
    return torch.minimum(drawn, torch.searchsorted(cumulative, total))[:, 0]


def _constrain(rows: Sequence[Turn], logits: torch.Tensor) -> torch.Tensor:
    bound = [row for row, turn in enumerate(rows) if turn.constraint is not None]
    if not bound:
        return logits
    allowed = [turn.constraint.allowed(turn.state) for turn in rows if turn.constraint is not None]
    excluded = ~torch.stack(allowed).to(logits.device)
    logits[bound] = logits[bound].masked_fill(excluded, IMPOSSIBLE)
    return logits


def _distinct(streams: Sequence[Stream]) -> tuple[list[Stream], list[int]]:
    """Fresh streams that are alike are read once: the distinct ones, and where each one went."""
    places: dict[object, int] = {}
    distinct: list[Stream] = []
    index: list[int] = []
    for stream in streams:
        key: object = id(stream)
        if stream.memory is None:
            key = (tuple(stream.token_ids), tuple(image.sha256 for image in stream.images))
        if key not in places:
            places[key] = len(distinct)
            distinct.append(stream)
        index.append(places[key])
    return distinct, index
