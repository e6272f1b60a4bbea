"""Tests with real programs that steps of procedural samples are paid only for a readable image."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

from tests.environments import few
from visenv.envs.arft import make_coding
from visenv.envs.arft.coding.env import ArftCoding
from visenv.envs.arft.coding.world import PLANS
from visenv.envs.arft.coding.world.plans import NONE, named
from visenv.grammar import ParsedTurn, ToolCall
from visenv.sandbox import INPUT_IMAGE, OUTPUT_IMAGE

COPY = f"import cv2\ncv2.imwrite('{OUTPUT_IMAGE}', cv2.imread('{INPUT_IMAGE}'))"
BLANK = (
    f"import cv2\nimage = cv2.imread('{INPUT_IMAGE}')\n"
    f"cv2.imwrite('{OUTPUT_IMAGE}', image // 255 * 0 + 255)"
)
FAILS = "raise ValueError"
TINY = ["dark", "rotation180"]
DEFAULT = [named(problems) for problems in PLANS["train"] if problems != NONE]
FIRST = ["crop", "blur", "rotation90+dark"]
CASES = [("tiny", problem) for problem in TINY]
CASES += [("train", each) for each in sorted(DEFAULT, key=lambda each: each not in FIRST)]


def coding(preset: str, problem: str, **options: Any) -> gym.Env[Any, str]:
    return make_coding(preset=preset, problems=[problem], **options)


def total(env: gym.Env[Any, str], *codes: str, label: bool = True, seed: int = 0) -> float:
    """Return the reward of the right label, of programs, and of the right answer."""
    env.reset(seed=seed)
    base = env.unwrapped
    assert isinstance(base, ArftCoding)
    calls = [ToolCall("problem", {"labels": list(base.truth.problems)})] if label else []
    calls += [ToolCall("code", {"code": code}) for code in codes]
    turns = [ParsedTurn("so", (call,)) for call in calls]
    turns.append(ParsedTurn("so", answer=base.sample.answers[0]))
    paid = [float(env.step(base.grammar.compose(turn))[1]) for turn in turns]
    assert base.log.answer is not None
    return sum(paid)


@pytest.mark.slow
@pytest.mark.parametrize(("preset", "problem"), few(CASES, 5))
def test_program_that_repairs_nothing_earns_no_more_than_the_answer(
    preset: str, problem: str
) -> None:
    env = coding(preset, problem)
    alone = total(env, label=False)
    # the answer has 3/5 of each of the terms `steps` and `format`
    assert alone == pytest.approx(1.2)
    for code in ("pass", COPY, BLANK, FAILS):
        assert total(env, code) == pytest.approx(alone), code
        assert total(env, code, label=False) == pytest.approx(alone), code


@pytest.mark.slow
@pytest.mark.parametrize(("preset", "problem"), few(CASES, 5))
def test_reference_program_earns_the_whole_reward(preset: str, problem: str) -> None:
    env = coding(preset, problem)
    for seed in range(2):
        env.reset(seed=seed)
        base = env.unwrapped
        assert isinstance(base, ArftCoding)
        paid = 0.0
        terminated = False
        while not terminated:
            _, reward, terminated, truncated, _ = env.step(base.grammar.compose(base.oracle_turn()))
            assert not truncated
            paid += float(reward)
        assert paid == pytest.approx(2.0)


@pytest.mark.slow
def test_published_rule_pays_every_program() -> None:
    env = coding("train", "rotation180", compat="arft")
    assert total(env, "pass") > total(env, label=False) + 1
