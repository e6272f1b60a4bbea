"""Trains with verl, whose agent loop plays visenv episodes and whose workers sample and train.

    python examples/plug_verl.py --model Qwen/Qwen2.5-VL-3B-Instruct          # prints the command
    python examples/plug_verl.py --model Qwen/Qwen2.5-VL-3B-Instruct --run    # and runs it

verl needs two files: a data set whose rows determine the samples, and a list of agent loops that
names the environment. This program writes both files, and then starts verl in the usual way. verl
needs an older version of transformers than the rest of visenv; docs/plug_ins.md describes a virtual
environment with this version.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import datasets
import tyro

from visenv.algos.bridges.verl import rows


@dataclass(frozen=True)
class Args:
    """Train with verl's GRPO."""

    model: str
    """Checkpoint or hub name of a Qwen-VL model."""
    folder: Path = Path("runs/plug_verl")
    """Folder for the files of verl."""
    environment: str = "visenv/ZoomVQA-v0"
    """Environment id."""
    preset: str = "scenes"
    """Preset of the environment."""
    steps: int = 100
    """Number of training steps."""
    prompts_per_step: int = 64
    """Number of samples in a step."""
    num_generations: int = 8
    """Number of episodes of each sample."""
    turn_tokens: int = 512
    """Maximum number of sampled tokens in a turn."""
    gpus: int = 8
    """Number of GPUs of this machine."""
    run: bool = False
    """Whether to start verl; by default the command is only printed."""


def write_rows(path: Path, seeds: Iterable[int]) -> None:
    """Write a data set of verl with one row for each group."""
    datasets.Dataset.from_list(rows(seeds)).to_parquet(str(path))


def write_loops(path: Path, args: Args) -> None:
    """Write the list of agent loops as JSON, which is valid YAML."""
    loop = {
        "name": "visenv",
        "_target_": "visenv.algos.bridges.verl.loop.VisenvAgentLoop",
        "env_id": args.environment,
        "env_options": {"preset": args.preset},
        "turn_tokens": args.turn_tokens,
    }
    path.write_text(json.dumps([loop], indent=1), encoding="utf-8")


def settings(args: Args) -> dict[str, object]:
    """Return the settings that differ from verl's defaults."""
    rollout = "actor_rollout_ref.rollout"
    return {
        "algorithm.adv_estimator": "grpo",
        "data.train_files": args.folder / "train.parquet",
        "data.val_files": args.folder / "val.parquet",
        "data.train_batch_size": args.prompts_per_step,
        "data.max_prompt_length": 4096,
        "data.max_response_length": 4096,  # all turns, including the images of later turns
        "actor_rollout_ref.model.path": args.model,
        "actor_rollout_ref.actor.use_kl_loss": False,
        "actor_rollout_ref.actor.ppo_mini_batch_size": args.prompts_per_step,
        "actor_rollout_ref.actor.use_dynamic_bsz": True,
        f"{rollout}.name": "vllm",
        f"{rollout}.n": args.num_generations,
        f"{rollout}.calculate_log_probs": True,
        f"{rollout}.log_prob_use_dynamic_bsz": True,
        f"{rollout}.agent.agent_loop_config_path": args.folder / "loops.yaml",
        "trainer.n_gpus_per_node": args.gpus,
        "trainer.total_training_steps": args.steps,
        "trainer.logger": "[console]",
        "trainer.val_before_train": False,
    }


def main(args: Args) -> None:
    """Write the files, and print the command that starts verl or run it."""
    args.folder.mkdir(parents=True, exist_ok=True)
    write_rows(args.folder / "train.parquet", range(args.steps * args.prompts_per_step))
    write_rows(args.folder / "val.parquet", range(10**9, 10**9 + 64))
    write_loops(args.folder / "loops.yaml", args)
    command = [sys.executable, "-m", "verl.trainer.main_ppo"]
    command += [f"{name}={value}" for name, value in settings(args).items()]
    print(shlex.join(command), flush=True)
    if args.run:
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main(tyro.cli(Args, description=__doc__))
