"""What an environment asks of a policy, and what the policy gives back."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

FinishReason = Literal["stop", "length", "abort"]


class Ask(NamedTuple):
    """The request for the policy's next turn.

    Attributes:
        prefix: Text the turn begins with. A policy that can be pre-filled starts from it (masked
            from the loss); the action passed to `step` is always the whole turn, prefix included.
        stop: The turn ends after any of these strings, which it keeps.
        regex: What the text after the prefix must match, or None.
        max_tokens: Most tokens to sample, or None for the policy's own limit.
        context: ``"append"`` continues the conversation; ``"replace"`` starts a new one (a new
            Segment) from this turn's messages.
    """

    prefix: str = ""
    stop: tuple[str, ...] = ()
    regex: str | None = None
    max_tokens: int | None = None
    context: Literal["append", "replace"] = "append"


class Sampling(NamedTuple):
    """How to sample.

    Attributes:
        temperature: 0 is greedy; 1 samples from the policy's own distribution.
        max_tokens: Most tokens in a turn; an `Ask` may lower it.
        seed: Makes one episode's sampling repeatable, whatever else is in the batch.
    """

    temperature: float = 1.0
    max_tokens: int = 512
    seed: int = 0


class Reply(NamedTuple):
    """One turn of a policy.

    Attributes:
        text: The whole turn, prefix included: the action for `step`.
        token_ids: int32 ``[tokens]`` sampled, prefix excluded; empty when the policy has no tokens.
        logprobs: float32 ``[tokens]``, natural log, under the distribution sampled from.
        finish_reason: ``"stop"``, ``"length"`` (the token limit) or ``"abort"``.
    """

    text: str
    token_ids: NDArray[np.int32]
    logprobs: NDArray[np.float32]
    finish_reason: FinishReason = "stop"

    @classmethod
    def of_text(cls, text: str) -> Reply:
        """A reply of a policy that deals in text alone."""
        return cls(text, np.zeros(0, np.int32), np.zeros(0, np.float32))
