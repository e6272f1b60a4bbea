"""Tests that no policy with pointless tool calls earns more than an honest guess."""

from __future__ import annotations

from types import ModuleType
from typing import Any, SupportsFloat

import gymnasium as gym
import pytest

from tests.programs import load_program


@pytest.fixture(scope="module")
def cheats() -> ModuleType:
    return load_program("benchmarks/arm_cheats.py")


@pytest.mark.slow
def test_cheats_earn_no_more_than_an_honest_guess(
    cheats: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = list(cheats.rows(samples=1))
    with capsys.disabled():
        print("\n" + cheats.table(rows))
    assert len({row.policy for row in rows if row.kind == "cheat"}) >= 12
    for env in cheats.OF_ENV:
        here = [row for row in rows if row.env == env]
        honest, guess = (row for row in here if row.kind == "honest")
        caught = [row for row in here if row.kind == "cheat"]
        # Two responses: a guess earns half of 0.3 + 1.0, the right verdict with the tool 1.5.
        assert (honest.evidence, guess.evidence) == pytest.approx((1.5, 0.65))
        # No policy that ignores what it sees gains from a call, also if it sees the evidence:
        # in half of its episodes it earns 1.5, in the others 0.3 - 0.5.
        assert max(row.evidence for row in here if row.kind != "honest") <= guess.evidence + 1e-9
        # With the published rule, some of them earn more, so that this test can fail.
        assert max(row.published for row in caught) > guess.published + 0.2
    assert {row.kind for row in rows} == {"honest", "cheat", "lucky", "thoughtless"}


@pytest.mark.slow
@pytest.mark.parametrize("reward", ["stage1", "fixed_bonus"])
@pytest.mark.soak
def test_cheats_earn_no_more_than_a_guess_under_the_other_rewards(
    cheats: ModuleType, reward: str
) -> None:
    rows = list(cheats.rows(1, reward))
    for env in cheats.OF_ENV:
        here = [row for row in rows if row.env == env]
        (guess,) = (row for row in here if row.policy == "guess at once")
        assert max(row.evidence for row in here if row.kind == "cheat") <= guess.evidence + 1e-9
        assert max(row.published for row in here if row.kind == "cheat") > guess.published + 0.04


def test_oracle_shows_what_decides_of_a_tiny_preference() -> None:
    """Check varied frames and shapes; the largest sign is half as wide as the image."""
    env = gym.make("visenv/ArmPreference-v0", preset="tiny", reward="stage2")
    judge: Any = env.unwrapped
    for seed in range(6):
        env.reset(seed=seed)
        over = False
        reward: SupportsFloat = 0.0
        while not over:
            turn = judge.grammar.compose(judge.oracle_turn())
            _, reward, terminated, truncated, _ = env.step(turn)
            over = terminated or truncated
        assert float(reward) == pytest.approx(1.5)


def test_unknown_tools_and_malformed_calls_have_the_same_reward(cheats: ModuleType) -> None:
    env = gym.make("visenv/ArmIF-v0")
    unknown, malformed = cheats.EVERYWHERE[1:3]
    paid = [cheats.expected(env, env.unwrapped, each, 2) for each in (unknown, malformed)]
    assert paid == pytest.approx([0.15 + 0.35] * 2)
