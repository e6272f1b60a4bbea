"""Sampling without constraints, for trainers that score every token among all."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from visenv.policy import Policy, Session
from visenv.types import Reply, Sampling, TurnRequest


class FreePolicy(Policy[Session]):
    """Samples the turns of a policy without the form that an environment asks for.

    It ignores `TurnRequest.regex`.

    A token that was drawn among a few allowed ones and is scored among all would be learned for
    having been allowed. Our own trainer scores it among the few; the losses of others cannot.

    Args:
        policy: Who plays.
    """

    def __init__(self, policy: Policy[Any]) -> None:
        self._policy = policy

    @override
    def open(self, seed: int) -> Session:
        session: Session = self._policy.open(seed)
        return session

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        return await self._policy.respond(session, request._replace(regex=None), sampling)

    @override
    def close(self) -> None:
        self._policy.close()
