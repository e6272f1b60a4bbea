"""Answers an `AdviceRequest`: demonstrations, turns of teachers, random turns or descriptions."""

from __future__ import annotations

import copy

import gymnasium as gym
import numpy as np

from visenv.env import Observation, VisEnv
from visenv.errors import PolicyError
from visenv.grammar.base import ParsedTurn, ToolCall
from visenv.policy import Advice, TurnDescription
from visenv.teacher import GIVING_UP, make_teacher
from visenv.types import (
    AdviceRequest,
    DemonstrationRequest,
    DescriptionRequest,
    RandomTurnRequest,
    TeacherRequest,
)


class Advisor:
    """Answers the advice request of a policy in every turn of one episode.

    Args:
        request: The advice request of the policy.
        env: The environment, with or without wrappers.
        seed: Seed of the random numbers of the advisor.

    Raises:
        PolicyError: If the unwrapped environment is not a `VisEnv`.
        ConfigurationError: If the environment has no such teacher.
    """

    def __init__(self, request: AdviceRequest, env: gym.Env[Observation, str], seed: int) -> None:
        base = env.unwrapped
        if not isinstance(base, VisEnv):
            raise PolicyError(
                f"{type(request).__name__} needs an environment that extends VisEnv, got "
                f"{type(base).__name__}."
            )
        self._request = request
        self._env = base
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        match request:
            case DemonstrationRequest(expert_rate=expert_rate):
                self._is_expert = self._rng.random() < expert_rate
            case TeacherRequest(name, strength, options):
                self._teacher = make_teacher(base, name, strength, options or {})
            case RandomTurnRequest():
                # Sampling the original space would advance the random numbers of the environment.
                self._noise = copy.deepcopy(env.action_space)
                self._noise.seed(seed)

    def advise(self) -> Advice:
        """Return the advice for the next turn."""
        match self._request:
            case DemonstrationRequest() as request:
                return self._env.grammar.compose(self._demonstrated(request))
            case TeacherRequest():
                rng = np.random.default_rng(self._seed)
                return self._env.grammar.compose(self._teacher.turn(self._env, rng))
            case RandomTurnRequest():
                return self._random()
            case DescriptionRequest():
                return self._description()

    def _demonstrated(self, request: DemonstrationRequest) -> ParsedTurn:
        if self._is_expert:
            turn = self._env.oracle_turn()
        else:
            answer = self._env.random_answer(self._rng) if request.guess else GIVING_UP
            turn = self._env.direct_turn(answer)
        return turn if request.thought is None else turn._replace(thought=request.thought)

    def _random(self) -> str:
        if self._rng.random() < 0.5:
            return self._noise.sample()
        tools = list(self._env.tools.values())
        choice = int(self._rng.integers(len(tools) + 1))
        if choice == len(tools):
            turn = ParsedTurn(" A guess. ", answer=self._env.random_answer(self._rng))
        else:
            tool = tools[choice]
            arguments = tool.random_arguments(self._rng, self._env.store).model_dump(mode="json")
            turn = ParsedTurn(" A try. ", calls=(ToolCall(tool.name, arguments),))
        return self._env.grammar.compose(turn)

    def _description(self) -> TurnDescription:
        env, sample = self._env, self._env.sample
        return TurnDescription(
            env.turn, sample.question, bool(sample.images), tuple(env.tools), env.grammar
        )
