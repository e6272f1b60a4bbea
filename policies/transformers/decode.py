"""Samples one turn for each of several sessions, as one batch.

Only new tokens are read: keys and values stay with their session between turns. Sessions with the
same beginning (the members of a group) are read once. Every session has its own random generator,
with one uniform number per token, so that its text does not depend on the other sessions in the
batch, except for the rounding of another batch shape.

Log-probabilities are recorded as `TransformersPolicy.score` computes them, under the sampled
distribution: at the sampling temperature (1 if greedy), over the tokens that are neither banned nor
excluded by the turn's regular expression. The ratio of new to old probability is therefore exactly
1 before the first update, and a forced token with probability 1 has no gradient. If scoring ignored
the expression, the probabilities of excluded tokens could only increase (they are never sampled, so
that no advantage applies to them), until they occur in turns without the constraint.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from ..tokens.qwen_vl import QwenVL
from ..tokens.session import TokenStream
from .cache import SlotCache
from .network import QwenVLParts
from .turn import RunningTurn, choose, distinct_streams
from .vision import ImageFeatures


class Decoder:
    """Samples batches of turns.

    Args:
        network: The model.
        family: The family of the model, which encodes images and videos.
        spelling: Bytes of each token, by id.
        end_id: The token that ends a turn.
        context: Maximum number of tokens in a stream.
    """

    def __init__(
        self,
        network: QwenVLParts,
        family: QwenVL,
        spelling: Sequence[bytes],
        end_id: int,
        context: int,
    ) -> None:
        self._network = network
        self._family = family
        self._spelling = spelling
        self._end = end_id
        self._context = context

    @torch.inference_mode()
    def sample(self, turns: Sequence[RunningTurn], version: int) -> None:
        """Sample all turns to their ends; their streams store the new keys and values.

        A turn whose context is full has no finish reason.

        Args:
            turns: At most one turn for each stream.
            version: Version of the weights; keys and values of other versions are recomputed.
        """
        # The image processor gets all new images in one call, and the video processor all new
        # videos.
        self._family.prepare([item for turn in turns for item in turn.increment.items])
        for turn in turns:
            turn.show(self._family, self._context)
            if turn.stream.memory_version != version:
                turn.stream.memory = None
                turn.stream.memory_version = version
        rows = [turn for turn in turns if turn.limit > 0]
        if rows:
            self._run(rows)

    def _run(self, rows: list[RunningTurn]) -> None:
        """Sample token by token; finished rows are removed when they are half of the batch."""
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
        """Read the new tokens of each stream.

        Return the state from which the first token is sampled.
        """
        distinct, index = distinct_streams([turn.stream for turn in turns])
        known = [0 if stream.memory is None else stream.memory.shape[3] for stream in distinct]
        new = [len(stream.token_ids) - start for stream, start in zip(distinct, known, strict=True)]
        width = max(new)
        token_ids = np.full((len(distinct), width), self._end)
        positions = np.zeros((3, len(distinct), width), np.int64)
        following = np.zeros(len(distinct), np.int64)
        for row, stream in enumerate(distinct):
            token_ids[row, : new[row]] = stream.token_ids[known[row] :]
            whole = self._family.positions(len(stream.token_ids), stream.spans, stream.items)
            positions[:, row, : new[row]] = whole[:, known[row] :]
            following[row] = whole[0, -1] + 1  # a prompt ends in text, whose axes are equal
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
        """Compute features of new images and videos, once for each distinct item."""
        shown = [
            each
            for stream, start in zip(streams, known, strict=True)
            for each in stream.shown
            if each.start >= start
        ]
        seen = self._network.vision.look(self._family.encode([each.item for each in shown]))
        return [seen[span.sha256].of(span) for each in shown for span in each.spans]

    def _step(
        self, rows: Sequence[RunningTurn], cache: SlotCache, positions: torch.Tensor
    ) -> torch.Tensor:
        """Read the last token of each row."""
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
