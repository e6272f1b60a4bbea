"""Defines `OraclePolicy`, which plays any environment from its ground truth, in its grammar."""

from __future__ import annotations

from visenv.advised import AdvisedPolicy
from visenv.errors import ConfigurationError
from visenv.types import DemonstrationRequest


class OraclePolicy(AdvisedPolicy):
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

    name = "oracle"

    def __init__(
        self, thought: str | None = None, expert_rate: float = 1.0, guess: bool = False
    ) -> None:
        if not 0 <= expert_rate <= 1:
            raise ConfigurationError(f"expert_rate must lie between 0 and 1, got {expert_rate!r}.")
        self.advice_request = DemonstrationRequest(thought, expert_rate, guess)
