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

import numpy as np
import torch
from numpy.typing import NDArray

from ..tokens.media import Media
from ..tokens.session import TokenStream
from .cache import SlotCache
from .network import QwenVLParts
from .turn import RunningTurn, choose
from .vision import ImageFeatures


class Decoder:
    """Samples batches of turns.

    Args:
        network: The model.
        media: Its encoders of images and videos.
        spelling: Each token's bytes, by id.
        end_id: The token that ends a turn.
        context: Most tokens in a stream.
    """

    def __init__(
        self,
        network: QwenVLParts,
        media: Media,
        spelling: Sequence[bytes],
        end_id: int,
        context: int,
    ) -> None:
        self._network = network
        self._media = media
        self._spelling = spelling
        self._end = end_id
        self._context = context

    @torch.inference_mode()
    def sample(self, turns: Sequence[RunningTurn], version: int) -> None:
        """Sample all turns to their ends; their streams keep the new keys and values.

        A turn whose context is full stays without a finish reason.

        Args:
            turns: Not more than one for a stream.
            version: Of the weights; older keys and values are recomputed.
        """
        # All new images go through the image processor in one call, and all new videos.
        self._media.encode([item for turn in turns for item in turn.increment.items])
        for turn in turns:
            turn.stream.show(turn.increment, self._media)
            turn.limit = min(turn.limit, self._context - len(turn.stream.token_ids))
            if turn.stream.memory_version != version:
                turn.stream.memory = None
                turn.stream.memory_version = version
        rows = [turn for turn in turns if turn.limit > 0]
        if rows:
            self._run(rows)

    def _run(self, rows: list[RunningTurn]) -> None:
        """Sample token by token; rows that are done leave when they are half of the batch."""
        cache, hidden, positions = self._prefill(rows)
        while True:
            for turn, token, logprob in zip(rows, *self._choose(rows, hidden), strict=True):
                if turn.finish is None:
                    turn.take(token, logprob, token == self._end, self._spelling[token])
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

    def _prefill(
        self, turns: Sequence[RunningTurn]
    ) -> tuple[SlotCache, torch.Tensor, torch.Tensor]:
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
            whole = self._media.positions(len(stream.token_ids), stream.spans)
            positions[:, row, : new[row]] = whole[:, known[row] :]
            following[row] = whole[0, -1] + 1  # a prompt ends in text, where the axes agree
        cache = self._network.cache(len(distinct))
        cache.reserve(max(known) + width)
        for row, stream in enumerate(distinct):
            if stream.memory is not None:
                cache.store(row, stream.memory)
        hidden = self._read(distinct, known, token_ids, positions, cache)
        last = hidden[torch.arange(len(distinct)), torch.tensor(new) - 1]  # [distinct, width]
        if len(distinct) < len(turns):
            cache.select(index)
            last = last[index]  # [turns, width]
        return cache, last, torch.from_numpy(following[index])

    def _read(
        self,
        streams: Sequence[TokenStream],
        known: Sequence[int],
        token_ids: NDArray[np.int64],
        positions: NDArray[np.int64],
        cache: SlotCache,
    ) -> torch.Tensor:
        device = self._network.device
        width = token_ids.shape[1]
        slots = torch.tensor(known)[:, None] + torch.arange(width)  # [rows, tokens]
        used = int(slots.max()) + 1
        cache.place(slots.to(device), used)
        visible = None
        if any(known):
            # [used] against [rows, 1, tokens, 1]: [rows, 1, tokens, used].
            visible = (torch.arange(used) <= slots[:, None, :, None]).to(device)
        return self._network.read(
            torch.from_numpy(token_ids).to(device),
            torch.from_numpy(positions).to(device),
            self._look(streams, known),
            cache,
            visible,
        )

    def _look(self, streams: Sequence[TokenStream], known: Sequence[int]) -> list[ImageFeatures]:
        """Compute features of new images and videos, each distinct one once."""
        shown = [
            each
            for stream, start in zip(streams, known, strict=True)
            for each in stream.shown
            if each.start >= start
        ]
        seen = self._network.vision.look(self._media.encode([each.item for each in shown]))
        return [seen[span.sha256].of(span) for each in shown for span in each.spans]

    def _step(
        self, rows: Sequence[RunningTurn], cache: SlotCache, positions: torch.Tensor
    ) -> torch.Tensor:
        """Read each row's last token."""
        device = self._network.device
        token_ids = torch.tensor([[turn.token_ids[-1]] for turn in rows])  # [rows, 1]
        slots = torch.tensor([[turn.read] for turn in rows])  # [rows, 1]
        step = torch.tensor([len(turn.token_ids) - 1 for turn in rows])  # [rows]
        used = int(slots.max()) + 1
        cache.place(slots.to(device), used)
        visible = (torch.arange(used) <= slots[:, None, :, None]).to(device)  # [rows, 1, 1, used]
        where = (positions + step).to(device)[None, :, None].expand(3, -1, -1)  # [3, rows, 1]
        hidden = self._network.read(token_ids.to(device), where, (), cache, visible)
        return hidden[:, 0]  # [rows, width]

    def _choose(
        self, rows: Sequence[RunningTurn], hidden: torch.Tensor
    ) -> tuple[list[int], list[float]]:
        """Return one token for each row, and its log-probability."""
        temperature = torch.tensor([turn.temperature for turn in rows], device=hidden.device)
        return choose(rows, self._network.logits(hidden, temperature))


def _distinct(streams: Sequence[TokenStream]) -> tuple[list[TokenStream], list[int]]:
    """Group equal new streams, which are read once: the distinct ones, and the index of each."""
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
