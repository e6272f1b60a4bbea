"""Defines `EngineSampler`, which samples the turns of a policy through an `EngineClient`.

`RestartableSampler` restarts an engine that died.
"""

from __future__ import annotations

import asyncio
import threading
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import torch
from typing_extensions import override

from visenv.errors import PolicyError
from visenv.policy import EnginePolicy
from visenv.types import FinishReason, Reply, Sampling, TurnRequest

from ..tokens.codec import Codec
from ..tokens.session import TokenSession, TokenStream
from .request import EngineClient, EngineOutput, EngineRequest
from .rules import TokenRules
from .weights import WeightManifest, WeightUpdate

_LOWEST_TEMPERATURE = 0.01
"""vLLM silently increases lower temperatures to this value."""


@dataclass(slots=True)
class SampledTokens:
    """Holds the tokens of a turn that were sampled so far.

    Attributes:
        token_ids: The tokens.
        logprobs: Log-probability of each token.
        versions: Version of the weights that sampled each token.
    """

    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)


class EngineSampler(EnginePolicy[TokenSession]):
    """Is the base class of policies with an engine.

    Args:
        model: A checkpoint folder or a hub name.
        codec: The codec of that checkpoint.
        max_images: Most images in a conversation.
        max_videos: Most videos in a conversation.
        patience: Seconds between two checks whether the engine still works.

    Attributes:
        version: Version of the weights with which it samples.
        codec: Converts between messages and tokens.
        manifest: Names and shapes of the weights that `load` expects.
    """

    def __init__(
        self, model: str, codec: Codec, max_images: int, max_videos: int, patience: float
    ) -> None:
        self.version = 0
        self.codec = codec
        self.rules = TokenRules(codec)
        self.image_processor = self.rules.image_processor
        self.manifest = WeightManifest(model)
        self._most = {"images": max_images, "videos": max_videos}
        self._patience = patience

    # ------------------------------------------------------------------ sampling

    @override
    def open(self, seed: int) -> TokenSession:
        return self.codec.open(seed)

    @override
    async def respond(
        self, session: TokenSession, request: TurnRequest, sampling: Sampling
    ) -> Reply:
        """Sample the next turn; turns of other sessions are sampled at the same time.

        The turn ends as a turn of `TransformersPolicy` does. Cancelling the task aborts it.

        Raises:
            PolicyError: If the context is full, there are too many images or videos, or the engine
                reads another prompt, refuses, dies or hangs.
        """
        engine_request, prompt = self._prepare(session, request, sampling)
        said = SampledTokens()
        finish: FinishReason = "abort"
        while finish == "abort":
            client = self._client()
            piece = await self._answer(client, client.submit(_rest(engine_request, said)))
            finish = self._take(piece, said, engine_request, prompt)
        _write(session, said, finish, request.regex)
        reply = Reply(
            self.codec.text(said.token_ids, request.prefill),
            np.array(said.token_ids, np.int32),
            np.array(said.logprobs, np.float32),
            finish,
        )
        session.said(reply)
        return reply

    def _prepare(
        self, session: TokenSession, request: TurnRequest, sampling: Sampling
    ) -> tuple[EngineRequest, list[int]]:
        """Add the new messages to the session; return the request, and the expanded prompt."""
        if 0 < sampling.temperature < _LOWEST_TEMPERATURE:
            raise PolicyError(
                f"vLLM supports a temperature of 0 or of at least {_LOWEST_TEMPERATURE}, "
                f"got {sampling.temperature}."
            )
        session.sample_at(sampling.temperature)
        self.rules.start(request.stop, request.regex)  # refuses an invalid expression
        increment = self.codec.increment(session.stream, session.pending, request)
        session.pending = []
        self.codec.family.check(increment.items)
        stream = session.stream
        stream.show(increment, self.codec.family)
        limits = (sampling.max_tokens, request.max_tokens or sampling.max_tokens)
        engine_request = EngineRequest(
            token_ids=_collapsed(stream),
            images=tuple(stream.images),
            temperature=sampling.temperature,
            seed=int(session.rng.integers(2**62)),
            limit=min(*limits, self._room(stream)),
            stop=request.stop,
            regex=request.regex,
            videos=tuple(stream.videos),
        )
        return engine_request, stream.token_ids

    def _room(self, stream: TokenStream) -> int:
        context = self._client().context
        if len(stream.token_ids) >= context:
            raise PolicyError(f"The context of {context} tokens is full.")
        for kind, count in (("images", len(stream.images)), ("videos", len(stream.videos))):
            if count > self._most[kind]:
                raise PolicyError(
                    f"The conversation has {count} {kind}; the engine was started for at most "
                    f"{self._most[kind]} (max_{kind})."
                )
        return context - len(stream.token_ids)

    async def _answer(self, client: EngineClient, future: Future[EngineOutput]) -> EngineOutput:
        """Wait for the engine that got the request, and check regularly whether the engine works.

        The engine may be replaced during the wait; the new engine knows nothing about turns of the
        old one.
        """
        answer = asyncio.wrap_future(future)
        try:
            while not answer.done():
                await asyncio.wait({answer}, timeout=self._patience)
                if not answer.done():
                    client.check()
            return answer.result()
        finally:
            answer.cancel()

    def _take(
        self,
        piece: EngineOutput,
        said: SampledTokens,
        request: EngineRequest,
        prompt: Sequence[int],
    ) -> FinishReason:
        """Add a piece to the turn so far; return ``"abort"`` if the turn continues."""
        if piece.prompt_ids is not None:
            ours = [*prompt, *said.token_ids]
            _require_same(ours, piece.prompt_ids, self.codec.family.name)
        said.token_ids += piece.token_ids
        said.logprobs += piece.logprobs
        said.versions += [piece.version] * len(piece.token_ids)
        state = self.rules.start(request.stop, request.regex)
        for place, token in enumerate(said.token_ids):
            if state.take(token):
                # The last token is the end token that `TurnProcessor` forced.
                for values in (said.token_ids, said.logprobs, said.versions):
                    del values[place + 1 :]
                return "stop"
        return piece.finish

    @abstractmethod
    def _client(self) -> EngineClient:
        """Return the engine; one that died is restarted if that is permitted."""


def _rest(request: EngineRequest, said: SampledTokens) -> EngineRequest:
    """Return the request for the rest of an interrupted turn."""
    done = len(said.token_ids)
    if not done:
        return request
    return request._replace(
        token_ids=request.token_ids + said.token_ids,
        seed=request.seed + done,
        limit=request.limit - done,
        said=done,
    )


def _collapsed(stream: TokenStream) -> list[int]:
    """Return the stream with the token that the template writes for each image and video."""
    collapsed: list[int] = []
    end = 0
    for shown in stream.shown:
        collapsed += [*stream.token_ids[end : shown.start], shown.template_id]
        end = shown.end
    return collapsed + stream.token_ids[end:]


def _write(
    session: TokenSession, said: SampledTokens, finish: FinishReason, regex: str | None
) -> None:
    stream = session.stream
    last = said.versions[-1] if said.versions else 0
    stream.say(session.turn, said.token_ids, said.logprobs, last, finish, regex)
    stream.versions[len(stream.versions) - len(said.versions) :] = said.versions


def _require_same(ours: Sequence[int], theirs: Sequence[int], family: str) -> None:
    """Check that the engine read the same tokens as the trainer will; `family` is the model's."""
    if ours == theirs:
        return
    shorter = min(len(ours), len(theirs))
    at = next((k for k in range(shorter) if ours[k] != theirs[k]), shorter)
    raise PolicyError(
        f"vLLM's prompt for a model of type {family!r} differs from that of visenv: {len(theirs)} "
        f"tokens instead of {len(ours)}, the first difference at token {at}; usually its processor "
        "resizes or tiles images differently, so give both the same checkpoint, min_pixels and "
        "max_pixels."
    )


ClientT = TypeVar("ClientT", bound=EngineClient)


class RestartableSampler(EngineSampler, Generic[ClientT]):
    """Restarts an engine that died for the next turn.

    If weights had been sent to the engine, it is restarted for the next `load`: until then `stale`
    is True, and turns are refused. A subclass calls `_start` as soon as its `_begin` can work.

    Args:
        model: A checkpoint folder or a hub name.
        codec: The codec of that checkpoint.
        max_images: Most images in a conversation.
        max_videos: Most videos in a conversation.
        patience: Seconds between two checks whether the engine still works.
    """

    def __init__(
        self, model: str, codec: Codec, max_images: int, max_videos: int, patience: float
    ) -> None:
        super().__init__(model, codec, max_images, max_videos, patience)
        self._starting = threading.Lock()
        self._loaded = False

    @property
    @override
    def stale(self) -> bool:  # type: ignore[override]
        """Return whether `load` is needed before sampling: the engine died or a transfer failed."""
        return self._present.stale or (self._loaded and self._is_dead())

    @override
    def load(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Send the weights; an engine that died is restarted first."""
        client = self._alive(restart=True)
        delivery = self._delivery(weights)
        self._loaded = True
        client.load(delivery, version)
        self.version = version

    @override
    def sleep(self) -> None:
        """Put the engine to sleep; turns in progress and new turns wait until it wakes."""
        self._present.sleep()

    @override
    def wake(self) -> None:
        """Wake the engine; if its weights were dropped, turns also wait for `load`."""
        self._present.wake()

    def restart(self) -> None:
        """Restart the engine with the checkpoint's weights; `stale` is set if others were loaded.

        If the policy did not start the server, it connects again.
        """
        with self._starting:
            self._restart()

    @override
    def close(self) -> None:
        """Stop the engine; a server that it did not start keeps running."""
        self._present.close()

    def _start(self, previous: ClientT | None = None) -> None:
        self._present = self._begin(previous)

    @override
    def _client(self) -> ClientT:
        return self._alive(restart=not self._loaded)

    def _alive(self, *, restart: bool) -> ClientT:
        with self._starting:
            if restart and self._is_dead():
                self._restart()
            return self._present

    def _restart(self) -> None:
        self._present.close()
        self._start(self._present)
        self._present.stale = self._loaded

    @abstractmethod
    def _begin(self, previous: ClientT | None) -> ClientT:
        """Return a new engine, or a new connection to one, in place of the closed one, if any."""

    @abstractmethod
    def _is_dead(self) -> bool:
        """Return whether the engine must be restarted before anything else."""

    @abstractmethod
    def _delivery(self, weights: Iterable[tuple[str, torch.Tensor]]) -> WeightUpdate:
        """Return the weights in the form that the engine takes."""
