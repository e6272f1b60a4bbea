"""Defines the contract of an environment as tests, which also packages outside of visenv can run.

In a test file::

    class TestMine(EnvContract):
        def make(self):
            return gym.make("mine/Task-v0")

or ``check_all(lambda: gym.make("mine/Task-v0"))`` anywhere. Each check takes a function that makes
the environment with `gym.make`, and raises an AssertionError with the expected and the actual
result. The samples must have exact ground truth, because the oracle uses it.
"""

from __future__ import annotations

import math
import re
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.utils.env_checker import check_env

from visenv.episodes import read_episodes, write_episodes
from visenv.evaluation.rescore import Rescorer
from visenv.rewards import RewardWrapper
from visenv.testing.record import (
    SEEDS,
    Env,
    MakeEnv,
    assert_same,
    base_of,
    episode,
    facts,
    played,
    return_of,
    turns_of,
)
from visenv.testing.sameness import (
    check_deterministic,
    check_differs_across_seeds,
    check_pickles_mid_episode,
    check_rebuilds_from_json,
    check_shares_no_memory,
)
from visenv.testing.survival import (
    check_survives_any_text,
    check_survives_hostile_text,
    check_survives_huge_calls,
    require_hypothesis,
)
from visenv.types import Episode


def check_rescores(make_env: MakeEnv) -> None:
    """Check that a loaded episode equals the saved one, and gets its reward without a judge."""
    env = make_env()
    episodes = [played(env, policy, seed) for policy in ("oracle", "random") for seed in SEEDS[:3]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "episodes.jsonl"
        write_episodes(path, episodes)
        saved = list(read_episodes(path))
        rescorer = Rescorer(trust=True)  # the episodes are those of `make_env`
        try:
            for episode, read in zip(episodes, saved, strict=True):
                what = f"A saved episode must read back as it was played, seed {episode.seed}."
                assert_same(facts(episode), facts(read), what)
                what = f"Rescoring must reproduce the paid reward, seed {episode.seed}."
                assert_same(facts(_paid(episode)), facts(_paid(rescorer.rescore(read))), what)
        finally:
            rescorer.close()


def _paid(episode: Episode) -> list[object]:
    rewards = [turn.reward for turn in episode.turns]
    return [rewards, dict(episode.terms), dict(episode.term_notes)]


def top_reward(env: Env) -> float:
    """Return the largest possible reward."""
    layer: gym.Env[Any, Any] = env
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, RewardWrapper):
            return float(layer.top)
        layer = layer.env
    return 1.0  # the reward is the outcome alone


def check_oracle_gets_the_top_reward(make_env: MakeEnv) -> None:
    """Check that the oracle ends every episode with outcome 1 and the highest possible reward."""
    env = make_env()
    top = top_reward(env)
    for seed in SEEDS:
        won = played(env, "oracle", seed)
        outcome = base_of(env).task_score()
        assert won.status == "terminated", (
            f"Expected the oracle to end seed {seed}, saw {won.end_reason!r}."
        )
        assert outcome == 1.0, f"Expected the outcome 1 of the oracle, saw {outcome}, seed {seed}."
        assert math.isclose(won.reward, top, rel_tol=1e-9), (
            f"Expected the top reward {top:g} of the oracle, saw {won.reward:g} {won.terms}, "
            f"seed {seed}."
        )


def check_oracle_keeps_to_the_request(make_env: MakeEnv) -> None:
    """Check that a pre-filled, constrained policy could have written the oracle's turns."""
    env = make_env()
    for seed in SEEDS[:3]:
        turns = turns_of(env, "oracle", seed)
        for turn, step in zip(turns, episode(env, turns, seed), strict=False):
            request = step.info["step"].request
            assert turn.startswith(request.prefill), (
                f"Expected the oracle's turn to begin with {request.prefill!r}, saw {turn!r}."
            )
            rest = turn.removeprefix(request.prefill)
            assert request.regex is None or re.fullmatch(request.regex, rest), (
                f"Expected the oracle's turn to match {request.regex!r}, saw {rest!r}."
            )
            stopped = not request.stop or any(map(turn.endswith, request.stop))
            assert stopped, f"Expected the oracle's turn to end with {request.stop}, saw {turn!r}."


def check_random_turns_rarely_reach_the_top(make_env: MakeEnv) -> None:
    """Check that random turns reach the top reward in under half of the episodes, never more."""
    env = make_env()
    top = top_reward(env)
    rewards = [played(env, "random", seed).reward for seed in SEEDS]
    assert max(rewards) <= top + 1e-9, f"Expected at most {top:g}, saw {max(rewards):g} by chance."
    reached = sum(math.isclose(reward, top, rel_tol=1e-9) for reward in rewards)
    assert reached < len(SEEDS) / 2, (
        f"Expected the top reward by chance in fewer than half the episodes, saw it in {reached} "
        f"of {len(SEEDS)}: the task does not need its observation."
    )


def check_empty_turns_earn_little(make_env: MakeEnv) -> None:
    """Check that empty turns earn at most half of the highest reward, and never solve a task."""
    env = make_env()
    top = top_reward(env)
    rewards: list[float] = []
    for seed in SEEDS:
        rewards.append(return_of(env, [""] * base_of(env).limits.turns, seed))
        outcome = base_of(env).task_score()
        assert outcome < 1, (
            f"Expected an outcome below 1 of empty turns, saw {outcome}, seed {seed}."
        )
    mean = sum(rewards) / len(rewards)
    assert mean <= top / 2, (
        f"Expected at most half of the top reward {top:g} of empty turns, saw {mean:g} on average."
    )


def check_conforms(make_env: MakeEnv) -> None:
    """Check that Gymnasium's own checker reports nothing, with and without the wrappers."""
    env = make_env()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
        warnings.filterwarnings("ignore", ".*different from the unwrapped version")
        check_env(env)


CHECKS = (
    check_conforms,
    check_deterministic,
    check_differs_across_seeds,
    check_shares_no_memory,
    check_survives_hostile_text,
    check_survives_any_text,
    check_survives_huge_calls,
    check_pickles_mid_episode,
    check_rebuilds_from_json,
    check_oracle_gets_the_top_reward,
    check_oracle_keeps_to_the_request,
    check_random_turns_rarely_reach_the_top,
    check_empty_turns_earn_little,
    check_rescores,
)
"""All checks of the contract."""


def check_all(make_env: MakeEnv) -> None:
    """Run all checks of the contract; stop at the first check that fails.

    Raises:
        AssertionError: If a check fails.
        ConfigurationError: If the package hypothesis (extra ``validate``) is not installed.
    """
    require_hypothesis()
    for check in CHECKS:
        check(make_env)


class EnvContract:
    """Runs the contract as a test class: subclass it with a name that begins with Test."""

    def make(self) -> Env:
        """Make the environment with `gym.make`."""
        raise NotImplementedError("Write make(), which returns gym.make(<your environment's id>).")


def _as_test(check: Callable[[MakeEnv], None]) -> Callable[[EnvContract], None]:
    def test(self: EnvContract) -> None:
        check(self.make)

    test.__doc__ = check.__doc__
    return test


for _check in CHECKS:
    setattr(EnvContract, _check.__name__.replace("check_", "test_", 1), _as_test(_check))
