"""Builds the replies of policies that take the turns which the environment advises."""

from __future__ import annotations

from visenv.errors import PolicyError
from visenv.policy import Session
from visenv.types import Reply


def reply_with_advice(session: Session, policy: str) -> Reply:
    """Return the advised turn as a reply, and add it to the session.

    Raises:
        PolicyError: If the environment gave no advice, because a loop other than visenv's ignored
            `Policy.advice_request`.
    """
    if not isinstance(session.advice, str):
        raise PolicyError(
            f"The {policy} policy takes turns that the environment advises, and got none. Play it "
            "with visenv.rollout, which passes Policy.advice_request on to the environment."
        )
    reply = Reply.of_text(session.advice)
    session.said(reply)
    return reply
