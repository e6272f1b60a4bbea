"""Stores a session as tokens: an append-only stream for each context, with its sampled turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from typing_extensions import override

from visenv.errors import PolicyError
from visenv.policy import Session
from visenv.types import (
    Context,
    FinishReason,
    Image,
    ImageSpan,
    Message,
    Segment,
    TurnSpan,
    Video,
    VideoSpan,
    Visual,
)

from .family import MediaSpan, ModelFamily, Span
from .template import Increment


@dataclass(slots=True, eq=False)
class TokenStream:
    """Holds one append-only stream of tokens with expanded placeholders; becomes a `Segment`.

    Attributes:
        token_ids: All tokens, those of the environment and of the policy.
        logprobs: Log-probability of each token; 0 for tokens that were not sampled.
        versions: Version of the weights that sampled each token; 0 for tokens that were not
            sampled.
        turns: The spans of sampled tokens.
        shown: The images and videos, in order.
        temperature: Sampling temperature of the turns; None before the first.
        memory: Keys and values of the first tokens, ``[layers, 2, heads, tokens, head size]``.
        memory_version: Version of the weights with which they were computed.
    """

    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    turns: list[TurnSpan] = field(default_factory=list)
    shown: list[MediaSpan] = field(default_factory=list)
    temperature: float | None = None
    memory: torch.Tensor | None = None
    memory_version: int = 0

    @property
    def images(self) -> list[Image]:
        """Return the images, in order."""
        return [each.item for each in self.shown if isinstance(each.item, Image)]

    @property
    def videos(self) -> list[Video]:
        """Return the videos, in order."""
        return [each.item for each in self.shown if isinstance(each.item, Video)]

    @property
    def spans(self) -> list[Span]:
        """Return the spans of images and videos, in order."""
        return [span for each in self.shown for span in each.spans]

    @property
    def items(self) -> dict[str, Visual]:
        """Return the images and videos by their hash."""
        return {each.item.sha256: each.item for each in self.shown}

    def show(self, increment: Increment, family: ModelFamily) -> None:
        """Append tokens of the environment.

        Each placeholder is expanded to the tokens of its item.
        """
        items = iter(increment.items)
        tokens: list[int] = []
        for token in increment.token_ids:
            if token in family.template_ids:
                own, shown = family.show(next(items), len(self.token_ids) + len(tokens))
                self.shown.append(shown)
                tokens += own
            else:
                tokens.append(token)
        self._append(tokens, [0.0] * len(tokens), 0)

    def say(
        self,
        turn: int,
        token_ids: Sequence[int],
        logprobs: Sequence[float],
        version: int,
        finish: FinishReason,
        regex: str | None = None,
    ) -> None:
        """Append a sampled turn, which was constrained to `regex` if that is given."""
        start = len(self.token_ids)
        self._append(token_ids, logprobs, version)
        self.turns.append(TurnSpan(turn, start, len(self.token_ids), finish, regex))

    def _append(self, token_ids: Sequence[int], logprobs: Sequence[float], version: int) -> None:
        self.token_ids += token_ids
        self.logprobs += logprobs
        self.versions += [version] * len(token_ids)

    def segment(self, family: ModelFamily) -> Segment:
        """Return the stream as training data, after checking its invariants."""
        mask = np.zeros(len(self.token_ids), np.bool_)
        for span in self.turns:
            mask[span.start : span.end] = True
        videos = tuple([span for span in self.spans if isinstance(span, VideoSpan)])
        return Segment(
            token_ids=np.array(self.token_ids, np.int32),
            loss_mask=mask,
            logprobs=np.array(self.logprobs, np.float32),
            policy_version=np.array(self.versions, np.int32),
            turns=tuple(self.turns),
            images=tuple([span for span in self.spans if isinstance(span, ImageSpan)]),
            placeholder_ids=family.placeholder_ids,
            temperature=1.0 if self.temperature is None else self.temperature,
            processor=family.fingerprint(with_videos=bool(videos)),
            videos=videos,
        )


class TokenSession(Session):
    """Stores a conversation with `TransformersPolicy`.

    Args:
        family: The family of the policy's model.
        seed: Seed of the sampling in this session: one uniform number is drawn for each token.
    """

    def __init__(self, family: ModelFamily, seed: int) -> None:
        super().__init__()
        self.rng = np.random.default_rng(seed)
        self.streams = [TokenStream()]
        self.pending: list[Message] = []
        self._family = family

    @property
    def stream(self) -> TokenStream:
        """Return the stream of the current context."""
        return self.streams[-1]

    @property
    def turn(self) -> int:
        """Return the number of turns of the policy, over all contexts."""
        return sum(len(stream.turns) for stream in self.streams)

    @override
    def observe(self, messages: Sequence[Message], context: Context = "append") -> None:
        """Add messages, which are encoded with the next turn.

        A replaced context starts a new stream.

        For a policy without video tokens, videos are converted to their frames.
        """
        if not self._family.takes_videos:
            messages = [message.with_frames() for message in messages]
        super().observe(messages, context)
        if context == "replace":
            self.pending = []
            if self.stream.token_ids:
                self.stream.memory = None
                self.streams.append(TokenStream())
        self.pending += messages

    def sample_at(self, temperature: float) -> None:
        """Set the temperature of the stream.

        Raises:
            PolicyError: If earlier turns of the stream were sampled at another temperature.
        """
        if self.stream.temperature not in (None, temperature):
            raise PolicyError(
                "All turns of a stream must have the same temperature; expected "
                f"{self.stream.temperature}, got {temperature}."
            )
        self.stream.temperature = temperature

    @override
    def segments(self) -> tuple[Segment, ...]:
        """Return a segment for each context in which the policy sampled."""
        spoken = [stream for stream in self.streams if stream.turns]
        return tuple(stream.segment(self._family) for stream in spoken)
