"""Defines the interface of policies: `open` starts a session, and `respond` plays a turn.

`Policy` is the interface of all players. `TrainablePolicy` adds the methods that a trainer needs:
encoding, log-probabilities with gradients, and checkpoints. `EnginePolicy` only samples, with
weights that a trainer sends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from visenv.errors import ConfigurationError
from visenv.grammar.base import Grammar
from visenv.types import (
    AdviceRequest,
    Context,
    Episode,
    Message,
    Reply,
    Sampling,
    Segment,
    TurnRequest,
    Visual,
)

if TYPE_CHECKING:
    import torch


class TurnDescription(NamedTuple):
    """Describes a turn, so that a baseline can write it in the grammar of the environment.

    Attributes:
        turn: The number of the next turn, from 0.
        question: `Sample.question`.
        has_image: Whether the sample has an image.
        tools: The names of the tools.
        grammar: The grammar, which composes and parses turns.
    """

    turn: int
    question: str
    has_image: bool
    tools: tuple[str, ...]
    grammar: Grammar


Advice = str | TurnDescription
"""The answer to an `AdviceRequest`."""


class Session:
    """Holds the conversation of one episode; policies that work with tokens extend this class.

    Attributes:
        messages: The messages that the policy sees, including the turns of the policy.
        advice: The advice that the environment gave for the next turn, if the policy requests it
            (`Policy.advice_request`); otherwise None.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.advice: Advice | None = None

    def observe(self, messages: Sequence[Message], context: Context = "append") -> None:
        """Add the messages that the environment sent since the last turn.

        Args:
            messages: The messages of the environment, in order.
            context: ``"append"`` adds them to the conversation, and ``"replace"`` starts the
                conversation again with them.
        """
        if context == "replace":
            self.messages = []
        self.messages += messages

    def said(self, reply: Reply) -> None:
        """Add a turn of the policy to the messages."""
        self.messages.append(Message("assistant", (reply.text,)))

    def segments(self) -> tuple[Segment, ...]:
        """Return the session as training data: an empty tuple if the policy samples no tokens."""
        return ()

    async def fetch_segments(self) -> tuple[Segment, ...]:
        """Return the result of `segments` without blocking the event loop.

        A session whose tokens are on another machine overrides this method.

        Raises:
            PolicyError: If the segments cannot be fetched.
        """
        return self.segments()


SessionT = TypeVar("SessionT", bound=Session)


class Policy(ABC, Generic[SessionT]):
    """Defines the interface of a player: a model, a model server, a script or a person.

    A policy reads messages. It has no access to the environment, which can run in another process.

    Attributes:
        advice_request: The kind of advice that the policy needs for each turn: a demonstration, a
            random turn, or a description of the turn. The environment sends the advice with its
            messages. None (no advice) for a model.
        image_processor: The fingerprint of the image processor of a model, or None if the policy
            has none. A trainer refuses to train on turns of an engine with another one.
    """

    advice_request: AdviceRequest | None = None
    image_processor: str | None = None

    @abstractmethod
    def open(self, seed: int) -> SessionT:
        """Return a new session for one episode.

        Args:
            seed: Seed of the random numbers of the session.
        """

    @abstractmethod
    async def respond(self, session: SessionT, request: TurnRequest, sampling: Sampling) -> Reply:
        """Take the next turn and add it to the session.

        Raises:
            PolicyError: If the policy cannot reply.
        """

    def close(self) -> None:
        """Release the resources of the policy."""


class TokenScores(NamedTuple):
    """Holds log-probabilities and entropies of the sampled tokens of a batch of segments.

    Attributes:
        logprobs: float32 ``[segments, length]``, in nats: the log-probability of each sampled token
            at the temperature it was sampled with. The distribution covers the tokens that could be
            sampled, without banned tokens and without tokens that `TurnSpan.regex` excludes. 0
            outside the mask.
        entropy: float32 ``[segments, length]``, in nats: the entropy of the same distribution,
            without gradient. 0 outside the mask.
        mask: bool ``[segments, length]``: the loss masks of the segments, padded on the right with
            False.
    """

    logprobs: torch.Tensor
    entropy: torch.Tensor
    mask: torch.Tensor


class BatchBudget(NamedTuple):
    """Holds the limits of one forward pass; a segment that exceeds a limit gets its own pass.

    Attributes:
        tokens: Maximum number of tokens; tokens that segments share count once.
        patches: Maximum number of image patches; each distinct image or video counts once. None
            sets no limit.
    """

    tokens: int
    patches: int | None = None


class Adapter(NamedTuple):
    """Represents a LoRA adapter: a change ``scale B A`` of some weights (arXiv 2106.09685).

    Attributes:
        config: The content of peft's ``adapter_config.json``, JSON-like.
        weights: The matrices A ``[rank, inputs]`` and B ``[outputs, rank]``. The keys are the names
            in peft's ``adapter_model.safetensors``.
    """

    config: Mapping[str, Any]
    weights: Mapping[str, torch.Tensor]


def no_gather(parameters: Sequence[torch.nn.Parameter]) -> AbstractContextManager[None]:
    """Return an empty context: the parameters are not sharded and need no gathering."""
    return nullcontext()


class TrainablePolicy(Policy[SessionT]):
    """Defines a policy with weights that a trainer updates; trainers use only this interface.

    Attributes:
        version: Number of weight updates so far. Every sampled token records the version of the
            weights that sampled it.
        module: The module that holds all weights. Its `forward` takes the result of `collate` and
            returns `TokenScores` with gradient, so that DeepSpeed can wrap the module.
    """

    version: int
    module: torch.nn.Module

    @abstractmethod
    def encode(self, episode: Episode) -> Episode:
        """Return the episode with `segments`, as if this policy had sampled the turns (for SFT)."""

    @abstractmethod
    def split(self, segments: Sequence[Segment], budget: BatchBudget) -> list[list[int]]:
        """Distribute segments over forward passes.

        Args:
            segments: The segments.
            budget: The limits of each forward pass.

        Returns:
            One list of indices of `segments` for each forward pass; each index occurs once.
            Segments that share a prefix are in the same list where possible.
        """

    @abstractmethod
    def collate(self, segments: Sequence[Segment], images: Mapping[str, Visual]) -> Any:
        """Return the input of one forward pass of `module`, on the CPU.

        A trainer calls this method in another thread while `module` computes. The returned object
        may have a method ``pin_memory``, which returns a copy in pinned memory.

        Args:
            segments: Segments that this policy's processor encoded.
            images: Every image and video of the segments, by `Image.sha256` or `Video.sha256`.

        Raises:
            PolicyError: If a segment comes from another processor, or an image or video is missing.
        """

    def score(self, segments: Sequence[Segment], images: Mapping[str, Visual]) -> TokenScores:
        """Return the log-probabilities of the sampled tokens, with gradient.

        Args:
            segments: Segments that this policy's processor encoded.
            images: Every image and video of the segments, by `Image.sha256` or `Video.sha256`.
        """
        scores: TokenScores = self.module(self.collate(segments, images))
        return scores

    def parameters(self) -> Iterable[torch.nn.Parameter]:
        """Return the trainable parameters."""
        return [each for each in self.module.parameters() if each.requires_grad]

    def named_weights(
        self,
        gather_params: Callable[
            [Sequence[torch.nn.Parameter]], AbstractContextManager[None]
        ] = no_gather,
        *,
        merge: bool = True,
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield every weight with its name in a checkpoint, for `EnginePolicy.load`.

        A tied weight is yielded under each of its names. This default implementation uses the
        parameter names of `module`.

        Args:
            gather_params: Returns a context in which the given parameters are gathered. Under
                ZeRO-3 each process holds a shard of a parameter, and the parameter is empty outside
                the context; all processes must enter the context together. Gather only a few
                parameters at a time, because they must fit in memory.
            merge: Whether the LoRA adapters that the policy trains are merged into the weights that
                they change. If False, the weights are yielded without the adapters.

        Yields:
            A name and a weight without gradient, which is valid until the next one is requested.
        """
        for name, parameter in self.module.named_parameters():
            with gather_params([parameter]):
                yield name, parameter.detach()

    def adapter(
        self,
        gather_params: Callable[
            [Sequence[torch.nn.Parameter]], AbstractContextManager[None]
        ] = no_gather,
    ) -> Adapter | None:
        """Return a copy of the adapter that is trained; None if the policy trains no adapter.

        Args:
            gather_params: As in `named_weights`.
        """
        return None

    @abstractmethod
    def train_mode(self, on: bool) -> None:
        """Switch between training and sampling."""

    @abstractmethod
    def updated(self) -> None:
        """Increment `version` and clear stale caches; trainers call it after each update."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the weights, and everything else that loading needs, to a folder."""

    @abstractmethod
    def load_weights(self, folder: Path) -> None:
        """Load the weights that `save` wrote.

        Raises:
            RunError: If the folder contains the weights of another model.
        """

    @abstractmethod
    def copy_frozen(self) -> TrainablePolicy[Any]:
        """Return a frozen copy with the current weights, as the reference of a KL term."""


class EnginePolicy(Policy[SessionT]):
    """Defines a policy that only samples, with weights that a trainer sends, such as a vLLM engine.

    Attributes:
        version: Version of the weights that the engine samples with.
        stale: Whether the engine needs `load` before it can sample, because it died or because a
            transfer failed.
        takes_adapters: Whether the engine has a method `load_adapter`.
    """

    version: int
    stale: bool
    takes_adapters: bool = False

    def check_image_processor(self, policy: Policy[Any]) -> None:
        """Check that the engine and the policy that is trained process images alike.

        Raises:
            ConfigurationError: If both have an image processor, and these differ.
        """
        own, other = self.image_processor, policy.image_processor
        if own is not None and other is not None and own != other:
            raise ConfigurationError(
                f"The engine's image processor {own} differs from {other} of the trained policy in "
                "its settings, class or backend, so that log-probabilities would differ: give both "
                "the same checkpoint, min_pixels and max_pixels, and install torchvision for both "
                "or for neither."
            )

    @abstractmethod
    def load(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Load new weights and clear all caches that were computed with the old weights.

        An engine that died is restarted first. Turns that are being sampled continue with the new
        weights; each token records the version of the weights that sampled it.

        Args:
            weights: The name of each weight in the checkpoint and its full (not sharded) tensor, on
                any device.
            version: The version that tokens sampled with these weights record.

        Raises:
            PolicyError: If a weight is missing, unknown or has another shape, or if the transfer
                took too long. The engine then refuses to sample until a transfer succeeds.
        """

    def load_adapter(
        self,
        adapter: Adapter,
        version: int,
        weights: Iterable[tuple[str, torch.Tensor]] | None = None,
    ) -> None:
        """Load an adapter instead of merged weights; otherwise like `load`.

        Caches that were computed with an earlier adapter are not used again.

        Args:
            adapter: The adapter of the policy that is trained.
            version: The version that tokens sampled with this adapter record.
            weights: The full weights that the adapter changes. They are required if the engine is
                `stale` or has never received them; None keeps the weights of an earlier call.

        Raises:
            PolicyError: If the adapter does not fit the model, if the engine did not load all of
                it, or if the engine needs `weights` and got None; see also `load`.
        """
        raise NotImplementedError("This engine loads no adapters; send merged weights with load().")

    @abstractmethod
    def sleep(self) -> None:
        """Release the accelerator memory of the engine for the trainer.

        The engine may drop its weights; they must then be sent with `load` after `wake`.
        """

    @abstractmethod
    def wake(self) -> None:
        """Allocate the memory again that `sleep` released, for `load` and for sampling."""
