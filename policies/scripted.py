"""Defines `ScriptedPolicy`, which takes given turns and serves as the model of tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from typing_extensions import override

from visenv.errors import PolicyError
from visenv.policy import Policy, Session
from visenv.types import Message, Reply, Sampling, TurnRequest

Script = Sequence[str] | Callable[[Sequence[Message], TurnRequest], str]


class ScriptedSession(Session):
    """Stores how many turns of the script have been taken."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = 0


class ScriptedPolicy(Policy[ScriptedSession]):
    """Takes the same turns in every episode.

    Args:
        turns: The whole turns of an episode in order, with prefixes; or a function of the
            conversation so far and the `TurnRequest` that returns the next turn.
    """

    def __init__(self, turns: Script) -> None:
        if isinstance(turns, str):
            raise TypeError("A script is a sequence of turns, not one string: [text].")
        self.turns = turns if callable(turns) else tuple(turns)

    @override
    def open(self, seed: int) -> ScriptedSession:
        """Start the script; neither the environment nor the seed is used."""
        return ScriptedSession()

    @override
    async def respond(
        self, session: ScriptedSession, request: TurnRequest, sampling: Sampling
    ) -> Reply:
        """Return the next turn of the script.

        Raises:
            PolicyError: If the script has no more turns.
        """
        reply = Reply.of_text(self._next(session, request))
        session.taken += 1
        session.said(reply)
        return reply

    def _next(self, session: ScriptedSession, request: TurnRequest) -> str:
        if callable(self.turns):
            return self.turns(session.messages, request)
        if session.taken >= len(self.turns):
            raise PolicyError(
                f"The script has {len(self.turns)} turns, but the episode requests turn "
                f"{session.taken + 1}. Write a longer script."
            )
        return self.turns[session.taken]

    @override
    def __repr__(self) -> str:
        shown: Any = self.turns if callable(self.turns) else f"{len(self.turns)} turns"
        return f"ScriptedPolicy({shown})"
