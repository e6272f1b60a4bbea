"""Checks the arguments of players: environments, functions that make them, policies, seeds."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from visenv.errors import ConfigurationError
from visenv.policy import Policy
from visenv.types import Reply


def check_make_env(make_env: object) -> None:
    """Check that an object is a function that makes environments.

    Raises:
        ConfigurationError: If it is not.
    """
    if isinstance(make_env, gym.Env):
        raise ConfigurationError(
            f"A Collector makes its environments, and got the environment {make_env!s:.80}. Pass a "
            'function that makes one, for example lambda: gym.make("visenv/ZoomVQA-v0"), or use '
            "play(env, policy, spec)."
        )
    if not callable(make_env):
        raise ConfigurationError(
            f"make_env must be a function that makes an environment, or a Mixture, got "
            f"{make_env!r:.80}."
        )


def check_env(env: object) -> None:
    """Check that an object is an environment.

    Raises:
        ConfigurationError: If it is not.
    """
    if not isinstance(env, gym.Env):
        hint = " Call it first: it makes one." if callable(env) else ""
        raise ConfigurationError(f"env must be an environment of gym.make, got {env!r:.80}.{hint}")


def check_policy(policy: object) -> None:
    """Check that an object is a policy.

    Raises:
        ConfigurationError: If it is a class, or lacks the methods of a `Policy`.
    """
    if isinstance(policy, type) and issubclass(policy, Policy):
        raise ConfigurationError(
            f"policy must be a policy, got the class {policy.__name__}: pass {policy.__name__}(…)."
        )
    if not all(callable(getattr(policy, name, None)) for name in ("open", "respond")):
        raise ConfigurationError(
            f"policy must have the methods open and respond, as a visenv.Policy, got "
            f"{policy!r:.80}."
        )


def check_reply(reply: object, policy: object) -> None:
    """Check that a policy returned a reply.

    Raises:
        ConfigurationError: If it returned something else.
    """
    if not isinstance(reply, Reply):
        raise ConfigurationError(
            f"respond() of the policy {type(policy).__name__} must return a visenv.Reply, got "
            f"{reply!r:.80}."
        )


def check_seed(seed: object) -> None:
    """Check that an object is a seed of an episode.

    Raises:
        ConfigurationError: If it is not.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ConfigurationError(f"A seed must be an integer of at least 0, got {seed!r:.80}.")
