"""Trains by your own RL code at three levels: an algorithm, episodes, or the Gymnasium API.

    python examples/plug_new_algorithm.py --level algorithm     # an Algorithm for the trainer
    python examples/plug_new_algorithm.py --level episodes      # tensors for your PyTorch loop
    python examples/plug_new_algorithm.py --level gymnasium     # reset, step, texts; no model

Each level is one function below. The algorithm here changes an algorithm of visenv;
examples/new_algorithm.py implements one from scratch. Without --model, the first two levels use a
tiny model with random weights, to show that they run. plug_trl.py and plug_verl.py use TRL and
verl.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from typing_extensions import override

import visenv  # noqa: F401 - registers the environments
from visenv.algos.policy_gradient import GRPO
from visenv.algos.trainer import RolloutConfig, Trainer, TrainerConfig
from visenv.registration import load
from visenv.rollout import Collector
from visenv.seeding import seeds
from visenv.types import Episode, Group, Sampling

ENVIRONMENT = "visenv/ZoomVQA-v0"


@dataclass(frozen=True)
class Args:
    """Train a model to zoom with your own reinforcement learning code."""

    level: Literal["algorithm", "episodes", "gymnasium"] = "algorithm"
    """Level at which your code starts."""
    folder: Path = Path("runs/plug_new_algorithm")
    """Folder for the tiny model and the outputs of the trainer."""
    model: Path | None = None
    """Initial checkpoint; by default a tiny model with random weights."""
    steps: int = 50
    """Number of training steps."""
    prompts_per_step: int = 4
    """Number of scenes in a step."""
    num_generations: int = 4
    """Number of episodes of each scene."""
    learning_rate: float = 3e-4
    """Learning rate of AdamW."""


def make_env() -> gym.Env[Any, str]:
    """Return an environment."""
    return gym.make(ENVIRONMENT, preset="tiny")


def make_policy(args: Args) -> Any:
    """Return the policy that plays and is trained."""
    model = args.model or args.folder / "model"
    if not model.exists():
        load("model", "tiny")(model, make_env)
    return load("policy", "transformers")(model, threads=1)


# --------------------------------------- an Algorithm: two methods, or a change to one of visenv's


@dataclass(frozen=True, kw_only=True)
class BetterHalf(GRPO):
    """Changes GRPO to train only on episodes that are better than the mean of their group."""

    @override
    def estimate(self, groups: Sequence[Group]) -> list[list[NDArray[np.float64]]]:
        """Return the advantages of GRPO, with negative advantages set to 0."""
        return [[np.maximum(each, 0) for each in group] for group in super().estimate(groups)]


def with_our_trainer(args: Args) -> None:
    """Train with the trainer, which samples, makes micro-batches, and saves checkpoints."""
    config = TrainerConfig(
        steps=args.steps,
        rollouts=RolloutConfig(
            prompts_per_step=args.prompts_per_step,
            num_generations=args.num_generations,
            max_tokens=32,
        ),
    )
    Trainer(make_policy(args), BetterHalf(), config, folder=args.folder / "run").train(make_env)


# ----------------------------------------------------------- episodes: tensors for your own loop


def tensors(episode: Episode, policy: Any) -> dict[str, torch.Tensor]:
    """Return an episode as inputs of a stock transformers model, with a mask of sampled tokens."""
    (segment,) = episode.segments
    ids = torch.from_numpy(segment.token_ids).long()[None]
    pictures = [image.pixels.copy() for image in episode.images]
    seen = policy.codec.processor.image_processor(images=pictures, return_tensors="pt")
    return {
        "input_ids": ids,
        "mm_token_type_ids": (ids == policy.codec.image_id).int(),
        "sampled": torch.from_numpy(segment.loss_mask)[None],
        **seen,
    }


def with_your_loop(args: Args) -> None:
    """Train by REINFORCE with the mean of the group as baseline, in plain PyTorch."""
    policy = make_policy(args)
    model = policy.network.model  # the transformers model from whose weights the policy samples
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    collector = Collector(make_env, policy, Sampling(temperature=1.0, max_tokens=32))
    for step in range(args.steps):
        drawn = seeds(np.random.SeedSequence(step), args.prompts_per_step)
        groups = collector.groups(drawn, args.num_generations)
        rewards = [episode.reward for group in groups for episode in group]
        optimizer.zero_grad()
        for group in groups:
            played = [episode for episode in group if episode.status != "aborted"]
            mean = float(np.mean([episode.reward for episode in played] or [0.0]))
            for episode in played:
                inputs = tensors(episode, policy)
                sampled = inputs.pop("sampled")[:, 1:]
                logprobs = torch.log_softmax(model(**inputs).logits[:, :-1], -1)
                said = logprobs.gather(2, inputs["input_ids"][:, 1:, None])[..., 0]
                loss = -(episode.reward - mean) * said[sampled].sum() / len(rewards)
                loss.backward()
        optimizer.step()
        policy.updated()  # clears the caches that depend on the old weights
        print(f"step {step + 1}: reward {np.mean(rewards):.3f}")
    collector.close()


# ---------------------------------------------------------------------- Gymnasium: texts in and out

LOOKS = [
    f"<think> look closer </think><tool>\nname: zoom\nkeypoint: [{x}, {y}]\n</tool>"
    for x in (16, 48, 80)
    for y in (16, 48, 80)
]
ANSWERS = [f"<think> now clear </think><answer>{word}</answer>" for word in ("red", "left", "2")]
ANSWERS.append("it is red")


def with_gymnasium(args: Args) -> None:
    """Train a learner without a model, which selects a first turn and an answer from lists."""
    env = make_env()
    rng = np.random.default_rng(0)
    likings = [np.zeros(len(LOOKS)), np.zeros(len(ANSWERS))]
    baseline = 0.0
    for step in range(args.steps):
        total = 0.0
        for episode in range(args.prompts_per_step * args.num_generations):
            seen, info = env.reset(seed=1000 * step + episode)
            taken: list[tuple[int, int]] = []
            reward, over = 0.0, False
            while not over:
                turn = len(taken)
                assert seen["text"].count("<image>") == len(
                    seen["images"]
                )  # what a model would read
                chances = np.exp(likings[turn]) / np.exp(likings[turn]).sum()
                choice = int(rng.choice(len(chances), p=chances))
                taken.append((turn, choice))
                action = (LOOKS, ANSWERS)[turn][choice]
                seen, paid, terminated, truncated, info = env.step(action)
                reward, over = reward + float(paid), terminated or truncated
            if info["aborted"]:
                continue  # a service failed, so there is nothing to learn
            for turn, choice in taken:
                gradient = -np.exp(likings[turn]) / np.exp(likings[turn]).sum()
                gradient[choice] += 1
                likings[turn] += 0.1 * (reward - baseline) * gradient
            baseline += 0.02 * (reward - baseline)
            total += reward / (args.prompts_per_step * args.num_generations)
        print(f"step {step + 1}: reward {total:.3f}")
    env.close()


def main(args: Args) -> None:
    """Train at the selected level."""
    levels = {
        "algorithm": with_our_trainer,
        "episodes": with_your_loop,
        "gymnasium": with_gymnasium,
    }
    levels[args.level](args)


if __name__ == "__main__":
    main(tyro.cli(Args, description=__doc__))
