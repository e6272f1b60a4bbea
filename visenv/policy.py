"""The Policy contract: a session remembers one conversation, `respond` takes the next turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

import gymnasium as gym

from visenv.env import Observation
from visenv.types import Ask, Episode, Image, Message, Reply, Sampling, Segment

if TYPE_CHECKING:
    import torch


class Session:
    """One conversation with one episode. Policies that deal in tokens extend it.

    Attributes:
        messages: The conversation the policy sees, its own turns included.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def observe(
        self, messages: Sequence[Message], context: Literal["append", "replace"] = "append"
    ) -> None:
        """Take in what the environment showed since the last turn."""
        if context == "replace":
            self.messages = []
        self.messages += messages

    def said(self, reply: Reply) -> None:
        """Remember the policy's own turn."""
        self.messages.append(Message("assistant", (reply.text,)))

    def segments(self) -> tuple[Segment, ...]:
        """The session as training data; empty for a policy without tokens."""
        return ()


SessionT = TypeVar("SessionT", bound=Session)


class Policy(ABC, Generic[SessionT]):
    """Whatever takes turns: a model, a server, a script, a person."""

    @abstractmethod
    def open(self, env: gym.Env[Observation, str], seed: int) -> SessionT:
        """A new session for an episode of `env`.

        Args:
            env: The environment, for policies that look into it (oracle, random); a model must not.
            seed: Seeds whatever the session draws.
        """

    @abstractmethod
    async def respond(self, session: SessionT, ask: Ask, sampling: Sampling) -> Reply:
        """Take the next turn and remember it in the session.

        Raises:
            PolicyError: If there is no reply to be had.
        """

    def close(self) -> None:
        """Release what the policy holds."""


class Scores(NamedTuple):
    """What a trainable policy thinks of sampled tokens.

    Attributes:
        logprobs: float32 ``[segments, length]``, natural log of each sampled token at its
            temperature, among the tokens it was drawn from (not banned, nor excluded by
            `TurnSpan.regex`); 0 off the mask.
        entropy: float32 ``[segments, length]``, nats, without gradient; 0 off the mask.
        mask: bool ``[segments, length]``, the segments' loss masks, padded right with False.
    """

    logprobs: torch.Tensor
    entropy: torch.Tensor
    mask: torch.Tensor


class TrainablePolicy(Policy[SessionT]):
    """A policy with weights. Trainers know this much of it and no more.

    Attributes:
        version: Counts weight updates; every sampled token carries it.
    """

    version: int

    @abstractmethod
    def encode(self, episode: Episode) -> Episode:
        """The episode with `segments`, as if this policy had said its turns (for SFT)."""

    @abstractmethod
    def score(self, segments: Sequence[Segment], images: Mapping[str, Image]) -> Scores:
        """Log-probabilities of the sampled tokens, with gradient.

        Args:
            segments: Token streams of this policy's processor.
            images: Every image they name, by `Image.sha256`.
        """

    @abstractmethod
    def parameters(self) -> Iterable[torch.nn.Parameter]:
        """The trainable parameters."""

    @abstractmethod
    def train_mode(self, on: bool) -> None:
        """Switch between training and sampling."""

    @abstractmethod
    def updated(self) -> None:
        """Called after each weight update: bumps `version` and drops stale caches."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the weights and all that loading needs."""

    @abstractmethod
    def load_weights(self, folder: Path) -> None:
        """Read back what `save` wrote.

        Raises:
            RunError: If the folder holds another model.
        """

    @abstractmethod
    def copy_frozen(self) -> TrainablePolicy[Any]:
        """A frozen copy with the present weights: the reference of a KL term."""
