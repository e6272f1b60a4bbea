"""Defines a policy whose turns are sampled by verl's servers, and makes the codec of its model."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import uuid4
from weakref import WeakKeyDictionary

import numpy as np
import transformers
from typing_extensions import override

from visenv.errors import ConfigurationError, PolicyError
from visenv.policy import Policy
from visenv.pretrained import load_pretrained
from visenv.registration import load
from visenv.types import FinishReason, Reply, Sampling, TurnRequest

from .formats import to_pil

SECONDS: ContextVar[list[float]] = ContextVar("SECONDS")
"""The sampling times of the turns of the current rollout, in seconds."""


class RowLengths(NamedTuple):
    """Holds the limits of a row of verl.

    Attributes:
        prompt: The maximum number of tokens before the first sampled token.
        response: The maximum number of tokens from the first sampled token on, including those of
            the environment.
    """

    prompt: int
    response: int


class ServerPolicy(Policy[Any]):
    """Samples by ``server_manager.generate``, with token ids as input and output.

    Placeholders are sent expanded, as verl's servers expect them. `TurnRequest.regex` is not
    enforced, because verl computes log-probabilities over all tokens.

    Args:
        server: The server manager of verl.
        codec: The codec between messages and tokens of the model that the servers run.
        params: Further sampling parameters, which verl passes to the agent loop.
        room: The limits of a row of verl.
    """

    def __init__(
        self, server: Any, codec: Any, params: Mapping[str, Any], room: RowLengths
    ) -> None:
        self._server = server
        self._codec = codec
        self._params = params
        self._room = room
        # All turns of an episode have one id, so they go to the server with its cached prefix.
        self._requests: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

    @override
    def open(self, seed: int) -> Any:
        session = self._codec.open(seed)
        self._requests[session] = uuid4().hex
        return session

    @override
    async def respond(self, session: Any, request: TurnRequest, sampling: Sampling) -> Reply:
        """Sample the next turn.

        Raises:
            PolicyError: If the row has no token left, or the server aborted the request.
        """
        codec, stream = self._codec, session.stream
        session.sample_at(sampling.temperature)
        increment = codec.increment(stream, session.pending, request)
        session.pending = []
        codec.family.check(increment.items)
        stream.show(increment, codec.family)
        limits = (
            self._left(stream),
            sampling.max_tokens,
            request.max_tokens or sampling.max_tokens,
        )
        output = await self._generate(session, min(limits), request.stop, sampling.temperature)
        tokens = self._until_stop(output.token_ids, request.stop)
        logprobs = (output.log_probs or [math.nan] * len(tokens))[: len(tokens)]
        text = codec.vocabulary.decode(tokens)
        ended = tokens[-1:] == [codec.end_id] or any(stop in text for stop in request.stop)
        finish: FinishReason = "stop" if ended else "length"
        version = int(output.extra_fields.get("global_steps") or 0)
        stream.say(session.turn, tokens, logprobs, version, finish)
        said = (np.array(tokens, np.int32), np.array(logprobs, np.float32), finish)
        reply = Reply(codec.text(tokens, request.prefill), *said)
        session.said(reply)
        return reply

    async def _generate(
        self, session: Any, limit: int, stop: Sequence[str], temperature: float
    ) -> Any:
        """Return the output of the servers for the tokens of the session."""
        started = time.perf_counter()
        params = {**self._params, "temperature": temperature, "max_tokens": limit}
        images = [to_pil(image) for image in session.stream.images]
        output = await self._server.generate(
            request_id=self._requests[session],
            prompt_ids=list(session.stream.token_ids),
            sampling_params=params | ({"stop": list(stop)} if stop else {}),
            image_data=images or None,
        )
        if (seconds := SECONDS.get(None)) is not None:
            seconds.append(time.perf_counter() - started)
        if output.stop_reason in ("aborted", "abort"):
            raise PolicyError(
                f"The server ended the request with {output.stop_reason!r}, after "
                f"{len(output.token_ids)} tokens."
            )
        if self._codec.image_id in output.token_ids:
            raise PolicyError(
                f"The server sampled the token {self._codec.image_id}, the placeholder of an "
                "image, which no turn may contain."
            )
        return output

    def _left(self, stream: Any) -> int:
        """Return the number of tokens that may still be sampled."""
        count = len(stream.token_ids)
        start = stream.turns[0].start if stream.turns else count
        left = self._room.response - (count - start)
        if start > self._room.prompt or left < 1:
            raise PolicyError(
                f"The episode does not fit a row of verl: {start} tokens before the first sampled "
                f"token (prompt_length {self._room.prompt}) and {count - start} after it "
                f"(response_length {self._room.response}). Images are never cut."
            )
        return left

    def _until_stop(self, tokens: Sequence[int], stops: Sequence[str]) -> list[int]:
        """Return the tokens up to the end of a stop string; servers may sample further tokens."""
        spelling = self._codec.vocabulary.bytes
        wanted = [stop.encode() for stop in stops]
        longest = max(map(len, wanted), default=0)
        tail = b""
        for kept, token in enumerate(tokens, start=1):
            tail = tail[-longest:] + spelling[token] if longest else b""
            if any(stop in tail for stop in wanted):
                return list(tokens[:kept])
        return list(tokens)


@lru_cache(maxsize=1)
def codec_of(model: str) -> Any:
    """Return the codec of the model that verl trains.

    Args:
        model: A checkpoint folder or a hub name.

    Raises:
        ConfigurationError: If the model is of another type than Qwen2.5-VL and Qwen3-VL.
    """
    rows = load_pretrained(transformers.AutoConfig, model).get_text_config().vocab_size
    codec = load("policy", "visenv.policies.tokens:Codec")(model, rows, video="frames")
    if not codec.family.packs:
        raise ConfigurationError(
            "The bridge to verl supports Qwen2.5-VL and Qwen3-VL, and this is a "
            f"{codec.family.name} model: use visenv's own trainer."
        )
    return codec
