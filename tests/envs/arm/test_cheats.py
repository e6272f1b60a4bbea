"""No policy that calls tools to no purpose earns more than an honest guess."""

from __future__ import annotations

from types import ModuleType

import gymnasium as gym
import pytest

from tests.programs import load_program


@pytest.fixture(scope="module")
def cheats() -> ModuleType:
    return load_program("benchmarks/arm_cheats.py")


def test_no_cheat_earns_more_than_an_honest_guess(
    cheats: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = list(cheats.rows(samples=2))
    with capsys.disabled():
        print("\n" + cheats.table(rows))
    assert len({row.policy for row in rows if row.kind == "cheat"}) >= 12
    for env in cheats.OF_ENV:
        here = [row for row in rows if row.env == env]
        honest, guess = (row for row in here if row.kind == "honest")
        caught = [row for row in here if row.kind == "cheat"]
        # Two responses: half of 0.3 + 1.0. The whole of it with the tool: 1.5.
        assert (honest.evidence, guess.evidence) == pytest.approx((1.5, 0.65))
        assert max(row.evidence for row in caught) <= guess.evidence + 1e-9
        # What makes the test able to fail: the published rule pays some of them.
        assert max(row.published for row in caught) > guess.published + 0.2


def test_unknown_tools_and_malformed_calls_are_paid_alike(cheats: ModuleType) -> None:
    env = gym.make("visenv/ArmIF-v0")
    unknown, malformed = cheats.EVERYWHERE[1:3]
    paid = [cheats.expected(env, env.unwrapped, each, 2) for each in (unknown, malformed)]
    assert paid == pytest.approx([0.15 + 0.35] * 2)
