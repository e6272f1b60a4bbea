"""Provides visenv environments for TRL's own rollout loop (``environment_factory``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import gymnasium as gym

from visenv.env import VisEnv
from visenv.errors import ConfigurationError
from visenv.grammar import ToolCallGrammar

from .native import Block, NativeEpisode
from .signature import method_of

_NO_TOOLS = {"reset", "get_reward", "episode"}


class NativeEnvironment:
    """Defines the base class of the classes that `environment_factory` returns.

    TRL uses all public methods of such a class, except `reset`, as tools.

    Attributes:
        turns: The number of turns of an episode. Set TRL's ``max_tool_calling_iterations`` to
            ``turns - 1``.
        episode: The current episode.
    """

    turns: ClassVar[int]
    _make_env: ClassVar[Any]

    def __init__(self) -> None:
        self.episode = NativeEpisode(self._make_env)

    def reset(self, **row: Any) -> Any:
        """Start the episode of a row, and return content blocks to append to its prompt.

        Raises:
            ConfigurationError: If the row contains no seed.
        """
        if "seed" not in row:
            raise ConfigurationError(
                "A row has no seed: create the data set with rows(), so that all members of a "
                "group play one sample."
            )
        return self.episode.begin(int(row["seed"]), row.get("index"))


def environment_factory(env_id: str, **options: Any) -> type[NativeEnvironment]:
    """Return a class whose methods are the tools of an environment, for TRL.

    ::

        factory = environment_factory("visenv/ArmDoc-v0")
        GRPOTrainer(
            model,
            reward_funcs=native_reward,
            args=GRPOConfig(max_tool_calling_iterations=factory.turns - 1, ...),
            train_dataset=rows(range(10_000)),
            environment_factory=factory,
        )

    The class has no ``get_reward``, because TRL does not pass the last turn, which contains the
    answer, to this method. `native_reward` receives all turns.

    Args:
        env_id: The id of an environment with JSON tool calls (the ARM family).
        **options: The options of the environment.

    Raises:
        ConfigurationError: If the environment has another grammar, which TRL cannot parse.
    """
    make_env = partial(gym.make, env_id, **options)
    env = make_env()
    base = env.unwrapped
    if not isinstance(base, VisEnv) or not isinstance(base.grammar, ToolCallGrammar):
        raise ConfigurationError(
            f"{env_id} has no JSON tool calls, the only format that TRL's own loop can parse: use "
            "VisenvGRPOTrainer."
        )
    if clash := _NO_TOOLS & {*base.tools}:
        raise ConfigurationError(
            f"A tool of {env_id} has a name that TRL reserves: {clash}. Rename the tool."
        )
    members: dict[str, Any] = {
        name: method_of(tool, _call_tool) for name, tool in base.tools.items()
    }
    members |= {"__doc__": f"{env_id} for TRL.", "turns": base.limits.turns}
    members |= {"__module__": __name__, "_make_env": staticmethod(make_env)}
    env.close()
    return type(type(base).__name__, (NativeEnvironment,), members)


def native_reward(
    completions: Sequence[Sequence[Mapping[str, Any]]],
    environments: Sequence[NativeEnvironment],
    **_: Any,
) -> list[float | None]:
    """Return the reward of each rollout, or None for aborted rollouts, which TRL leaves out."""
    # The deferred terms of all episodes are started before the function waits for any of them.
    for environment, completion in zip(environments, completions, strict=True):
        environment.episode.finish(completion)
    return [environment.episode.reward() for environment in environments]


def _call_tool(
    environment: NativeEnvironment, name: str, arguments: Mapping[str, Any]
) -> str | list[Block]:
    return environment.episode.call(name, arguments)
