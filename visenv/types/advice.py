"""Defines requests for advice: data that a policy may need in addition to its messages.

A policy never has access to the environment. A policy that is not a model (the oracle, a teacher,
the random policy, baselines) sets `Policy.advice_request`. The environment then adds the advice to
every request for a turn, also if it runs in another thread, process or machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


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
