"""Advice: what a policy may ask of the environment beside its messages.

A policy never receives the environment. A policy that is no model (the oracle, the random policy,
baselines) sets `Policy.advice_request`; the environment then adds the advice to every request for a
turn, in whatever thread, process or machine it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from visenv.grammar.base import Grammar


class DemonstrationRequest(NamedTuple):
    """Asks for the next turn of a player that knows the ground truth; the advice is its text.

    Attributes:
        thought: Replaces the thought of every turn; None keeps the demonstrator's own.
        expert_rate: Share of episodes that are demonstrated with all tool calls, 0 to 1. In the
            others the demonstrator answers at once.
        guess: In those others the demonstrator answers at random (`VisEnv.random_answer`) instead
            of giving up.
    """

    thought: str | None = None
    expert_rate: float = 1.0
    guess: bool = False


class RandomTurnRequest(NamedTuple):
    """Asks for a random turn; the advice is its text.

    Every other turn on average is a raw sample of the action space, the others are well-formed: an
    answer (`VisEnv.random_answer`) or a tool call (`Tool.random_arguments`), all equally likely.
    """


class DescriptionRequest(NamedTuple):
    """Asks for a description of the turn: the advice is a `TurnDescription`."""


class TurnDescription(NamedTuple):
    """Facts that a baseline needs to take a turn in the grammar of the environment.

    Attributes:
        turn: The number of the coming turn, from 0.
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
