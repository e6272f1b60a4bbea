"""Converts episodes to plain values, so that two episodes can be compared bit by bit."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from visenv.background import run_here
from visenv.env import Observation, VisEnv
from visenv.registration import load
from visenv.rollout import EnvResult, EpisodeSpec, play
from visenv.types import Episode, Image, Sample

Env = gym.Env[Observation, str]
MakeEnv = Callable[[], Env]

SEEDS = range(12)
"""Seeds of the checks that play several episodes."""

_SHOWN = 200


def base_of(env: Env) -> VisEnv:
    """Return the `VisEnv` under the wrappers."""
    base = env.unwrapped
    assert isinstance(base, VisEnv)
    return base


def played(env: Env, policy: str, seed: int) -> Episode:
    """Return the episode of that seed, played by a registered policy.

    Raises:
        AssertionError: If the episode was aborted.
    """
    finished = run_here(play(env, load("policy", policy)(), EpisodeSpec(seed)))
    assert finished.status != "aborted", (
        f"Expected the {policy} policy to play seed {seed} to its end, saw: {finished.failure}"
    )
    return finished


def turns_of(env: Env, policy: str, seed: int) -> list[str]:
    """Return the turns of a registered policy in the episode of that seed."""
    return [turn.text for turn in played(env, policy, seed).turns]


def episode(
    env: Env, turns: Iterable[str], seed: int, sample: Sample | None = None
) -> Iterator[EnvResult]:
    """Reset, and send the turns one by one until there are no more or the episode is over.

    Args:
        env: The environment.
        turns: The turns to send.
        seed: The seed of `reset`.
        sample: The sample of the episode, if it is already known, to save time.
    """
    options = None if sample is None else {"sample": sample}
    observation, info = env.reset(seed=seed, options=options)
    yield EnvResult(observation, 0.0, False, False, info)
    yield from go_on(env, turns)


def go_on(env: Env, turns: Iterable[str]) -> Iterator[EnvResult]:
    """Send the turns one by one until there are no more or the episode is over."""
    for turn in turns:
        step = EnvResult(*env.step(turn))  # type: ignore[arg-type]  # `survival` checks the reward
        yield step
        if step.over:
            return


def return_of(env: Env, turns: Iterable[str], seed: int) -> float:
    """Return the sum of the rewards of an episode."""
    return sum(float(step.reward) for step in episode(env, turns, seed))


def facts(value: object, path: str = "") -> dict[str, str]:
    """Return every leaf of a nested value by its path, with the exact bits of floats and arrays."""
    return dict(_facts(value, path))


def _facts(value: object, path: str) -> Iterator[tuple[str, str]]:
    kind = type(value).__name__
    if isinstance(value, Image):
        yield path, f"Image {value.size} {value.sha256}"
    elif isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).data).hexdigest()
        yield path, f"{value.dtype} {value.shape} {digest}"
    elif isinstance(value, float):
        yield path, f"{kind} {value!r} {float(value).hex()}"
    elif isinstance(value, (Mapping, list, tuple)) or dataclasses.is_dataclass(value):
        children = list(_children(value))
        yield path, f"{'mapping' if isinstance(value, Mapping) else kind} of {len(children)}"
        for name, child in children:
            yield from _facts(child, f"{path}{name}")
    else:
        yield path, f"{kind} {value!r}"


def _children(value: Any) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key, child in value.items():
            yield f"[{key!r}]", child
    elif isinstance(value, (list, tuple)):
        names = getattr(value, "_fields", None)
        for place, child in enumerate(value):
            yield (f".{names[place]}" if names else f"[{place}]"), child
    else:
        for field in dataclasses.fields(value):
            yield f".{field.name}", getattr(value, field.name)


def assert_same(expected: Mapping[str, str], seen: Mapping[str, str], what: str) -> None:
    """Compare the `facts` of two values, and report the first difference.

    Args:
        expected: Facts of the first value.
        seen: Facts of the second value.
        what: A sentence that is true if they are equal.

    Raises:
        AssertionError: If they differ in any bit.
    """
    for path in [*expected, *(path for path in seen if path not in expected)]:
        left, right = expected.get(path, "nothing"), seen.get(path, "nothing")
        if left != right:
            raise AssertionError(f"{what} At {path}: expected {_cut(left)}, saw {_cut(right)}.")


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
