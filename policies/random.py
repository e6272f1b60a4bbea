"""RandomPolicy: half noise, half well-formed turns that mean nothing; the lower bound."""

from __future__ import annotations

import copy

import gymnasium as gym
import numpy as np

from visenv.env import Observation
from visenv.grammar import Call, ParsedTurn
from visenv.policy import Policy
from visenv.types import Ask, Reply, Sampling

from .oracle import InsideSession


class RandomSession(InsideSession):
    """A session with its own generator and its own copy of the action space."""

    def __init__(self, env: gym.Env[Observation, str], seed: int) -> None:
        super().__init__(env, "random")
        self.rng = np.random.default_rng(seed)
        self.noise = copy.deepcopy(env.action_space)  # sampling the original would change the env
        self.noise.seed(seed)


class RandomPolicy(Policy[RandomSession]):
    """Plays without knowing anything, repeatably by seed.

    Every other turn on average is a raw sample of the action space. The others are composed by the
    environment's grammar: an answer (`VisEnv.random_answer`) or a call of one of the tools
    (`Tool.random_arguments`), all equally likely.
    """

    def open(self, env: gym.Env[Observation, str], seed: int) -> RandomSession:
        """Look into `env` for its tools and its grammar.

        Raises:
            PolicyError: If there is no `VisEnv` under `env` in this process.
        """
        return RandomSession(env, seed)

    async def respond(self, session: RandomSession, ask: Ask, sampling: Sampling) -> Reply:
        """Noise or a well-formed turn, one as likely as the other."""
        if session.rng.random() < 0.5:
            text = session.noise.sample()
        else:
            text = session.env.grammar.compose(_well_formed(session))
        reply = Reply.of_text(text)
        session.said(reply)
        return reply


def _well_formed(session: RandomSession) -> ParsedTurn:
    env, rng = session.env, session.rng
    tools = list(env.tools.values())
    choice = int(rng.integers(len(tools) + 1))
    if choice == len(tools):
        return ParsedTurn(" A guess. ", answer=env.random_answer(rng))
    tool = tools[choice]
    arguments = tool.random_arguments(rng, env.store).model_dump(mode="json")
    return ParsedTurn(" A try. ", calls=(Call(tool.name, arguments),))
