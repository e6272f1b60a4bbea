"""Measures how often the best of n responses by a noisy verifier is Pareto-optimal, against H(n).

In scenes of the procedural world, half of a policy's responses have the right answer, and half of
them the right points: a quarter of the responses is Pareto-optimal (beta = 0.25). Teachers with
independent error rates of 0, 0.1 or 0.3 score each response. The response with the largest reward
of each group is selected, with random ties.

    python benchmarks/group_size.py --out group_size.png
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import visenv  # noqa: F401  (registers the ids)
from visenv.algos.group_size import best_group_size, exploitation_rate, pareto_bound
from visenv.verifier import Referred, Verifier, oracle_teachers
from visenv.verifier.teachers import run_local

NOISES = (0.0, 0.1, 0.3)
SIZES = (1, 2, 3, 4, 6, 8, 12, 16)
SCENES, POOL, GROUPS = 24, 32, 200
BETA, DELTA, COMPONENTS = 0.25, 1.0, 2
_LEAST_SIGMA = 1e-2


def score_pool(noise: float) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Return for each scene the rewards of a pool of responses, and which are optimal."""
    env: Any = gym.make("visenv/ArgosImage-v0", preset="tiny").unwrapped
    pools = []
    for seed in range(SCENES):
        env.reset(seed=seed)
        *_, info = env.step(env.grammar.compose(env.oracle_turn()))
        right = next(each for each in info["step"].events if isinstance(each, Referred))
        astray = right._replace(points=(right.points[0]._replace(x=0.5, y=0.5),))
        answers = env.sample.answers[0], "unknown"
        rewards, optimal = [], []
        for member in range(POOL):
            answer, grounded = answers[member % 2], (member // 2) % 2 == 0
            verifier = Verifier(oracle_teachers(noise, seed=1000 * seed + member))
            referred = right if grounded else astray
            rewards.append(run_local(verifier.verify(env.sample, referred, answer)).reward)
            optimal.append(grounded and member % 2 == 0)
        pools.append((np.array(rewards), np.array(optimal)))
    return pools


def selected(noise: float, rng: np.random.Generator) -> dict[int, float]:
    """Return the share of groups of each size whose best response is Pareto-optimal."""
    hits = defaultdict(list)
    for rewards, optimal in score_pool(noise):
        for size in SIZES:
            drawn = rng.integers(0, POOL, (GROUPS, size))
            jitter = rng.uniform(0, 1e-9, drawn.shape)
            best = drawn[np.arange(GROUPS), (rewards[drawn] + jitter).argmax(axis=1)]
            hits[size].append(optimal[best].mean())
    return {size: float(np.mean(shares)) for size, shares in hits.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("group_size.png"))
    out = parser.parse_args().out
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    rng = np.random.default_rng(0)
    for noise, color in zip(NOISES, ("tab:blue", "tab:orange", "tab:red"), strict=True):
        sigma = max(float(np.sqrt(noise * (1 - noise))), _LEAST_SIGMA)
        rate = min(exploitation_rate(DELTA, sigma, COMPONENTS), 30.0)
        bounds = [pareto_bound(size, BETA, rate) for size in SIZES]
        found = selected(noise, rng)
        print(f"noise {noise}: C m {rate:.2f}, size by the bound {best_group_size(BETA, rate)}")
        for size, bound in zip(SIZES, bounds, strict=True):
            print(f"  n {size:2d}: selected {found[size]:.3f}, H {bound:.3f}")
        axes.plot(SIZES, [found[size] for size in SIZES], color=color, label=f"noise {noise}")
        axes.plot(SIZES, bounds, color=color, linestyle="--", label=f"H(n), C m = {rate:.1f}")
    axes.set_xlabel("group size n")
    axes.set_ylabel("Pareto-optimal response selected")
    axes.legend()
    figure.tight_layout()
    figure.savefig(out, dpi=120)
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
