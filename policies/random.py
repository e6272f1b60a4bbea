"""Defines `RandomPolicy`, a lower bound: half noise, half well-formed turns without meaning."""

from __future__ import annotations

from typing_extensions import override

from visenv.policy import Policy, Session
from visenv.types import RandomTurnRequest, Reply, Sampling, TurnRequest

from .advised import reply_with_advice


class RandomPolicy(Policy[Session]):
    """Takes random turns, which depend only on the seed (`visenv.types.RandomTurnRequest`)."""

    advice_request = RandomTurnRequest()

    @override
    def open(self, seed: int) -> Session:
        """Return a new session; its advice uses the same seed."""
        return Session()

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        """Take the random turn.

        Raises:
            PolicyError: If the environment gave no random turn.
        """
        return reply_with_advice(session, "random")
