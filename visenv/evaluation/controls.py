"""Defines controls: environments without a part, which show how much a policy depends on it.

=====================  ==========================================================================
``no_image``           no message contains an image or a video: the blind control
``no_tool``            there is no tool, and one turn
``shuffled_results``   each successful tool call shows the result of a call in another episode
``random_crop``        the tool cuts at a random place (tasks that declare it: `VisEnv.controls`)
=====================  ==========================================================================

A task declares in `VisEnv.controls` the controls that its own options implement. The others are
wrappers that work with every `VisEnv`. All controls are part of the environment's spec, so that
saved episodes record the control under which they were played.
"""

from __future__ import annotations

import copy
import hashlib
from collections import Counter, defaultdict
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from typing_extensions import override

from visenv.env import Observation, VisEnv
from visenv.errors import ConfigurationError, DataError, ToolError, UnknownNameError
from visenv.rollout import Env, MakeEnv
from visenv.tools import ToolResult
from visenv.types import Message
from visenv.wrappers import MessageWrapper, RestorableWrapper

_ATTEMPTS = 16


class NoImage(MessageWrapper):
    """Removes all images and videos from the messages, but not their texts."""

    @override
    def messages(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return the messages with only their texts."""
        return tuple(
            Message(role, tuple(part for part in parts if isinstance(part, str)) or ("",))
            for role, parts in messages
        )


class NoTool(RestorableWrapper):
    """Removes all tools, so that the policy must answer in its only turn.

    A task whose prompt is built from `VisEnv.tools` then describes no tools.
    """

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        base = _base(env)
        base.tools = {}
        base.limits = base.limits._replace(turns=1)


class ShuffledResults(RestorableWrapper):
    """Replaces the result of each successful tool call by a result of that tool in another episode.

    The other episode is about another sample of the same source, which depends only on the id of
    the current sample, and its calls are those of the demonstration. If the demonstration does not
    call the tool, the call has random arguments. A failed call shows its own error. Events and
    rewards contain the facts of the policy's own call; only the shown content changes.
    """

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        if env.spec is None:
            raise ConfigurationError(
                "shuffled_results makes a second environment from env.spec, which is None: create "
                "the environment with gym.make."
            )
        self._other = _OtherEpisode(_base(gym.make(env.spec)))
        _base(env).change_result = self._shuffled

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Reset the environment, and select the other episode."""
        result = self.env.reset(seed=seed, options=options)
        self._other.choose(_base(self.env).sample.id)
        return result

    @override
    def close(self) -> None:
        self._other.close()
        super().close()

    def _shuffled(self, tool: str, result: ToolResult) -> ToolResult:
        if not result.ok:
            return result
        other = self._other.result(tool)
        return result._replace(parts=other.parts, hidden_frames=other.hidden_frames)


class _OtherEpisode:
    """Provides the results of the tool calls in a demonstration of another sample."""

    def __init__(self, env: VisEnv) -> None:
        self._env = env
        self._sample_id = ""
        self._results: dict[str, list[ToolResult]] | None = None
        self._shown: Counter[str] = Counter()
        self._rng = np.random.default_rng(0)
        env.change_result = self._record

    def choose(self, sample_id: str) -> None:
        """Select an episode for a sample; it is played when its first result is needed."""
        self._sample_id = sample_id
        self._results = None
        self._shown.clear()
        self._rng = np.random.default_rng(list(hashlib.sha256(sample_id.encode()).digest()))

    def result(self, tool: str) -> ToolResult:
        """Return the next result of the tool; the results repeat after the last one.

        A tool that the demonstration does not call gets random arguments. If it rejects them,
        `ToolError` is raised.
        """
        if self._results is None:
            self._results = defaultdict(list)
            self._play()
        if not self._results[tool]:
            self._results[tool].append(self._random_call(tool))
        results = self._results[tool]
        place = self._shown[tool] % len(results)
        self._shown[tool] += 1
        return results[place]

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    def _record(self, tool: str, result: ToolResult) -> ToolResult:
        if self._results is not None and result.ok:
            self._results[tool].append(result)
        return result

    def _play(self) -> None:
        env = self._env
        for _ in range(_ATTEMPTS):
            env.reset(seed=int(self._rng.integers(2**31)))
            if env.sample.id != self._sample_id:
                break
        else:
            raise DataError(
                "shuffled_results needs data with at least 2 samples, and "
                f"{_ATTEMPTS} resets gave only {self._sample_id!r}."
            )
        over = False
        while not over:
            turn = env.grammar.compose(env.oracle_turn())
            _, _, terminated, truncated, _ = env.step(turn)
            over = terminated or truncated

    def _random_call(self, name: str) -> ToolResult:
        tool = self._env.tools[name]
        failure = ToolError("The tool returned no result.")
        for _ in range(_ATTEMPTS):
            arguments = tool.random_arguments(self._rng, self._env.store)
            try:
                result = tool.run(arguments.model_dump(mode="json"), self._env.store)
            except ToolError as error:
                failure = error
            else:
                if result.ok:
                    return result
        raise failure


CONTROLS: dict[str, type[RestorableWrapper]] = {
    "no_image": NoImage,
    "no_tool": NoTool,
    "shuffled_results": ShuffledResults,
}
"""The controls that are available for every `VisEnv`, by name."""

_NEED_TOOLS = ("no_tool", "shuffled_results")


def controlled(make_env: MakeEnv, control: str) -> MakeEnv:
    """Return a function that makes the environment under a control.

    Args:
        make_env: Makes the environment with `gym.make`.
        control: The name of the control.

    Raises:
        UnknownNameError: If the environment has no such control; suggests the nearest.
        ConfigurationError: If the control needs tools and the environment has none.
    """
    env = make_env()
    try:
        base, spec = _base(env), copy.deepcopy(env.spec)
    finally:
        env.close()
    name = type(base).__name__
    if control not in CONTROLS and control not in base.controls:
        raise UnknownNameError(f"control of {name}", control, {*CONTROLS, *base.controls})
    if control in _NEED_TOOLS and not base.tools:
        raise ConfigurationError(
            f"The control {control!r} needs an environment with tools, and {name} has none here; "
            "its control is 'no_image'."
        )
    if control not in base.controls:
        return partial(_wrapped, make_env, control)
    if spec is None:
        raise ConfigurationError(f"The control {control!r} needs an environment made by gym.make.")
    spec.kwargs.update(base.controls[control])
    return partial(gym.make, spec)


def _wrapped(make_env: MakeEnv, control: str) -> Env:
    return CONTROLS[control](make_env())


def _base(env: gym.Env[Any, Any]) -> VisEnv:
    base = env.unwrapped
    if not isinstance(base, VisEnv):
        raise ConfigurationError(
            f"Controls need an environment that extends VisEnv, got {type(base).__name__}."
        )
    return base
