"""Samples without constraints, for trainers that compute log-probabilities over all tokens."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from visenv.policy import Policy, Session
from visenv.types import Reply, Sampling, TurnRequest


class FreePolicy(Policy[Session]):
    """Samples the turns of a policy without the regular expression of `TurnRequest.regex`.

    visenv's own trainer computes the log-probability of a constrained token over the allowed
    tokens. Other trainers compute it over all tokens, and would train the model on choices that
    were forced.

    Args:
        policy: The policy that plays.
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
