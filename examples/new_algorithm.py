"""An algorithm of your own, in a page: OPO, trained by the same trainer as GRPO.

    python examples/new_algorithm.py --steps 3

On-policy RL with the optimal reward baseline (Hao et al., arXiv:2505.23585): the baseline is the
group's mean reward, each episode weighted by the tokens that were sampled, as this has the least
variance; the rest is REINFORCE, one step on every batch. Without --model it trains a tiny model
with random weights, to show that it runs; `visenv train` makes one that has seen demonstrations,
in runs/<name>/warm-up/checkpoints/<step>/policy. The usual ones: `visenv.algos.policy_gradient`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from typing_extensions import override

import visenv  # noqa: F401 - registers the environments
from visenv.algorithm import Algorithm, Batch, Loss
from visenv.algos.trainer import OptimizationConfig, RolloutConfig, Trainer, TrainerConfig
from visenv.registration import load
from visenv.types import Group


class OPO(Algorithm):
    """REINFORCE with the length-weighted mean reward of the group as baseline."""

    @override
    def advantages(self, groups: Sequence[Group]) -> list[list[NDArray[np.float64]]]:
        """How much better each episode did than the baseline of its group."""
        return [
            [np.asarray(episode.reward - baseline(group)) for episode in group] for group in groups
        ]

    @override
    def loss(self, batch: Batch) -> Loss:
        """``-A log p(episode)``: the log-probabilities of an episode's tokens are summed."""
        zero = batch.logprobs.new_zeros(())
        logprobs = torch.where(batch.mask, batch.logprobs * batch.advantages, zero)
        entropy = torch.where(batch.mask, batch.entropy, zero).sum() / max(batch.total_tokens, 1)
        return Loss(-logprobs.sum() / batch.total_segments, {"entropy": float(entropy)})


def baseline(group: Group) -> float:
    """``Σ tokens · r / Σ tokens`` over the episodes of a group."""
    tokens = [sum(int(each.loss_mask.sum()) for each in episode.segments) for episode in group]
    weighted = sum(count * each.reward for count, each in zip(tokens, group, strict=True))
    return weighted / max(sum(tokens), 1)


@dataclass(frozen=True)
class Args:
    """Train a small vision-language model to zoom, with OPO."""

    folder: Path = Path("runs/opo")
    """Where metrics, episodes and checkpoints go."""
    model: Path | None = None
    """A checkpoint to begin with; a tiny one with random weights by default."""
    steps: int = 100
    """Steps to train."""
    prompts_per_step: int = 4
    """Scenes in a step."""
    num_generations: int = 4
    """Episodes on each scene."""
    learning_rate: float = 3e-4
    """Of AdamW."""
    threads: int = 2
    """CPU threads."""
    seed: int = 0
    """Decides everything."""
    resume: bool = False
    """Go on with what the folder holds."""


def main(args: Args) -> None:
    """Train, and say where to look."""
    model = args.model or args.folder / "model"
    if not model.exists():
        load("model", "tiny")(model, seed=args.seed)
    config = TrainerConfig(
        steps=args.steps,
        seed=args.seed,
        rollouts=RolloutConfig(
            prompts_per_step=args.prompts_per_step,
            num_generations=args.num_generations,
            max_tokens=32,
        ),
        optimization=OptimizationConfig(learning_rate=args.learning_rate),
    )
    policy = load("policy", "transformers")(model, threads=args.threads)
    trainer = Trainer(policy, OPO(), config, folder=args.folder, resume=args.resume)
    trainer.train(lambda: gym.make("visenv/ZoomVQA-v0", preset="tiny"))
    print(f"See it all: visenv view {args.folder}")


if __name__ == "__main__":
    main(tyro.cli(Args, description=__doc__))
