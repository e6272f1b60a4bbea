"""Provides visenv environments for TRL's own rollout loop (``environment_factory``).

A tool becomes a Python function, from which ``transformers.utils.get_json_schema`` generates a JSON
schema: it reads the signature, the type hints and a Google docstring. All three are generated from
the pydantic model of the tool.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

import gymnasium as gym

from visenv.env import VisEnv
from visenv.errors import ConfigurationError
from visenv.grammar import ToolCallGrammar
from visenv.tools import Arguments, Tool

from .native import Block, NativeEpisode

_NO_TOOLS = {"reset", "get_reward", "episode"}


def method_of(tool: Tool[Any], call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method with the signature of the tool that accepts any arguments.

    The environment refuses invalid arguments with its own message. If Python checked the signature,
    the message would be that of Python.

    Args:
        tool: The tool, with its name, description and arguments.
        call: The function that the method calls: ``call(self, name, arguments)``.
    """

    def method(self: Any, /, **arguments: Any) -> Any:
        return call(self, tool.name, arguments)

    model: type[Arguments] = tool.arguments
    hints = {name: plain(field.annotation) for name, field in model.model_fields.items()}
    taken = [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            annotation=hints[name],
            default=inspect.Parameter.empty if field.is_required() else field.get_default(),
        )
        for name, field in model.model_fields.items()
    ]
    receiver = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    method.__signature__ = inspect.Signature([receiver, *taken])  # type: ignore[attr-defined]
    method.__annotations__ = hints
    method.__name__ = method.__qualname__ = tool.name
    method.__doc__ = _docstring(tool.description, model)
    return method


def plain(annotation: Any) -> Any:
    """Return a type without the constraints of pydantic, also in nested types."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is None or origin is Literal:
        return annotation
    if origin is Annotated:
        return plain(inner[0])
    if origin in (Union, UnionType):
        return reduce(or_, [plain(part) for part in inner])
    return origin[tuple(plain(part) for part in inner)]


def _docstring(description: str, model: type[Arguments]) -> str:
    described = [
        f"    {name}: {' '.join((field.description or name).split())}"
        for name, field in model.model_fields.items()
    ]
    return "\n".join([description, "", "Args:", *described]) if described else description


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
