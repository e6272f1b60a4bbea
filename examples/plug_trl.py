"""Trains with TRL's GRPOTrainer in one of two ways.

    python examples/plug_trl.py --model Qwen/Qwen2.5-VL-3B-Instruct
    python examples/plug_trl.py --native --model Qwen/Qwen3-VL-2B-Instruct

In the first way, visenv plays the episodes and passes them to TRL's trainer. It supports every
environment, with images in any turn. In the second way, TRL's own loop calls the tools of an
environment. It supports only environments with JSON tool calls, and models whose chat template
supports tools (that of Qwen2.5-VL does not); docs/plug_ins.md lists the limitations of TRL's loop.
Without --model, a tiny model with random weights shows that both ways run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # environment_factory is experimental in TRL

import gymnasium as gym
import tyro
from transformers import AutoModelForImageTextToText, AutoProcessor
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

import visenv  # noqa: F401 - registers the environments
from visenv.algos.bridges.trl import VisenvGRPOTrainer, environment_factory, native_reward, rows
from visenv.registration import load


@dataclass(frozen=True)
class Args:
    """Train with TRL."""

    native: bool = False
    """Whether TRL's own loop plays (ArmDoc) instead of visenv (ZoomVQA)."""
    model: str = ""
    """Checkpoint or hub name; by default a tiny model."""
    folder: Path = Path("runs/plug_trl")
    """Folder for the outputs of TRL and the tiny model."""
    steps: int = 20
    """Number of training steps."""
    prompts_per_step: int = 2
    """Number of samples in a step."""
    num_generations: int = 4
    """Number of episodes of each sample."""
    completion_tokens: int = 256
    """Maximum number of tokens after the prompt, including those of the environment (only with
    TRL's own loop)."""
    turn_tokens: int = 32
    """Maximum number of sampled tokens in a turn (only if visenv plays)."""
    cuda: bool = False
    """Whether to train on a GPU."""


def config(args: Args, **more: Any) -> GRPOConfig:
    """Return the configuration of TRL, which has no special settings."""
    return GRPOConfig(
        output_dir=str(args.folder / "trl"),
        max_steps=args.steps,
        num_generations=args.num_generations,
        per_device_train_batch_size=args.prompts_per_step * args.num_generations,
        max_completion_length=args.completion_tokens,
        learning_rate=1e-6 if args.model else 3e-4,
        loss_type="dapo",
        epsilon_high=0.28,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=not args.cuda,
        bf16=args.cuda,
        **more,
    )


def find_model(args: Args, make_env: Callable[[], gym.Env[Any, str]]) -> str:
    """Return the selected model, or a tiny model for an environment."""
    folder = args.folder / "model"
    if not args.model and not folder.exists():
        load("model", "tiny")(folder, make_env)
    return args.model or str(folder)


def ours(args: Args) -> GRPOTrainer:
    """Return a trainer in which visenv plays the episodes, and TRL does everything else."""
    preset = "scenes" if args.model else "tiny"
    make_env = partial(gym.make, "visenv/ZoomVQA-v0", preset=preset)
    device = "cuda" if args.cuda else "cpu"
    policy = load("policy", "transformers")(find_model(args, make_env), device=device)
    return VisenvGRPOTrainer(
        policy,
        make_env,
        config(args),
        rows(range(10_000)),
        turn_tokens=args.turn_tokens,
    )


def native(args: Args) -> GRPOTrainer:
    """Return a trainer in which TRL plays, with the class of `environment_factory` as tools."""
    preset: dict[str, Any] = {} if args.model else {"preset": "tiny"}
    environment = environment_factory("visenv/ArmDoc-v0", **preset)
    name = find_model(args, partial(gym.make, "visenv/ArmDoc-v0", **preset))
    processor = AutoProcessor.from_pretrained(name)
    if not args.model:  # the template of the tiny model does not support tools
        from trl.chat_template_utils import qwen3_vl_chat_template

        processor.chat_template = qwen3_vl_chat_template
    return GRPOTrainer(
        AutoModelForImageTextToText.from_pretrained(name),
        reward_funcs=native_reward,
        args=config(args, max_tool_calling_iterations=environment.turns - 1),
        train_dataset=rows(range(10_000)),
        processing_class=processor,
        environment_factory=environment,
    )


def main(args: Args) -> None:
    """Train, and print the rewards."""
    trainer = native(args) if args.native else ours(args)
    trainer.train()
    rewards = [row["reward"] for row in trainer.state.log_history if "reward" in row]
    print("rewards:", " ".join(f"{reward:.3f}" for reward in rewards))


if __name__ == "__main__":
    main(tyro.cli(Args, description=__doc__))
