"""Defines the request of an environment for a turn, requests for advice, and a policy's reply.

Advice is data that a policy may need in addition to its messages. A policy never has access to the
environment. A policy that is not a model (the oracle, a teacher, the random policy, baselines) sets
`Policy.advice_request`. The environment then adds the advice to every request for a turn, also if
it runs in another thread, process or machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

FinishReason = Literal["stop", "length", "abort"]
Context = Literal["append", "replace"]


class TurnRequest(NamedTuple):
    """Represents the request for the policy's next turn.

    Attributes:
        prefill: Text with which the turn begins. A policy that supports prefills starts from it
            (these tokens are masked from the loss). The action passed to `step` is always the whole
            turn, including the prefill.
        stop: Stop strings; the turn ends after any of them and contains it.
        regex: A regular expression that the text after the prefill must match, or None.
        max_tokens: Maximum number of tokens to sample, or None for the policy's own limit.
        context: ``"append"`` continues the conversation; ``"replace"`` starts a new conversation (a
            new Segment) from this turn's messages.
    """

    prefill: str = ""
    stop: tuple[str, ...] = ()
    regex: str | None = None
    max_tokens: int | None = None
    context: Context = "append"


class Sampling(NamedTuple):
    """Holds sampling settings.

    Attributes:
        temperature: 0 is greedy; 1 samples from the policy's own distribution.
        max_tokens: Maximum number of tokens in a turn; a `TurnRequest` may lower it.
        seed: Seed of the sampling of one episode, independent of the other episodes in the batch.
    """

    temperature: float = 1.0
    max_tokens: int = 512
    seed: int = 0


class Reply(NamedTuple):
    """Holds one turn of a policy.

    Attributes:
        text: The whole turn, including the prefill: the action for `step`.
        token_ids: The sampled tokens without the prefill, int32 ``[tokens]``; empty if the policy
            has no tokens.
        logprobs: Log-probabilities (natural log) of these tokens under the distribution that they
            were sampled from, float32 ``[tokens]``.
        finish_reason: ``"stop"``, ``"length"`` (the token limit) or ``"abort"``.
    """

    text: str
    token_ids: NDArray[np.int32]
    logprobs: NDArray[np.float32]
    finish_reason: FinishReason = "stop"

    @classmethod
    def of_text(cls, text: str) -> Reply:
        """Return the reply of a policy without tokens."""
        return cls(text, np.zeros(0, np.int32), np.zeros(0, np.float32))


class DemonstrationRequest(NamedTuple):
    """Requests the text of the next turn of a player that knows the ground truth.

    Attributes:
        thought: Replaces the thought of every turn; None keeps the thought of the demonstration.
        expert_rate: Share of episodes with all tool calls, 0 to 1. In the other episodes the
            demonstration answers immediately.
        guess: Whether the answer of these other episodes is random (`VisEnv.random_answer`). If
            False, the demonstration gives up in them.
    """

    thought: str | None = None
    expert_rate: float = 1.0
    guess: bool = False


class TeacherRequest(NamedTuple):
    """Requests the text of the next turn of a teacher of the environment (`visenv.teacher`).

    Attributes:
        name: The name of the teacher in `VisEnv.teachers`; ``"default"`` is the first one.
        strength: The strength of its flaw, 0 or more.
        options: The values of its further options.
    """

    name: str = "default"
    strength: float = 1.0
    options: Mapping[str, Any] | None = None


class RandomTurnRequest(NamedTuple):
    """Requests the text of a random turn.

    On average, half of the turns are raw samples of the action space. The others are well-formed:
    an answer (`VisEnv.random_answer`) or a call of one of the tools (`Tool.random_arguments`), all
    equally likely.
    """


class DescriptionRequest(NamedTuple):
    """Requests a `visenv.policy.TurnDescription`."""


AdviceRequest = DemonstrationRequest | TeacherRequest | RandomTurnRequest | DescriptionRequest
