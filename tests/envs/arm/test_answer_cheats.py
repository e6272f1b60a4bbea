"""Tests plain questions: no policy with pointless tool calls earns more than an honest guess."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import gymnasium as gym
import pytest

import visenv  # noqa: F401 - registers the environments
from tests.programs import load_program
from visenv.evaluation.controls import controlled

CHEATS_OF = {"ArmVQA": "ArmZoom", "ArmDocVQA": "ArmDoc"}
SAMPLES = 1


@pytest.fixture(scope="module")
def cheats() -> ModuleType:
    return load_program("benchmarks/arm_cheats.py")


def expected(env: Any, policy: Any) -> float:
    """Return the mean reward of a policy that is right in half of its episodes."""
    base = env.unwrapped
    paid: list[float] = []
    for seed in range(SAMPLES):
        env.reset(seed=seed)
        for option in (base.sample.answers[0], "wrong"):
            env.reset(seed=seed)
            for turn in policy.moves(base):
                env.step(turn)
            answer = f"<think>{policy.thought}</think><answer>{option}</answer>"
            paid.append(float(env.step(answer)[1]))
    return sum(paid) / len(paid)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHEATS_OF)
def test_cheats_earn_no_more_than_an_honest_guess(cheats: ModuleType, name: str) -> None:
    policies = (*cheats.EVERYWHERE, *cheats.OF_ENV[CHEATS_OF[name]])
    caught = [policy for policy in policies if policy.kind == "cheat"]
    assert len(caught) >= 11
    env = gym.make(f"visenv/{name}-v0")
    guess = expected(env, cheats.GUESS)
    assert guess == pytest.approx(0.65)  # half of 0.3 + 1.0
    for policy in caught:
        assert expected(env, policy) <= guess + 1e-9, policy.name
    # With the published rule, some of them earn more, so that the test above can fail.
    published = gym.make(f"visenv/{name}-v0", call_rule="published")
    assert max(expected(published, policy) for policy in caught) > guess + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", CHEATS_OF)
def test_question_alone_does_not_reveal_the_answer(name: str) -> None:
    # A text-only policy that always gives the most frequent answer of 30 other samples.
    env = controlled(lambda: gym.make(f"visenv/{name}-v0", preset="tiny"), "no_image")()
    base: Any = env.unwrapped
    answers: dict[str, list[str]] = {}
    for seed in range(100, 130):
        env.reset(seed=seed)
        answers.setdefault(base.sample.kind, []).append(base.sample.answers[0])
    right = 0
    for seed in range(20):
        env.reset(seed=seed)
        seen = answers.get(base.sample.kind, ["none"])
        guess = max(set(seen), key=seen.count)
        *_, info = env.step(f"<think>so</think><answer>{guess}</answer>")
        right += info["step"].metrics["accuracy"] == 1.0
    assert right <= 9  # there are at least six colors
