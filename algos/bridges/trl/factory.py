"""visenv environments for TRL's own rollout loop (``environment_factory``)."""

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
    """Base of what `environment_factory` makes; TRL takes its public methods but `reset` as tools.

    Attributes:
        turns: Turns in an episode: the value for TRL's ``max_tool_calling_iterations`` is one less.
        episode: The episode being played.
    """

    turns: ClassVar[int]
    _make_env: ClassVar[Any]

    def __init__(self) -> None:
        self.episode = NativeEpisode(self._make_env)

    def reset(self, **row: Any) -> Any:
        """Start the episode that a row names; content blocks to append to its prompt.

        Raises:
            ConfigurationError: If the row names none.
        """
        if "seed" not in row:
            raise ConfigurationError(
                "A row has no seed: make the data set with rows(), so that all members of a group "
                "play one sample."
            )
        return self.episode.begin(int(row["seed"]), row.get("index"))


def environment_factory(env_id: str, **options: Any) -> type[NativeEnvironment]:
    """Return a class whose methods are an environment's tools, for TRL's ``environment_factory``.

    ::

        factory = environment_factory("visenv/ArmDoc-v0")
        GRPOTrainer(
            model,
            reward_funcs=native_reward,
            args=GRPOConfig(max_tool_calling_iterations=factory.turns - 1, ...),
            train_dataset=rows(range(10_000)),
            environment_factory=factory,
        )

    It has no ``get_reward``, to which TRL shows nothing of what the model wrote last, the answer:
    `native_reward` is shown all of it.

    Args:
        env_id: An environment that speaks by JSON tool calls: the ARM family.
        **options: Of the environment.

    Raises:
        ConfigurationError: If the environment speaks otherwise, so that TRL could not parse it.
    """
    make_env = partial(gym.make, env_id, **options)
    env = make_env()
    base = env.unwrapped
    if not isinstance(base, VisEnv) or not isinstance(base.grammar, ToolCallGrammar):
        raise ConfigurationError(
            f"{env_id} does not speak by JSON tool calls, the only ones that TRL's own loop can "
            "parse and answer: play it with VisenvGRPOTrainer."
        )
    if clash := _NO_TOOLS & {*base.tools}:
        raise ConfigurationError(f"A tool of {env_id} has a name that TRL reserves: {clash}.")
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
    """Return the reward of each rollout; None where it was aborted, so that TRL leaves it out."""
    # The deferred terms of all episodes are started before one of them is waited for.
    for environment, completion in zip(environments, completions, strict=True):
        environment.episode.finish(completion)
    return [environment.episode.reward() for environment in environments]


def _call_tool(
    environment: NativeEnvironment, name: str, arguments: Mapping[str, Any]
) -> str | list[Block]:
    return environment.episode.call(name, arguments)
