"""OraclePolicy: plays any environment from its ground truth, in the environment's own grammar."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from visenv.env import Observation, VisEnv
from visenv.errors import ConfigurationError, PolicyError
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


GIVING_UP = "unknown"
"""The answer of an oracle in a hurry."""


class OracleSession(InsideSession):
    """An oracle's session; in a hasty one it gives up, or guesses."""

    hasty: bool
    rng: np.random.Generator


class OraclePolicy(Policy[OracleSession]):
    """Says what the environment's `oracle_turn` says; for demonstrations and upper bounds.

    Args:
        thought: Replaces the thought of every turn; None keeps the oracle's own.
        care: Share of episodes played so, 0 to 1. In the others it answers at once, without using
            a tool: demonstrations by one who is often in a hurry.
        guess: In a hurry it answers at random (`VisEnv.random_answer`) instead of giving up.

    Raises:
        ConfigurationError: If `care` is not between 0 and 1.
    """

    def __init__(self, thought: str | None = None, care: float = 1.0, guess: bool = False) -> None:
        if not 0 <= care <= 1:
            raise ConfigurationError(f"care must lie between 0 and 1, got {care!r}.")
        self.thought = thought
        self.care = care
        self.guess = guess

    def open(self, env: gym.Env[Observation, str], seed: int) -> OracleSession:
        """Look into `env`; the seed decides whether this episode is played with care.

        Raises:
            PolicyError: If there is no `VisEnv` under `env` in this process.
        """
        session = OracleSession(env, "oracle")
        session.rng = np.random.default_rng(seed)
        session.hasty = session.rng.random() >= self.care
        return session

    async def respond(self, session: OracleSession, ask: Ask, sampling: Sampling) -> Reply:
        """The right turn in the present state of the environment, or none of it in a hurry."""
        turn = session.env.oracle_turn()
        if session.hasty:
            answer = session.env.random_answer(session.rng) if self.guess else GIVING_UP
            turn = turn._replace(calls=(), answer=answer)
        if self.thought is not None:
            turn = turn._replace(thought=self.thought)
        reply = Reply.of_text(session.env.grammar.compose(turn))
        session.said(reply)
        return reply
