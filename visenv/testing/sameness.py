"""Checks that an episode depends only on its seed: repeated, rebuilt, copied, and overwritten."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from itertools import chain, combinations

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from visenv.rollout import EnvResult
from visenv.testing.record import (
    SEEDS,
    Env,
    MakeEnv,
    assert_same,
    base_of,
    episode,
    facts,
    go_on,
    turns_of,
)
from visenv.types import Image, Pixels, StepResult, all_images
from visenv.types.empty import EMPTY

_PLAYERS = ("oracle", "random")


def check_deterministic(make_env: MakeEnv) -> None:
    """Check that a seed gives bit-identical episodes, in two instances, and twice in one."""
    for policy in _PLAYERS:
        first, second = make_env(), make_env()
        turns = turns_of(first, policy, seed=3)
        again = facts(turns_of(second, policy, seed=3))
        assert_same(facts(turns), again, f"The {policy} policy must say the same for one seed.")
        expected = facts(list(episode(first, turns, seed=3)))
        for env, where in ((first, "one instance twice"), (second, "two instances")):
            seen = facts(list(episode(env, turns, seed=3)))
            assert_same(expected, seen, f"One seed must give one episode in {where}.")


def check_differs_across_seeds(make_env: MakeEnv) -> None:
    """Check that different seeds give different episodes.

    Whole episodes of the oracle are compared, because a task can hide its state at first.
    """
    env = make_env()
    episodes = (facts(list(episode(env, turns_of(env, "oracle", seed), seed))) for seed in SEEDS)
    first = next(episodes)
    differs = any(each != first for each in episodes)
    assert differs, f"Expected different episodes of {len(SEEDS)} seeds, saw one."


def check_shares_no_memory(make_env: MakeEnv) -> None:
    """Check that overwriting a returned value changes nothing later, and no array is sent twice."""
    env = make_env()
    turns = turns_of(env, "oracle", seed=5)
    expected = [facts(step) for step in episode(env, turns, seed=5)]
    sent: list[Pixels] = []
    for place, step in enumerate(episode(env, turns, seed=5)):
        assert_same(expected[place], facts(step), "Overwriting a result must change nothing later.")
        images = step.observation["images"]
        _assert_apart([*sent, *_state(env, step)], images)
        sent += images
        _overwrite(step)
    options = {"sample": base_of(env).sample}
    first, second = (env.reset(options=options)[0]["images"] for _ in range(2))
    _assert_apart(first, second)


def _state(env: Env, step: EnvResult) -> list[Pixels]:
    base = base_of(env)
    record: StepResult = step.info["step"]
    held: list[Image] = [*base.store.images.values(), *base.sample.images]
    shown = all_images(record.messages)
    for image in (*held, *shown):
        assert not image.pixels.flags.writeable, f"Expected {image!r} to be read-only."
    return [image.pixels for image in (*held, *shown)]


def _assert_apart(others: Sequence[Pixels], images: Sequence[Pixels]) -> None:
    for one, other in chain(
        ((image, other) for image in images for other in others), combinations(images, 2)
    ):
        assert not np.shares_memory(one, other), (
            f"Expected a fresh array for each image sent, saw one of {one.shape} that shares its "
            "memory with the episode's state or with an image sent before."
        )


def _overwrite(step: EnvResult) -> None:
    for image in step.observation["images"]:
        if image.flags.writeable:
            image[...] = 255 - image
    step.observation.clear()  # type: ignore[attr-defined]
    for mapping in (step.info["step"].terms, step.info["step"].metrics):
        if mapping is not EMPTY:
            mapping.clear()
    step.info.clear()


def check_pickles_mid_episode(make_env: MakeEnv) -> None:
    """Check that a copy made at any turn continues identically, and plays the same next episode."""
    env = make_env()
    for policy in _PLAYERS:
        turns = turns_of(env, policy, seed=2)
        for played in range(len(turns) + 1):
            list(episode(env, turns[:played], seed=2))
            copied: Env = pickle.loads(pickle.dumps(env))  # noqa: S301  (made here)
            expected, seen = (
                facts(
                    (list(go_on(each, turns[played:])), base_of(each).np_random.bit_generator.state)
                )
                for each in (env, copied)
            )
            assert_same(expected, seen, f"A pickle after {played} turns must go on identically.")


def check_rebuilds_from_json(make_env: MakeEnv) -> None:
    """Check that an environment made from its spec, through JSON, plays the same episode."""
    env = make_env()
    assert env.spec is not None, "Expected an environment made by gym.make, saw one without spec."
    try:
        written = env.spec.to_json()
    except (TypeError, ValueError) as error:
        raise AssertionError(f"Expected a spec that JSON can hold, saw {error}") from error
    rebuilt: Env = gym.make(EnvSpec.from_json(written))
    for policy in _PLAYERS:
        turns = turns_of(env, policy, seed=4)
        expected = facts(list(episode(env, turns, seed=4)))
        seen = facts(list(episode(rebuilt, turns, seed=4)))
        assert_same(expected, seen, "The environment rebuilt from JSON must play the same.")
