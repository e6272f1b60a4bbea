"""OraclePolicy: plays any environment from its ground truth, in the environment's own grammar."""

from __future__ import annotations

import gymnasium as gym

from visenv.env import Observation, VisEnv
from visenv.errors import PolicyError
from visenv.policy import Policy, Session
from visenv.types import Ask, Reply, Sampling


class InsideSession(Session):
    """A session of a policy that looks into the environment it plays.

    Args:
        env: The environment, wrapped or not, in this process.
        policy: The name of the policy, for the error.

    Raises:
        PolicyError: If there is no `VisEnv` under `env`: it lives in another process, or was not
            written with visenv.
    """

    def __init__(self, env: gym.Env[Observation, str], policy: str) -> None:
        super().__init__()
        base = env.unwrapped
        if not isinstance(base, VisEnv):
            raise PolicyError(
                f"The {policy} policy reads the state of a VisEnv in this process, got "
                f"{type(base).__name__}. Make the environment here with gym.make(...), not in a "
                "pool of workers or on a server."
            )
        self.env = base


class OraclePolicy(Policy[InsideSession]):
    """Says what the environment's `oracle_turn` says; for demonstrations and upper bounds.

    Args:
        thought: Replaces the thought of every turn; None keeps the oracle's own.
    """

    def __init__(self, thought: str | None = None) -> None:
        self.thought = thought

    def open(self, env: gym.Env[Observation, str], seed: int) -> InsideSession:
        """Look into `env`; nothing is drawn, so the seed is not used.

        Raises:
            PolicyError: If there is no `VisEnv` under `env` in this process.
        """
        return InsideSession(env, "oracle")

    async def respond(self, session: InsideSession, ask: Ask, sampling: Sampling) -> Reply:
        """The right turn in the present state of the environment."""
        turn = session.env.oracle_turn()
        if self.thought is not None:
            turn = turn._replace(thought=self.thought)
        reply = Reply.of_text(session.env.grammar.compose(turn))
        session.said(reply)
        return reply
