"""Checks that the oracle gets the highest reward, and that guessing does not."""

from __future__ import annotations

import math
import re
from typing import Any

import gymnasium as gym

from visenv.rewards import RewardWrapper
from visenv.testing.record import (
    SEEDS,
    Env,
    MakeEnv,
    base_of,
    episode,
    played,
    return_of,
    turns_of,
)


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
