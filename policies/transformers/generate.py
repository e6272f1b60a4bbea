"""Samples one turn for each of several sessions with `generate` of transformers, as one batch.

`generate` is the only public way to the caches of all models: recurrent states of linear attention,
sliding windows, positions of images. Rows are padded on the left. Each step, `_Chooser` replaces
the logits such that only the token that visenv chose remains, so that a token is chosen as
`decode.Decoder` chooses it: with one uniform number of its session, among the tokens that are
neither banned nor excluded, at its temperature.

A first call reads the distinct prompts of a batch and returns their caches; a group begins with one
prompt, which is thus read once. A second call continues each turn with a copy of its cache. Nothing
is kept between turns.

A `Batcher` collects concurrent requests into batches on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Generic, TypeVar

import torch
import transformers
from typing_extensions import override

from ..tokens.codec import Codec
from ..tokens.session import TokenStream
from .cache import CACHE_NAMES
from .lora import without
from .padded import PaddedModel
from .turn import RunningTurn, choose, distinct_streams

Item = TypeVar("Item")

_QUIET_ROUNDS = 3
"""Iterations of the event loop without a new request, after which a batch is run.

After a reply, an episode steps its environment and sends its next request within one iteration. An
episode that waits for a tool would delay the others, so that the batch does not wait for it.
"""


class Batcher(Generic[Item]):
    """Runs requests that are submitted at the same time together, in the order of submission.

    Args:
        run: Processes a batch in place. It blocks the loop on purpose, so that the batches are the
            same in every run.
        size: Maximum number of requests in a batch.
    """

    def __init__(self, run: Callable[[Sequence[Item]], None], size: int) -> None:
        self._run = run
        self._size = size
        self._waiting: list[tuple[Item, asyncio.Future[None]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def submit(self, item: Item) -> None:
        """Wait until a batch with `item` has run; raise the exception of the batch, if any."""
        loop = asyncio.get_running_loop()
        if self._worker is None or self._worker.done() or self._worker.get_loop() is not loop:
            self._waiting = []
            self._worker = loop.create_task(self._work())
            self._worker.add_done_callback(_retrieve)
        done = loop.create_future()
        self._waiting.append((item, done))
        await done

    async def _work(self) -> None:
        while self._waiting:
            await self._settle()
            batch = [entry for entry in self._waiting[: self._size] if not entry[1].done()]
            self._waiting = self._waiting[self._size :]
            if batch:
                self._answer(batch)

    async def _settle(self) -> None:
        """Wait until the sessions that can submit a request without waiting have done so."""
        quiet = 0
        while quiet < _QUIET_ROUNDS and len(self._waiting) < self._size:
            before = len(self._waiting)
            await asyncio.sleep(0)
            quiet = 0 if len(self._waiting) > before else quiet + 1

    def _answer(self, batch: Sequence[tuple[Item, asyncio.Future[None]]]) -> None:
        try:
            self._run([item for item, _ in batch])
        except Exception as error:  # noqa: BLE001 - every session of the batch must get it
            for done in _unanswered(batch):
                done.set_exception(error)
        else:
            for done in _unanswered(batch):
                done.set_result(None)


def _retrieve(worker: asyncio.Task[None]) -> None:
    """Mark the exception of a worker as retrieved, because the event loop itself raises Ctrl-C.

    Otherwise asyncio prints a traceback when the worker is garbage-collected.
    """
    if not worker.cancelled():
        worker.exception()


def _unanswered(batch: Sequence[tuple[Any, asyncio.Future[None]]]) -> list[asyncio.Future[None]]:
    """Return the futures that were not canceled by Ctrl-C while the batch ran."""
    return [done for _, done in batch if not done.done()]


class Generator:
    """Samples batches of turns, like `Decoder`.

    Args:
        network: The model.
        codec: The codec of the policy.
        context: Maximum number of tokens in a stream.
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
        chooser = _Chooser(rows, self._network, self._codec)
        distinct, index = distinct_streams([turn.stream for turn in rows])
        token_ids, seen = self._padded(distinct)
        items = [shown.item for stream in distinct for shown in stream.shown]
        given = self._network.placed(self._network.arguments(token_ids, seen, items))
        read = self._generate(given, 1, output_logits=True, return_dict_in_generate=True)
        chosen = chooser.choose(read.logits[0][index])  # [rows]
        live = [row for row, turn in enumerate(rows) if turn.finish is None]
        if not live:
            return
        chooser.rows = [rows[row] for row in live]
        prompts = [index[row] for row in live]
        cache_name = next(name for name in CACHE_NAMES if name in read)
        self._select(read[cache_name], prompts, len(distinct))
        token_ids, seen = given["input_ids"][prompts], given["attention_mask"][prompts]
        begun = {
            "input_ids": torch.cat([token_ids, chosen[live, None]], 1),
            "attention_mask": torch.cat([seen, torch.ones_like(seen[:, :1])], 1),
            cache_name: read[cache_name],
        }
        self._generate(
            begun,
            max(turn.limit for turn in chooser.rows) - 1,
            logits_processor=transformers.LogitsProcessorList([chooser]),
            stopping_criteria=transformers.StoppingCriteriaList([_Finished(chooser.rows)]),
        )

    def _padded(self, streams: Sequence[TokenStream]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the tokens of streams, padded on the left, and 1 for each token of a stream."""
        width = max(len(stream.token_ids) for stream in streams)
        token_ids = torch.full((len(streams), width), self._codec.end_id)
        seen = torch.zeros((len(streams), width), dtype=torch.int64)
        for row, stream in enumerate(streams):
            start = width - len(stream.token_ids)
            token_ids[row, start:] = torch.tensor(stream.token_ids)
            seen[row, start:] = 1
        return token_ids, seen

    def _generate(self, given: Mapping[str, Any], tokens: int, **others: Any) -> Any:
        model = self._network.model
        settings = transformers.GenerationConfig(
            max_new_tokens=tokens, do_sample=False, pad_token_id=self._codec.end_id
        )
        with _plain(model), without(model) if self._bare else nullcontext():
            # Not in step with other processes: trainers gather shards of weights before sampling.
            return model.generate(**given, **others, generation_config=settings, synced_gpus=False)

    def _select(self, cache: Any, prompts: Sequence[int], distinct: int) -> None:
        """Copy the state of a prompt to each row that continues it; `prompts` has its index by row.

        Models with positions in several dimensions keep the offset of the next position outside of
        the cache.
        """
        if list(prompts) == [*range(distinct)]:
            return
        base = self._network.model.base_model
        chosen = torch.tensor(prompts, device=self._network.device)
        cache.reorder_cache(chosen)
        offsets = getattr(base, "rope_deltas", None)
        if offsets is not None:
            base.rope_deltas = offsets.index_select(0, chosen)


class _Chooser(transformers.LogitsProcessor):
    """Chooses the next token of each row, and leaves only that token."""

    def __init__(self, rows: Sequence[RunningTurn], network: PaddedModel, codec: Codec) -> None:
        self.rows = rows
        self._network = network
        self._spelling = codec.vocabulary.bytes
        self._end = codec.end_id

    def choose(self, scores: torch.Tensor) -> torch.Tensor:
        """Return the next token of each row, int64 ``[rows]``, for logits ``[rows, vocabulary]``.

        The token of a turn that has ended is the end token.
        """
        live = [row for row, turn in enumerate(self.rows) if turn.finish is None]
        chosen = torch.full((len(self.rows),), self._end, device=scores.device)
        if live:
            turns = [self.rows[row] for row in live]
            temperature = torch.tensor([turn.temperature for turn in turns], device=scores.device)
            logits = self._network.head.possible(scores[live], temperature)
            tokens, logprobs = choose(turns, logits)
            for turn, token, logprob in zip(turns, tokens, logprobs, strict=True):
                turn.take(token, logprob, token == self._end, self._spelling[token])
            chosen[live] = torch.tensor(tokens, device=scores.device)
        return chosen

    @override
    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> Any:
        only = torch.full_like(scores, -torch.inf)
        return only.scatter_(1, self.choose(scores)[:, None], 0.0)


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
