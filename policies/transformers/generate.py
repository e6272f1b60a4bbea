"""Samples one turn for each of several sessions with `generate` of transformers, as one batch.

`generate` is the only public way to the caches of all models: recurrent states of linear attention,
sliding windows, positions of images. Rows are padded on the left. Each step, `_Chooser` replaces
the logits such that only the token that visenv chose remains, so that a token is chosen as
`decode.Decoder` chooses it: with one uniform number of its session, among the tokens that are
neither banned nor excluded, at its temperature. Nothing is kept between turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
import transformers
from typing_extensions import override

from ..tokens.codec import Codec
from .lora import without
from .padded import PaddedModel
from .turn import RunningTurn, choose


class Generator:
    """Samples batches of turns, like `Decoder`.

    Args:
        network: The model.
        codec: The codec of the policy.
        context: Most tokens in a stream.
        bare: Whether LoRA adapters, if there are any, are disabled.
    """

    def __init__(
        self, network: PaddedModel, codec: Codec, context: int, *, bare: bool = False
    ) -> None:
        self._network = network
        self._codec = codec
        self._context = context
        self._bare = bare

    @torch.no_grad()
    def sample(self, turns: Sequence[RunningTurn], version: int) -> None:
        """Sample all turns to their ends.

        A turn whose context is full has no finish reason.

        Args:
            turns: At most one turn for each stream.
            version: Version of the weights, which is not needed, because no state is kept.
        """
        del version
        for turn in turns:
            turn.show(self._codec.family, self._context)
        rows = [turn for turn in turns if turn.limit > 0]
        if rows:
            self._run(rows)

    def _run(self, rows: Sequence[RunningTurn]) -> None:
        network, codec = self._network, self._codec
        width = max(len(turn.stream.token_ids) for turn in rows)
        token_ids = torch.full((len(rows), width), codec.end_id)
        seen = torch.zeros((len(rows), width), dtype=torch.int64)
        for row, turn in enumerate(rows):
            own = turn.stream.token_ids
            token_ids[row, width - len(own) :] = torch.tensor(own)
            seen[row, width - len(own) :] = 1
        items = [shown.item for turn in rows for shown in turn.stream.shown]
        given = network.placed(network.arguments(token_ids, seen, items))
        chooser = _Chooser(rows, network, codec)
        settings = transformers.GenerationConfig(
            max_new_tokens=max(turn.limit for turn in rows),
            do_sample=False,
            pad_token_id=codec.end_id,
        )
        with _plain(network.model), without(network.model) if self._bare else nullcontext():
            network.model.generate(
                **given,
                generation_config=settings,
                logits_processor=transformers.LogitsProcessorList([chooser]),
                stopping_criteria=transformers.StoppingCriteriaList([_Finished(rows)]),
            )


class _Chooser(transformers.LogitsProcessor):
    """Chooses the next token of each row, and leaves only that token."""

    def __init__(self, rows: Sequence[RunningTurn], network: PaddedModel, codec: Codec) -> None:
        self._rows = rows
        self._network = network
        self._spelling = codec.vocabulary.bytes
        self._end = codec.end_id

    @override
    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> Any:
        live = [row for row, turn in enumerate(self._rows) if turn.finish is None]
        chosen = torch.full((len(self._rows),), self._end, device=scores.device)
        if live:
            turns = [self._rows[row] for row in live]
            temperature = torch.tensor([turn.temperature for turn in turns], device=scores.device)
            logits = self._network.head.possible(scores[live], temperature)
            tokens, logprobs = choose(turns, logits)
            for turn, token, logprob in zip(turns, tokens, logprobs, strict=True):
                turn.take(token, logprob, token == self._end, self._spelling[token])
            chosen[live] = torch.tensor(tokens, device=scores.device)
        only = torch.full_like(scores, -torch.inf)
        return only.scatter_(1, chosen[:, None], 0.0)


class _Finished(transformers.StoppingCriteria):
    """Ends the rows whose turn has ended."""

    def __init__(self, rows: Sequence[RunningTurn]) -> None:
        self._rows = rows

    @override
    def __call__(
        self, input_ids: torch.LongTensor, scores: torch.FloatTensor, **kwargs: Any
    ) -> Any:
        finished = [turn.finish is not None for turn in self._rows]
        return torch.tensor(finished, device=input_ids.device)


@contextmanager
def _plain(model: Any) -> Iterator[None]:
    """Remove the generation settings of the checkpoint inside the block.

    They may contain a repetition penalty or suppressed tokens, which change the distribution.
    """
    own = model.generation_config
    model.generation_config = transformers.GenerationConfig()
    try:
        yield
    finally:
        model.generation_config = own
