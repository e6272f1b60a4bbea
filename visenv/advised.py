"""Defines the base class of policies that take the turns which the environment advises."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from visenv.errors import PolicyError
from visenv.policy import Policy, Session
from visenv.types import Reply, Sampling, TurnRequest


class AdvisedPolicy(Policy[Session]):
    """Takes the turns that the environment advises; a subclass sets the attributes.

    A subclass that changes the advised turns overrides `text`.

    Attributes:
        name: The name of the policy in error messages, for example its name in the table of
            `visenv.registration`.
        advice_request: The kind of advice.
    """

    name: ClassVar[str]

    @override
    def open(self, seed: int) -> Session:
        """Return a new session; its advice uses the same seed."""
        return Session()

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        """Take the advised turn.

        Raises:
            PolicyError: If the environment gave no advice, because a loop other than visenv's
                ignored `Policy.advice_request`.
        """
        if not isinstance(session.advice, str):
            raise PolicyError(
                f"The {self.name} policy takes turns that the environment advises, and got none. "
                "Play it with visenv.rollout, which passes Policy.advice_request on to the "
                "environment."
            )
        reply = Reply.of_text(self.text(session.advice, session, sampling))
        session.said(reply)
        return reply

    def text(self, advice: str, session: Session, sampling: Sampling) -> str:
        """Return the text of the turn: the advice.

        Args:
            advice: The advised turn.
            session: The session, which does not yet contain the turn.
            sampling: The sampling parameters of the turn.
        """
        return advice
