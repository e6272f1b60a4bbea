"""The Policy contract: a session holds one conversation, `respond` takes the next turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from visenv.types import (
    Advice,
    AdviceRequest,
    Context,
    Episode,
    Image,
    Message,
    Reply,
    Sampling,
    Segment,
    TurnRequest,
)

if TYPE_CHECKING:
    import torch


class Session:
    """The conversation of one episode. Policies with tokens extend it.

    Attributes:
        messages: The conversation that the policy sees, its own turns included.
        advice: The answer of the environment to `Policy.advice_request`, for the coming turn.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.advice: Advice | None = None

    def observe(self, messages: Sequence[Message], context: Context = "append") -> None:
        """Add the messages that the environment showed since the last turn."""
        if context == "replace":
            self.messages = []
        self.messages += messages

    def said(self, reply: Reply) -> None:
        """Add the policy's own turn."""
        self.messages.append(Message("assistant", (reply.text,)))

    def segments(self) -> tuple[Segment, ...]:
        """Return the session as training data; empty for a policy without tokens."""
        return ()

    async def fetch_segments(self) -> tuple[Segment, ...]:
        """Return `segments`; a session whose tokens are elsewhere waits without blocking the loop.

        Raises:
            PolicyError: If they cannot be fetched.
        """
        return self.segments()


SessionT = TypeVar("SessionT", bound=Session)


class Policy(ABC, Generic[SessionT]):
    """Anything that takes turns: a model, a server, a script, a person.

    A policy never receives the environment, which may run in another process. It reads messages.

    Attributes:
        advice_request: What the policy asks of the environment beside its messages: demonstrations,
            random turns, or a description of the turn. None for a model.
    """

    advice_request: AdviceRequest | None = None

    @abstractmethod
    def open(self, seed: int) -> SessionT:
        """Return a new session for one episode.

        Args:
            seed: Seeds what the session draws.
        """

    @abstractmethod
    async def respond(self, session: SessionT, request: TurnRequest, sampling: Sampling) -> Reply:
        """Take the next turn and add it to the session.

        Raises:
            PolicyError: If the policy cannot reply.
        """

    def close(self) -> None:
        """Release the resources of the policy."""


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


class Budget(NamedTuple):
    """How much one forward pass may hold; a segment that exceeds it alone goes alone.

    Attributes:
        tokens: Most tokens that are really read; what segments share counts once.
        patches: Most image patches; each distinct image counts once. None is no limit.
    """

    tokens: int
    patches: int | None = None


class Adapter(NamedTuple):
    """A LoRA adapter: a change of some weights of a model, ``scale B A`` (arXiv 2106.09685).

    Attributes:
        config: What peft writes to ``adapter_config.json``, JSON-like.
        weights: The matrices A ``[rank, inputs]`` and B ``[outputs, rank]``, by their names in
            peft's ``adapter_model.safetensors``.
    """

    config: Mapping[str, Any]
    weights: Mapping[str, torch.Tensor]


def as_they_are(parameters: Sequence[torch.nn.Parameter]) -> AbstractContextManager[None]:
    """A context in which these parameters are whole: of a process that holds all of them, any."""
    return nullcontext()


class TrainablePolicy(Policy[SessionT]):
    """A policy with weights. Trainers know this much of it and no more.

    Attributes:
        version: Counts weight updates; every sampled token carries it.
        module: Holds every weight. Its `forward` takes what `collate` gives and returns `Scores`
            with gradient, so that DeepSpeed can wrap it.
    """

    version: int
    module: torch.nn.Module

    @abstractmethod
    def encode(self, episode: Episode) -> Episode:
        """The episode with `segments`, as if this policy had said its turns (for SFT)."""

    @abstractmethod
    def split(self, segments: Sequence[Segment], budget: Budget) -> list[list[int]]:
        """Share segments out over forward passes.

        Returns:
            Indices of `segments`, each once; segments that share a beginning are kept together.
        """

    @abstractmethod
    def collate(self, segments: Sequence[Segment], images: Mapping[str, Image]) -> Any:
        """Return the input of one forward pass of `module`, made on the CPU.

        A trainer calls this method in another thread while `module` computes. What it returns may
        have a method ``pin_memory``, which returns a copy in pinned memory.

        Args:
            segments: Token streams of this policy's processor.
            images: Every image they name, by `Image.sha256`.

        Raises:
            PolicyError: If a segment comes from another processor, or an image is missing.
        """

    def score(self, segments: Sequence[Segment], images: Mapping[str, Image]) -> Scores:
        """Log-probabilities of the sampled tokens, with gradient: `collate`, then `module`."""
        scores: Scores = self.module(self.collate(segments, images))
        return scores

    def parameters(self) -> Iterable[torch.nn.Parameter]:
        """The trainable parameters."""
        return [each for each in self.module.parameters() if each.requires_grad]

    def named_weights(
        self,
        whole: Callable[[Sequence[torch.nn.Parameter]], AbstractContextManager[None]] = as_they_are,
        *,
        merge: bool = True,
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """Every weight by its name in a checkpoint, for `EnginePolicy.load`.

        Tied weights come under each of their names. This default names them as `module` does.

        Args:
            whole: Gives a context in which the named parameters are whole; where several processes
                hold a part each (ZeRO-3), all of them enter it together, and outside of it a
                parameter is empty. A few at a time: together they must fit into memory.
            merge: Whether the adapters that a policy trains are merged into the weights that they
                change; otherwise they are left out.

        Yields:
            A name and a weight, without gradient, valid until the next one is asked for.
        """
        for name, parameter in self.module.named_parameters():
            with whole([parameter]):
                yield name, parameter.detach()

    def adapter(
        self,
        whole: Callable[[Sequence[torch.nn.Parameter]], AbstractContextManager[None]] = as_they_are,
    ) -> Adapter | None:
        """Return a copy of the adapter that is trained; None where the weights themselves are.

        Args:
            whole: As in `named_weights`.
        """
        return None

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


class EnginePolicy(Policy[SessionT]):
    """A policy that only samples, with weights that a trainer sends it: vLLM.

    Attributes:
        version: Of the weights it samples with.
        stale: Whether it needs `load` before it can sample: it died, or a transfer failed.
        takes_adapters: Whether it has a method `load_adapter`.
    """

    version: int
    stale: bool
    takes_adapters: bool = False

    @abstractmethod
    def load(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Take over weights; nothing sampled with the old ones is reused.

        An engine that died is started anew first. Turns that are being sampled go on with the new
        weights; each token carries the version that sampled it.

        Args:
            weights: By their names in the checkpoint, whole, on any device.
            version: What tokens sampled from now on carry.

        Raises:
            PolicyError: If a weight is missing, unknown or of another shape, or the transfer took
                too long; the engine then samples no more until a transfer has succeeded.
        """

    def load_adapter(
        self,
        adapter: Adapter,
        version: int,
        weights: Iterable[tuple[str, torch.Tensor]] | None = None,
    ) -> None:
        """Take over an adapter; nothing sampled with an earlier one is reused.

        Otherwise this method is like `load`.

        Args:
            adapter: The adapter.
            version: What tokens sampled from now on carry.
            weights: The weights that the adapter changes, for an engine that is `stale` or has
                never been sent them; None keeps those that were sent before.

        Raises:
            PolicyError: If the adapter does not fit the model or was not taken over whole; see also
                `load`.
        """
        raise NotImplementedError("This engine takes whole weights.")

    @abstractmethod
    def sleep(self) -> None:
        """Give its accelerator memory back while the trainer needs it; weights may be dropped."""

    @abstractmethod
    def wake(self) -> None:
        """Be ready for `load` and sampling again."""
