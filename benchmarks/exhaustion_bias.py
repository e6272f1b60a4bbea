"""Measures the bias of training without failed episodes, if long episodes fail more often.

An episode that fails beyond its retries has no reward. Either only that episode is removed from its
group (``drop_member``), or the whole group (``drop_group``). This simulation compares both with
training without failures, on a problem whose gradient is known to be positive: in each turn the
policy looks again or answers, more looks make the right answer more likely, and any turn may fail.
Advantages and loss are those of `GRPO`; failed episodes are played again with the same seed, as by
`Collector`. Every rule gets the same episodes and failures, so that differences are due to the
rules.

- alike: all tasks are of one kind, in which looking pays.
- mixed: looking pays in half of the tasks only, and their episodes take further turns, which leave
  the policy no choice.

The columns of the table:

- kept: share of the episodes that the update uses.
- long: share of the kept episodes that took at least `LONG` turns.
- A long: mean advantage of those.
- gradient: bias of the expected gradient, in percent of the gradient without failures, with its
  standard error; -100 % would be no learning signal.
- noise: standard deviation of the gradient of a step, relative to the one without failures.

Run it with::

    python benchmarks/exhaustion_bias.py
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from visenv.algorithm import Batch
from visenv.algos.policy_gradient import GRPO
from visenv.algos.policy_gradient.advantage import group_relative
from visenv.algos.policy_gradient.base import GroupRelative

GROUPS: Final = 32
"""Number of groups in a step; each has `SIZE` episodes."""
SIZE: Final = 8
STEPS: Final = 600
TURNS: Final = 10
"""Most choices of an episode; the last one must be to answer."""
LONG: Final = 5
RETRIES: Final = 2
"""The default of `RolloutConfig.episode_retries`."""
FAILURE_RATES: Final = (0.02, 0.1, 0.2, 0.3)
"""Probabilities that a turn fails."""


class Task(NamedTuple):
    """Describes a kind of task.

    Attributes:
        further: Turns of every episode in which the policy has no choice.
        guess: Probability that an answer without any look is right.
        shown: Probability that a look shows the answer.
    """

    further: int
    guess: float
    shown: float


SETTINGS: Final = {
    "alike": (Task(0, 0.0, 0.4),),
    "mixed": (Task(0, 0.5, 0.0), Task(4, 0.0, 0.4)),
}
"""Kinds of tasks, in equal shares."""

Rule = Callable[[NDArray[np.bool_]], NDArray[np.bool_]]


class Episodes(NamedTuple):
    """Holds the episodes of one step, arrays of shape ``[groups, members]``.

    Attributes:
        choices: int64: the turns in which the policy chose to look or to answer.
        turns: int64: all turns, any of which may fail.
        rewards: float64: 1 if the answer was right, else 0.
        failures: float64, uniform in [0, 1): an episode fails finally if its probability to fail is
            greater.
    """

    choices: NDArray[np.int64]
    turns: NDArray[np.int64]
    rewards: NDArray[np.float64]
    failures: NDArray[np.float64]


class Outcome(NamedTuple):
    """Holds the results of one step under one rule: sums over the kept episodes, and `gradient`."""

    gradient: float
    kept: int
    long: int
    long_advantage: float


def drop_member(alive: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Keep the episodes that did not fail, except single ones of a group: they have no baseline."""
    kept: NDArray[np.bool_] = alive & (alive.sum(1, keepdims=True) > 1)
    return kept


def drop_group(alive: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Keep the groups in which no episode failed."""
    kept: NDArray[np.bool_] = alive & alive.all(1, keepdims=True)
    return kept


RULES: Final[dict[str, Rule]] = {"drop_member": drop_member, "drop_group": drop_group}


def sample(rng: np.random.Generator, tasks: Sequence[Task]) -> Episodes:
    """Play a step of groups with a policy that looks again as often as it answers."""
    shape = (GROUPS, SIZE)
    choices = np.minimum(rng.geometric(0.5, shape), TURNS)
    further, guess, shown = (
        np.resize(np.asarray(column), GROUPS)[:, None] for column in zip(*tasks, strict=True)
    )
    right = 1 - (1 - guess) * (1 - shown) ** (choices - 1)
    rewards = (rng.random(shape) < right).astype(np.float64)
    return Episodes(choices, choices + further, rewards, rng.random(shape))


def survival(turns: NDArray[np.int64], failure_rate: float) -> NDArray[np.float64]:
    """Return the probability that at least one attempt of an episode ends without a failure."""
    attempt = (1 - failure_rate) ** turns
    return np.asarray(1 - (1 - attempt) ** (1 + RETRIES), np.float64)


def update(episodes: Episodes, kept: NDArray[np.bool_], algorithm: GroupRelative) -> Outcome:
    """Compute the gradient of a step with respect to the logit of looking again, which is 0."""
    groups = [row[mask] for row, mask in zip(episodes.rewards, kept, strict=True) if mask.any()]
    if not groups:
        return Outcome(0.0, 0, 0, 0.0)
    advantages = np.concatenate(group_relative(groups, algorithm.scale))
    logit = torch.zeros((), dtype=torch.float64, requires_grad=True)
    loss = algorithm.loss(_batch(episodes.choices[kept], advantages, logit)).value
    (slope,) = torch.autograd.grad(loss, logit)
    long = episodes.turns[kept] >= LONG
    return Outcome(-float(slope), len(long), int(long.sum()), float(advantages[long].sum()))


def _batch(
    choices: NDArray[np.int64], advantages: NDArray[np.float64], logit: torch.Tensor
) -> Batch:
    """Return the kept episodes as token sequences; a token is a choice, to look or to answer."""
    place = torch.arange(TURNS)[None]  # [1, TURNS]
    last = torch.from_numpy(choices)[:, None] - 1  # [episodes, 1]
    look, answer = torch.nn.functional.logsigmoid(torch.stack([logit, -logit]))
    logprobs = torch.where(place < last, look, answer)
    logprobs = torch.where(place == TURNS - 1, 0 * logit, logprobs)  # the last choice is fixed
    mask = place <= last
    old = logprobs.detach()
    given = torch.from_numpy(advantages)[:, None].expand(-1, TURNS)
    counts = (int(mask.sum()), len(choices))
    zero = torch.zeros_like(old)
    return Batch(logprobs, old, old, None, zero, given, mask, mask.sum(-1), *counts)


def simulate(
    tasks: Sequence[Task], algorithm: GroupRelative, steps: int = STEPS
) -> dict[tuple[float, str], list[Outcome]]:
    """Return the outcome of every step, by failure rate and rule; (0.0, "") is without failures."""
    rng = np.random.default_rng(0)
    outcomes: dict[tuple[float, str], list[Outcome]] = {}
    for _ in range(steps):
        episodes = sample(rng, tasks)
        whole = np.ones_like(episodes.turns, np.bool_)
        outcomes.setdefault((0.0, ""), []).append(update(episodes, whole, algorithm))
        for rate in FAILURE_RATES:
            alive = episodes.failures < survival(episodes.turns, rate)
            for name, rule in RULES.items():
                outcome = update(episodes, rule(alive), algorithm)
                outcomes.setdefault((rate, name), []).append(outcome)
    return outcomes


def report(name: str, outcomes: dict[tuple[float, str], list[Outcome]]) -> None:
    """Print the table of one setting."""
    plain = np.array(outcomes[0.0, ""])
    truth, spread = plain[:, 0].mean(), plain[:, 0].std(ddof=1)
    print(f"\n{name}: gradient without failures {truth:.4f} ± {spread / len(plain) ** 0.5:.4f}")
    print(f"{'turn fails':>10} {'rule':<12} {'kept':>6} {'long':>6} {'A long':>7}", end="")
    print(f" {'gradient':>16} {'noise':>6}")
    for (rate, rule), rows in outcomes.items():
        found = np.array(rows)
        gradient, kept, long, advantage = found.T
        difference = 100 * (gradient - plain[:, 0]) / truth
        error = difference.std(ddof=1) / len(difference) ** 0.5
        bias = f"{difference.mean():+6.1f} ± {error:.1f} %" if rule else ""
        print(
            f"{rate:>10.2f} {rule or 'no failures':<12} {kept.sum() / plain[:, 1].sum():>6.1%} "
            f"{long.sum() / kept.sum():>6.1%} {advantage.sum() / long.sum():>+7.3f} "
            f"{bias:>16} {gradient.std(ddof=1) / spread:>6.2f}"
        )


def main() -> None:
    started = time.perf_counter()
    print(
        f"{STEPS} steps of {GROUPS} groups of {SIZE}, at most {TURNS} choices, {RETRIES} retries; "
        f"long episodes take at least {LONG} turns"
    )
    for name, tasks in SETTINGS.items():
        report(name, simulate(tasks, GRPO()))
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
