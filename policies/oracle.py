"""Defines `OraclePolicy`, which plays any environment from its ground truth, in its grammar."""

from __future__ import annotations

from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.policy import Policy, Session
from visenv.types import DemonstrationRequest, Reply, Sampling, TurnRequest

from .advised import reply_with_advice


class OraclePolicy(Policy[Session]):
    """Takes the turns that the environment demonstrates, for demonstrations and upper bounds.

    Args:
        thought: Replaces the thought of every turn; None keeps the thought of the demonstration.
        expert_rate: Share of episodes, 0 to 1, whose demonstrations use all tool calls. In the
            other episodes, the demonstration answers at once, without a tool.
        guess: Whether the demonstration in those other episodes answers at random
            (`VisEnv.random_answer`) instead of giving up.

    Raises:
        ConfigurationError: If `expert_rate` is not between 0 and 1.
    """

    def __init__(
        self, thought: str | None = None, expert_rate: float = 1.0, guess: bool = False
    ) -> None:
        if not 0 <= expert_rate <= 1:
            raise ConfigurationError(f"expert_rate must lie between 0 and 1, got {expert_rate!r}.")
        self.advice_request = DemonstrationRequest(thought, expert_rate, guess)

    @override
    def open(self, seed: int) -> Session:
        """Return a new session; its advice uses the same seed."""
        return Session()

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        """Take the demonstrated turn.

        Raises:
            PolicyError: If the environment gave no demonstration.
        """
        return reply_with_advice(session, "oracle")
