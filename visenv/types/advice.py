"""Defines advice: data that a policy may request from the environment in addition to its messages.

A policy never has access to the environment. A policy that is not a model (the oracle, the random
policy, baselines) sets `Policy.advice_request`. The environment then adds the advice to every
request for a turn, also if it runs in another thread, process or machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from visenv.grammar.base import Grammar


class DemonstrationRequest(NamedTuple):
    """Requests the text of the next turn of a player that knows the ground truth.

    Attributes:
        thought: Replaces the thought of every turn; None keeps the thought of the demonstration.
        expert_rate: Share of episodes with all tool calls, 0 to 1. In the other episodes the
            demonstration answers immediately.
        guess: Whether the answer of these other episodes is random (`VisEnv.random_answer`). If
            False, the demonstration gives up in them.
        look: Whether these other episodes use the tools as well, before they give up or guess.
    """

    thought: str | None = None
    expert_rate: float = 1.0
    guess: bool = False
    look: bool = False


class RandomTurnRequest(NamedTuple):
    """Requests the text of a random turn.

    On average, half of the turns are raw samples of the action space. The others are well-formed:
    an answer (`VisEnv.random_answer`) or a call of one of the tools (`Tool.random_arguments`), all
    equally likely.
    """


class DescriptionRequest(NamedTuple):
    """Requests a `TurnDescription`."""


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


AdviceRequest = DemonstrationRequest | RandomTurnRequest | DescriptionRequest
Advice = str | TurnDescription
"""The answer to an `AdviceRequest`."""
