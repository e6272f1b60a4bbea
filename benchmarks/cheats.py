"""Computes what policies gain that ignore what a tool shows, for all families in one table.

    python benchmarks/cheats.py [samples] [environment ...]

Every policy except the honest one gives each possible answer of each sample once, so that its mean
is the exact expectation of a random guess; only the choice of samples is random. ``gain`` is the
difference to the same guess without a call, as a share of the maximum reward. The published column
has the reward as printed in the paper or as in the public code, where it is available by an option.
Libero is missing, because it has no tool that shows something.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium as gym

import visenv  # noqa: F401 - registers the environments
from benchmarks.cheat_policies import FAMILIES, Family, Policy

LARGEST_GAIN = 0.02
"""Maximum gain of a policy that ignores what a tool shows, as a share of the maximum reward."""


class Row(NamedTuple):
    """Holds a row of the table.

    Attributes:
        env: The environment, with its options.
        policy: The policy.
        kind: ``"honest"``, ``"guess"``, ``"cheat"`` or ``"right"``, see `Policy`.
        reward: Mean of the default reward.
        gain: Difference to the guess, as a share of the maximum reward.
        published: The same difference under the published rule, None without one.
    """

    env: str
    policy: str
    kind: str
    reward: float
    gain: float
    published: float | None


def episode(env: Any, seed: int, policy: Policy, answer: str) -> float:
    """Return the reward of a policy that ends with that answer."""
    env.reset(seed=seed)
    base = env.unwrapped
    paid = 0.0
    for text in policy.turns(base, answer):
        _, reward, terminated, truncated, _ = env.step(text)
        paid += float(reward)
        if terminated or truncated:
            return paid
    while True:
        turn = base.oracle_turn() if policy.kind == "honest" else base.direct_turn(answer)
        _, reward, terminated, truncated, _ = env.step(base.grammar.compose(turn))
        paid += float(reward)
        if terminated or truncated:
            return paid


def mean_reward(env: Any, family: Family, policy: Policy, samples: int) -> float:
    """Return the mean reward over samples, and over all answers of each."""
    paid: list[float] = []
    for seed in range(samples):
        env.reset(seed=seed)
        answers = family.answers(env.unwrapped)
        if policy.kind in ("honest", "right"):
            answers = [family.right(env.unwrapped)]
        each = [episode(env, seed, policy, answer) for answer in answers]
        paid.append(sum(each) / len(each))
    return sum(paid) / len(paid)


def rows(samples: int, names: tuple[str, ...] = (), published: bool = True) -> Iterator[Row]:
    """Yield the rows of the table; the first two of each environment are the honest ones."""
    for family in FAMILIES:
        if names and not any(name in family.title for name in names):
            continue
        made = [gym.make(f"visenv/{family.env}-v0", **family.options)]
        if published and family.published is not None:
            options = {**family.options, **family.published}
            made.append(gym.make(f"visenv/{family.env}-v0", **options))
        guesses: list[float] = []
        for policy in family.policies:
            means = [mean_reward(env, family, policy, samples) for env in made]
            if policy.kind == "guess":
                guesses = means
            gains = [
                (mean - guess) / family.top
                for mean, guess in zip(means, guesses or means, strict=True)
            ]
            yield Row(
                family.title,
                policy.name,
                policy.kind,
                means[0],
                gains[0],
                gains[1] if len(gains) > 1 else None,
            )
        for env in made:
            env.close()


def table(lines: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    head = "| environment | policy | reward | gain | gain, published |\n|---|---|--:|--:|--:|"
    body = [
        f"| {row.env} | {'**' + row.policy + '**' if row.kind == 'honest' else row.policy} "
        f"| {row.reward:.3f} | {_gain(row, row.gain)} | {_gain(row, row.published)} |"
        for row in lines
    ]
    return "\n".join([head, *body])


def _gain(row: Row, gain: float | None) -> str:
    return "" if gain is None or row.kind in ("guess", "honest") else f"{gain + 0.0:+.3f}"


def faults(lines: list[Row]) -> list[str]:
    """Return a sentence for each policy that gains too much, or that earns as much as honesty."""
    found: list[str] = []
    for row in lines:
        honest = next(each.reward for each in lines if each.env == row.env)
        if row.kind == "cheat" and row.gain > LARGEST_GAIN:
            found.append(f"{row.env}: {row.policy!r} gains {row.gain:.3f}")
        if row.kind != "honest" and row.reward >= honest:
            found.append(f"{row.env}: {row.policy!r} earns as much as honest play")
    return found


if __name__ == "__main__":
    arguments = sys.argv[1:]
    count = int(arguments.pop(0)) if arguments and arguments[0].isdecimal() else 12
    listed = list(rows(count, tuple(arguments)))
    print(table(listed))
    print("\n".join(faults(listed)) or f"\nNo cheat gains more than {LARGEST_GAIN}.")
