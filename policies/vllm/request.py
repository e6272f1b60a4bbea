"""Defines what a policy asks of an engine, in any process, and what it gets back."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

from visenv.types import FinishReason, Image, Video

from .weights import WeightUpdate

ARGUMENT = "visenv_turn"
"""The entry of vLLM's `SamplingParams.extra_args` with a turn's rules for `TurnProcessor`."""


class EngineRequest(NamedTuple):
    """Holds one turn to be sampled.

    Attributes:
        token_ids: The prompt, with one placeholder for each image and video.
        images: The images, in the order of their placeholders.
        temperature: 0 is greedy.
        seed: Of this turn's draws.
        limit: Most tokens to sample, at least 1.
        stop: Strings that end the turn.
        regex: What the whole turn must match, or None.
        said: How many tokens at the end of the prompt are this turn's own, sampled before the
            weights changed.
        videos: The videos, in the order of their placeholders.
    """

    token_ids: list[int]
    images: tuple[Image, ...]
    temperature: float
    seed: int
    limit: int
    stop: tuple[str, ...] = ()
    regex: str | None = None
    said: int = 0
    videos: tuple[Video, ...] = ()

    def parameters(self, end_id: int) -> dict[str, Any]:
        """Return the fields of vLLM's `SamplingParams`."""
        turn = {"stop": list(self.stop), "regex": self.regex, "said": self.said}
        return {
            "temperature": self.temperature,
            "seed": self.seed,
            "max_tokens": self.limit,
            "stop_token_ids": [end_id],
            "ignore_eos": True,  # what else the checkpoint counts as an end is banned
            "logprobs": 0,  # of the sampled token alone
            "detokenize": False,
            "extra_args": {ARGUMENT: turn} if self.stop or self.regex is not None else None,
        }


class EngineOutput(NamedTuple):
    """Holds what an engine sampled for one request.

    Attributes:
        prompt_ids: The prompt as the engine read it, placeholders expanded; None if it read none.
        token_ids: What was sampled.
        logprobs: Natural log of each token's probability.
        finish: ``"abort"`` when the weights changed under way: ask again for the rest.
        version: Of the weights that sampled it.
    """

    prompt_ids: Sequence[int] | None
    token_ids: list[int]
    logprobs: list[float]
    finish: FinishReason
    version: int


class EngineClient(Protocol):
    """An engine as the policy sees it. Any thread may call its methods.

    Attributes:
        context: Most tokens in a conversation.
        stale: Whether the engine lacks the weights of `version`, and so refuses to sample: it was
            restarted, woke from a sleep that dropped them, or a transfer failed.
    """

    context: int
    stale: bool

    @property
    def version(self) -> int:
        """Return the version of the weights that the engine samples with."""

    def submit(self, request: EngineRequest) -> Future[EngineOutput]:
        """Have a turn sampled; cancelling the future aborts it.

        The future raises `PolicyError` if the engine refuses, dies or hangs.
        """

    def check(self) -> None:
        """Check that the engine still works.

        Raises:
            PolicyError: If it died or hangs; turns in progress raise it as well.
        """

    def load(self, delivery: WeightUpdate, version: int) -> None:
        """Take over weights; see `EnginePolicy.load`."""

    def sleep(self) -> None:
        """Put the engine to sleep; see `EnginePolicy.sleep`."""

    def wake(self) -> None:
        """Wake the engine; see `EnginePolicy.wake`."""

    def close(self) -> None:
        """Stop the engine."""
