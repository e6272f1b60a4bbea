"""Defines wrappers for visenv environments, and the check of wrappers that a player makes.

A policy reads messages, not observations. A `MessageWrapper` changes these messages. Gymnasium's
reward wrappers and wrappers that end an episode (`TimeLimit`) work as usual. An observation wrapper
would have no effect and is refused.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker
from typing_extensions import override

from visenv.env import Observation, observe
from visenv.errors import ConfigurationError
from visenv.types import Message, StepResult

_PASSES_STEPS_ON = (PassiveEnvChecker, OrderEnforcing)
"""Wrappers that override `step` and return the unchanged values of the environment."""


class RestorableWrapper(gym.Wrapper[Observation, str, Observation, str], RecordConstructorArgs):
    """Wraps an environment such that ``gym.make(env.spec)`` restores the wrapper.

    The arguments of the constructor are recorded, including those of subclasses. If the function
    behind `gym.make` applies a wrapper itself (a reward chosen by ``reward=``), the wrapper is part
    of the id and is not recorded again.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Record the arguments of the constructor."""
        wrapper = super().__new__(cls)
        given = inspect.signature(cls.__init__).bind(wrapper, *args, **kwargs).arguments
        given.pop("self", None)
        extra = given.pop("kwargs", {})
        given.pop("env", None)
        given = cls.saved_arguments(given)
        # A copy of a judge or of a model would be as large as the original, or may be impossible.
        RecordConstructorArgs.__init__(wrapper, _disable_deepcopy=True, **given, **extra)
        return wrapper

    @classmethod
    def saved_arguments(cls, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of the constructor as the spec contains them, if possible as JSON.

        A subclass overrides this method if its constructor also accepts another form of them.
        """
        return arguments

    def __init__(self, env: gym.Env[Observation, str]) -> None:
        gym.Wrapper.__init__(self, env)
        self._is_part_of_id = env.spec is None

    @override
    def __reduce__(self) -> Any:
        # Pickle would call __new__ without the arguments.
        return (_unpickle, (type(self),), self.__dict__)

    @property
    @override
    def spec(self) -> EnvSpec | None:  # type: ignore[override]
        """Return the environment's spec, with this wrapper if it was applied after `gym.make`."""
        return self.env.spec if self._is_part_of_id else super().spec


def _unpickle(cls: type[RestorableWrapper]) -> RestorableWrapper:
    return gym.Wrapper.__new__(cls)


class MessageWrapper(RestorableWrapper):
    """Changes the messages that a policy reads, and the observation accordingly.

    A subclass overrides `messages`. The events and the rewards do not change.
    """

    @abstractmethod
    def messages(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return the messages to show instead of those of the environment.

        Args:
            messages: The messages that a `reset` or a `step` added; empty after the last turn.
        """

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Reset the environment and change its messages."""
        _, info = self.env.reset(seed=seed, options=options)
        return self._shown(info)

    @override
    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Step the environment and change its messages."""
        _, reward, terminated, truncated, info = self.env.step(action)
        observation, info = self._shown(info)
        return observation, float(reward), terminated, truncated, info

    def _shown(self, info: dict[str, Any]) -> tuple[Observation, dict[str, Any]]:
        result: StepResult = info["step"]
        messages = tuple(self.messages(result.messages))
        for message in messages:
            if not isinstance(message, Message):
                raise ConfigurationError(
                    f"{type(self).__name__}.messages must return messages, got {message!r:.200}."
                )
        observes = getattr(self.env.unwrapped, "observes", True)
        observation = observe(messages if observes else ())
        return observation, {**info, "step": result._replace(messages=messages)}


def layers(env: gym.Env[Any, Any]) -> Iterator[gym.Env[Any, Any]]:
    """Yield an environment with its wrappers, from the outermost to the base."""
    yield env
    while isinstance(env, gym.Wrapper):
        env = env.env
        yield env


def check_wrappers(env: gym.Env[Any, Any]) -> None:
    """Check that every wrapper has an effect on a policy that reads messages.

    Raises:
        ConfigurationError: If a wrapper is an observation wrapper; the message names it.
    """
    for layer in layers(env):
        if isinstance(layer, gym.ObservationWrapper):
            raise ConfigurationError(
                f"{type(layer).__name__} changes observations, but policies read messages: it "
                "would have no effect. Change what they read with a visenv.MessageWrapper."
            )


def changes_steps(layer: gym.Env[Any, Any]) -> bool:
    """Return whether a wrapper overrides `step` or `reward`, and so must see final rewards."""
    kind = type(layer)
    if isinstance(layer, (*_PASSES_STEPS_ON, MessageWrapper)):
        return False
    return kind.step is not gym.Wrapper.step or hasattr(kind, "reward")
