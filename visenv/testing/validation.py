"""Reports on the contract of an environment: every check, rewards of players, and the speed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from visenv.plugins import describe_error
from visenv.testing.contract import CHECKS, top_reward
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
from visenv.testing.survival import (
    EXAMPLES,
    check_survives_any_text,
    hostile_texts,
    require_hypothesis,
)


class CheckResult(NamedTuple):
    """Holds the result of a check.

    Attributes:
        name: Name of the check, without ``check_``.
        passed: Whether it passed.
        problem: The expected and the actual result; empty if it passed.
        seconds: Duration of the check.
    """

    name: str
    passed: bool
    problem: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class ValidationReport:
    """Holds the results of `validate`.

    Attributes:
        checks: One result for each check, in order.
        top_reward: The highest possible reward; None if the environment cannot be played.
        rewards: The mean reward of each player over the seeds of the checks: ``"oracle"``,
            ``"random"`` and ``"empty"``, a player whose turns are empty.
        hostile_texts: Number of hostile texts that were sent, each at every turn of an episode.
        steps_per_second: Speed of `step` and `reset` with random turns, in one process.
    """

    checks: Sequence[CheckResult]
    top_reward: float | None = None
    rewards: dict[str, float] = field(default_factory=dict)
    hostile_texts: int = 0
    steps_per_second: float | None = None

    @property
    def failed(self) -> list[CheckResult]:
        """Return the checks that failed."""
        return [check for check in self.checks if not check.passed]


def validate(
    make_env: MakeEnv,
    hostile: int = EXAMPLES,
    on_check: Callable[[CheckResult], None] | None = None,
) -> ValidationReport:
    """Run every check of the contract, also after a failed one, and measure the environment.

    Args:
        make_env: Makes the environment, with `gym.make`.
        hostile: Number of hostile texts to generate, in addition to those of the corpus.
        on_check: Function that is called after each check.

    Raises:
        ConfigurationError: If the package hypothesis (extra ``validate``) is not installed.
    """
    require_hypothesis()
    results = []
    for check in CHECKS:
        run = check
        if check is check_survives_any_text:
            run = partial(check_survives_any_text, examples=hostile)
        result = _result(check.__name__.removeprefix("check_"), run, make_env)
        results.append(result)
        if on_check is not None:
            on_check(result)
    try:
        return _measured(make_env(), results, hostile)
    except Exception:
        report = ValidationReport(checks=results)
        if not report.failed:
            raise
        return report  # a failed check contains the error of the environment


def _result(name: str, check: Callable[[MakeEnv], None], make_env: MakeEnv) -> CheckResult:
    began = time.perf_counter()
    problem = ""
    try:
        check(make_env)
    except AssertionError as error:
        problem = " ".join(str(error).split()) or describe_error(error)
    except Exception as error:  # noqa: BLE001  (an environment may raise anything)
        problem = describe_error(error)
    return CheckResult(name, not problem, problem, time.perf_counter() - began)


def _measured(env: Env, checks: Sequence[CheckResult], hostile: int) -> ValidationReport:
    empty = [""] * base_of(env).limits.turns
    rewards = {
        "oracle": _mean(played(env, "oracle", seed).reward for seed in SEEDS),
        "random": _mean(played(env, "random", seed).reward for seed in SEEDS),
        "empty": _mean(return_of(env, empty, seed) for seed in SEEDS),
    }
    return ValidationReport(
        checks=checks,
        top_reward=top_reward(env),
        rewards=rewards,
        hostile_texts=len(hostile_texts(env)) + hostile,
        steps_per_second=_steps_per_second(env),
    )


def _steps_per_second(env: Env) -> float:
    scripts = [(turns_of(env, "random", seed), seed) for seed in SEEDS]
    began = time.perf_counter()
    steps = sum(len(list(episode(env, turns, seed))) - 1 for turns, seed in scripts)
    return steps / (time.perf_counter() - began)


def _mean(values: Iterator[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)
