"""Provides a policy of 110 weights and an environment of two letters, for real training in seconds.

The environment shows a letter, then an image and another letter; each correct answer, its capital,
earns 0.5. The policy's next token depends only on the token before.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from typing_extensions import override

from tests.algos.echo import LETTERS, Echo
from visenv.errors import PolicyError, RunError
from visenv.policy import BatchBudget, EnginePolicy, Session, TokenScores, TrainablePolicy
from visenv.types import (
    Episode,
    Image,
    ImageSpan,
    Message,
    PlaceholderRun,
    Reply,
    Sampling,
    Segment,
    Turn,
    TurnRequest,
    TurnSpan,
    Visual,
)

__all__ = ["LETTERS", "Echo"]  # also used from here

TOKENS = ["<image>", *LETTERS, "<end>", *LETTERS.upper()]
PLACEHOLDER, END, VOCABULARY = TOKENS.index("<image>"), TOKENS.index("<end>"), len(TOKENS)


class ToySession(Session):
    """Holds the tokens of one conversation."""

    def __init__(self, seed: int, temperature: float = 1.0) -> None:
        super().__init__()
        self.seed = seed
        self.tokens: list[int] = []
        self.sampled: list[tuple[int, float, int]] = []
        self.turns: list[TurnSpan] = []
        self.image_spans: list[ImageSpan] = []

    @override
    def observe(self, messages: Sequence[Message], context: Any = "append") -> None:
        super().observe(messages, context)
        for part in (part for message in messages for part in message.parts):
            if isinstance(part, Image):
                self.image_spans.append(
                    ImageSpan(part.sha256, (PlaceholderRun(len(self.tokens), 1),), PLACEHOLDER, 4)
                )
                self.tokens.append(PLACEHOLDER)
            elif isinstance(part, str):
                self.tokens += [TOKENS.index(letter) for letter in part]

    def add(self, tokens: Sequence[int], logprobs: Sequence[float], version: int) -> None:
        start = len(self.tokens)
        for token, logprob in zip(tokens, logprobs, strict=True):
            self.sampled.append((len(self.tokens), logprob, version))
            self.tokens.append(token)
        self.turns.append(TurnSpan(len(self.turns), start, len(self.tokens), "stop"))

    @override
    def segments(self) -> tuple[Segment, ...]:
        length = len(self.tokens)
        mask = np.zeros(length, np.bool_)
        logprobs, versions = np.zeros(length, np.float32), np.zeros(length, np.int32)
        for place, logprob, version in self.sampled:
            mask[place], logprobs[place], versions[place] = True, logprob, version
        tokens = np.array(self.tokens, np.int32)
        spans = (tuple(self.turns), tuple(self.image_spans))
        return (Segment(tokens, mask, logprobs, versions, *spans, (PLACEHOLDER,), 1.0, "toy"),)


class Bigrams(torch.nn.Module):
    """Computes logits of the next token from the token before, with dropout."""

    def __init__(self, seed: int, dropout: float, width: int = VOCABULARY) -> None:
        super().__init__()
        noise = np.random.default_rng(seed).normal(0, 0.3, (width, VOCABULARY))
        self.weight = torch.nn.Parameter(torch.tensor(noise, dtype=torch.float32))
        self.bias = torch.nn.Parameter(torch.zeros(VOCABULARY))
        self.dropout = torch.nn.Dropout(dropout)

    @override
    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits = self.dropout(self.weight)[tokens] + self.bias
        banned = torch.zeros_like(logits)
        banned[..., PLACEHOLDER] = -torch.inf
        return torch.log_softmax(logits + banned, -1)


class Scorer(torch.nn.Module):
    """Scores segments with its bigrams."""

    def __init__(self, network: Bigrams) -> None:
        super().__init__()
        self.network = network

    @override
    def forward(self, segments: Sequence[Segment]) -> TokenScores:
        width = max(map(len, segments))
        tokens, mask = torch.zeros(len(segments), width, dtype=torch.int64), []
        for row, segment in enumerate(segments):
            tokens[row, : len(segment)] = torch.from_numpy(segment.token_ids.astype(np.int64))
            mask.append(np.pad(segment.loss_mask, (0, width - len(segment))))
        given = self.network(tokens[:, :-1])
        given = torch.cat([torch.zeros_like(given[:, :1]), given], 1)
        sampled = torch.from_numpy(np.stack(mask))
        logprobs = given.gather(-1, tokens[..., None])[..., 0].masked_fill(~sampled, 0.0)
        plogp = torch.where(given.isinf(), 0.0, given.exp() * given)
        entropy = -plogp.sum(-1).detach().masked_fill(~sampled, 0.0)
        return TokenScores(logprobs, entropy, sampled)


class ToyPolicy(TrainablePolicy[ToySession]):
    """Implements `TrainablePolicy` with `Bigrams`."""

    def __init__(self, seed: int = 0, dropout: float = 0.0, width: int = VOCABULARY) -> None:
        self.version = 0
        self.network = Bigrams(seed, dropout, width).eval()
        self.module = Scorer(self.network)
        self.scored: list[int] = []

    @override
    def open(self, seed: int) -> ToySession:
        return ToySession(seed)

    @override
    async def respond(self, session: ToySession, request: TurnRequest, sampling: Sampling) -> Reply:
        return self.say(session, sampling)

    def say(self, session: ToySession, sampling: Sampling, rounding: float = 0.0) -> Reply:
        """Sample a turn; add `rounding` to every other logit, like another batch shape."""
        rng = np.random.default_rng([sampling.seed, len(session.turns)])
        tokens: list[int] = []
        logprobs: list[float] = []
        before = session.tokens[-1]
        while len(tokens) < min(3, sampling.max_tokens) and before != END:
            with torch.no_grad():
                given = self.network(torch.tensor(before)).double().numpy()
            if rounding:
                given[::2] += rounding
                given -= np.log(np.exp(given).sum())
            before = int(rng.choice(VOCABULARY, p=np.exp(given) / np.exp(given).sum()))
            tokens.append(before)
            logprobs.append(float(given[before]))
        session.add(tokens, logprobs, self.version)
        text = "".join(TOKENS[token] for token in tokens if token != END)
        reply = Reply(text, np.array(tokens, np.int32), np.array(logprobs, np.float32))
        session.said(reply)
        return reply

    @override
    def encode(self, episode: Episode) -> Episode:
        session = ToySession(0)
        for turn in episode.turns:
            session.observe(turn.messages)
            tokens = [*(TOKENS.index(letter) for letter in turn.text), END]
            session.add(tokens, [float("nan")] * len(tokens), 0)
        values = {name: getattr(episode, name) for name in episode.__dataclass_fields__}
        return Episode(**{**values, "segments": session.segments()})

    @override
    def split(self, segments: Sequence[Segment], budget: BatchBudget) -> list[list[int]]:
        parts: list[list[int]] = []
        for index in sorted(range(len(segments)), key=lambda index: -len(segments[index])):
            first = segments[parts[-1][0]] if parts else None
            if first is None or len(first) * (len(parts[-1]) + 1) > budget.tokens:
                parts.append([])
            parts[-1].append(index)
        return parts

    @override
    def collate(
        self, segments: Sequence[Segment], images: Mapping[str, Visual]
    ) -> Sequence[Segment]:
        self.scored.append(len(segments))
        assert all(span.sha256 in images for each in segments for span in each.images)
        return segments

    @override
    def train_mode(self, on: bool) -> None:
        self.network.train(on)

    @override
    def updated(self) -> None:
        self.version += 1

    @override
    def save(self, folder: Path) -> None:
        torch.save(self.network.state_dict(), folder / "weights.pt")

    @override
    def load_weights(self, folder: Path) -> None:
        try:
            self.network.load_state_dict(torch.load(folder / "weights.pt", weights_only=True))
        except RuntimeError as error:
            raise RunError(f"{folder} holds another model.") from error

    @override
    def copy_frozen(self) -> ToyPolicy:
        frozen = copy.deepcopy(self)
        frozen.train_mode(False)
        for parameter in frozen.parameters():
            parameter.requires_grad_(False)
        return frozen

    def weights(self) -> bytes:
        """Return all weights as bytes, to be compared exactly."""
        return b"".join(each.detach().numpy().tobytes() for each in self.network.parameters())


class ToyEngine(EnginePolicy[ToySession]):
    """Samples like `ToyPolicy`, with the weights that it received last.

    Args:
        failures: Number of first transfers that fail halfway.
        dies_at: Number of turns after which it dies, once.
    """

    def __init__(self, failures: int = 0, dies_at: int | None = None) -> None:
        self.version = -1
        self.stale = True
        self.log: list[str] = []
        self._inner = ToyPolicy(seed=99)
        self._failures = failures
        self._left = dies_at

    @override
    def open(self, seed: int) -> ToySession:
        return ToySession(seed)

    @override
    async def respond(self, session: ToySession, request: TurnRequest, sampling: Sampling) -> Reply:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                self._left, self.stale = None, True
        if self.stale:
            raise PolicyError("The engine is dead.")
        return await self._inner.respond(session, request, sampling)

    @override
    def load(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        self.log.append(f"load {version}")
        given = iter(weights)
        first = next(given)
        if self._failures:
            self._failures -= 1
            self.stale = True
            raise PolicyError("The transfer took too long.")
        named = {name: weight.clone() for name, weight in (first, *given)}
        self._inner.module.load_state_dict(named)
        self.version = self._inner.version = version
        self.stale = False

    @override
    def sleep(self) -> None:
        self.log.append("sleep")

    @override
    def wake(self) -> None:
        self.log.append("wake")


def divided(episode: Episode) -> Episode:
    """Return an episode with a segment for each turn, as if its context had been replaced.

    A token depends only on the token before, so the log-probabilities stay the same.
    """
    (whole,) = episode.segments
    ends = [span.end for span in whole.turns]
    parts = []
    for span, start, end in zip(whole.turns, [0, *ends], ends, strict=False):
        images = [each for each in whole.images if start <= each.offset < end]
        parts.append(
            replace(
                whole,
                token_ids=whole.token_ids[start:end],
                loss_mask=whole.loss_mask[start:end],
                logprobs=whole.logprobs[start:end],
                policy_version=whole.policy_version[start:end],
                turns=(span._replace(start=span.start - start, end=end - start),),
                images=tuple(_moved(each, -start) for each in images),
            )
        )
    return replace(episode, segments=tuple(parts))


def _moved(span: ImageSpan, tokens: int) -> ImageSpan:
    runs = tuple(run._replace(offset=run.offset + tokens) for run in span.runs)
    return span._replace(runs=runs)


def demonstration(first: str, second: str, gray: int = 0) -> Episode:
    """Return an episode with two right answers and without segments."""
    image = Image.from_pixels(np.full((2, 2, 3), gray, np.uint8))
    turns = [
        Turn((Message("user", (first,)),), first.upper(), 0.5, (), "stop"),
        Turn((Message("user", (image, second)),), second.upper(), 0.5, (), "stop"),
    ]
    return Episode("Echo", first + second, "", 0, 0, 0, tuple(turns), "terminated")
