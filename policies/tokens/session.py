"""A session as tokens: one append-only stream for each context, and what was sampled in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from typing_extensions import override

from visenv.errors import PolicyError
from visenv.policy import Session
from visenv.types import Context, FinishReason, Image, ImageSpan, Message, Segment, TurnSpan

from .template import Increment
from .vision import ImageEncoder


@dataclass(slots=True, eq=False)
class Stream:
    """Holds one append-only stream of tokens, placeholders expanded; becomes a `Segment`.

    Attributes:
        token_ids: What the policy saw and said.
        logprobs: Of each token; 0 where none was sampled.
        versions: Of each token: the weights that sampled it; 0 where none was sampled.
        turns: The sampled spans.
        spans: The image spans.
        images: The images, one for each span.
        temperature: What the turns are sampled at; None before the first.
        memory: Keys and values of the first tokens, ``[layers, 2, heads, tokens, head size]``.
        memory_version: The weights they were computed with.
    """

    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    turns: list[TurnSpan] = field(default_factory=list)
    spans: list[ImageSpan] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)
    temperature: float | None = None
    memory: torch.Tensor | None = None
    memory_version: int = 0

    def show(self, increment: Increment, encoder: ImageEncoder, placeholder: int) -> None:
        """Append what the environment said, each placeholder expanded to its image's length."""
        images = iter(increment.images)
        shown: list[int] = []
        for token in increment.token_ids:
            if token != placeholder:
                shown.append(token)
                continue
            image = next(images)
            span = encoder.span(image, len(self.token_ids) + len(shown), placeholder)
            self.images.append(image)
            self.spans.append(span)
            shown += [placeholder] * span.length
        self._append(shown, [0.0] * len(shown), 0)

    def say(
        self,
        turn: int,
        token_ids: Sequence[int],
        logprobs: Sequence[float],
        version: int,
        finish: FinishReason,
        regex: str | None = None,
    ) -> None:
        """Append a turn that was sampled, constrained to `regex` if that is given."""
        start = len(self.token_ids)
        self._append(token_ids, logprobs, version)
        self.turns.append(TurnSpan(turn, start, len(self.token_ids), finish, regex))

    def _append(self, token_ids: Sequence[int], logprobs: Sequence[float], version: int) -> None:
        self.token_ids += token_ids
        self.logprobs += logprobs
        self.versions += [version] * len(token_ids)

    def segment(self, encoder: ImageEncoder, placeholder: int) -> Segment:
        """Return the stream as training data, after checking its invariants."""
        mask = np.zeros(len(self.token_ids), np.bool_)
        for span in self.turns:
            mask[span.start : span.end] = True
        return Segment(
            token_ids=np.array(self.token_ids, np.int32),
            loss_mask=mask,
            logprobs=np.array(self.logprobs, np.float32),
            policy_version=np.array(self.versions, np.int32),
            turns=tuple(self.turns),
            images=tuple(self.spans),
            placeholder_ids=(placeholder,),
            merge=encoder.merge,
            temperature=1.0 if self.temperature is None else self.temperature,
            processor=encoder.fingerprint,
        )


class TokenSession(Session):
    """A conversation with `TransformersPolicy`.

    Args:
        encoder: The policy's image encoder.
        placeholder: The token that stands for image features.
        seed: Of this session's sampling: one uniform number is drawn for each token.
    """

    def __init__(self, encoder: ImageEncoder, placeholder: int, seed: int) -> None:
        super().__init__()
        self.rng = np.random.default_rng(seed)
        self.streams = [Stream()]
        self.pending: list[Message] = []
        self._encoder = encoder
        self._placeholder = placeholder

    @property
    def stream(self) -> Stream:
        """Return the stream of the present context."""
        return self.streams[-1]

    @property
    def turn(self) -> int:
        """Return how many turns the policy took, over all contexts."""
        return sum(len(stream.turns) for stream in self.streams)

    @override
    def observe(self, messages: Sequence[Message], context: Context = "append") -> None:
        """Add messages, encoded with the next turn; a replaced context is a new stream.

        Videos are shown as their frames.
        """
        messages = [message.with_frames() for message in messages]
        super().observe(messages, context)
        if context == "replace":
            self.pending = []
            if self.stream.token_ids:
                self.stream.memory = None
                self.streams.append(Stream())
        self.pending += messages

    def sample_at(self, temperature: float) -> None:
        """Fix the stream's temperature.

        Raises:
            PolicyError: If earlier turns of the stream were sampled at another.
        """
        if self.stream.temperature not in (None, temperature):
            raise PolicyError(
                f"One stream is sampled at one temperature; this one was begun at "
                f"{self.stream.temperature} and is now asked for at {temperature}."
            )
        self.stream.temperature = temperature

    @override
    def segments(self) -> tuple[Segment, ...]:
        """Return a segment for each context in which the policy sampled."""
        spoken = [stream for stream in self.streams if stream.turns]
        return tuple(stream.segment(self._encoder, self._placeholder) for stream in spoken)
