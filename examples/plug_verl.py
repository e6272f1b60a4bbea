"""visenv inside verl: its agent loop plays our episodes, its workers sample and train.

    python examples/plug_verl.py --model Qwen/Qwen2.5-VL-3B-Instruct          # prints the command
    python examples/plug_verl.py --model Qwen/Qwen2.5-VL-3B-Instruct --run    # and runs it

Two files are all that verl needs: a data set whose rows name the samples, and a list of agent loops
that says which environment is played. Both are written here, and then verl is started as ever. verl
takes older transformers than the rest of visenv: see docs/plug_ins.md for an environment that fits.
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
    """A checkpoint or hub name of a Qwen-VL model."""
    folder: Path = Path("runs/plug_verl")
    """Where the files for verl go."""
    environment: str = "visenv/ZoomVQA-v0"
    """What is played."""
    preset: str = "scenes"
    """Preset of the environment."""
    steps: int = 100
    """Steps to train."""
    prompts_per_step: int = 64
    """Samples in a step."""
    num_generations: int = 8
    """Episodes on each sample."""
    turn_tokens: int = 512
    """Most tokens in a turn."""
    gpus: int = 8
    """GPUs of this machine."""
    run: bool = False
    """Whether to start verl, or only to say how."""


def write_rows(path: Path, seeds: Iterable[int]) -> None:
    """A data set of verl: one row for each group."""
    datasets.Dataset.from_list(rows(seeds)).to_parquet(str(path))


def write_loops(path: Path, args: Args) -> None:
    """The agent loops that rows can name; JSON is YAML."""
    loop = {
        "name": "visenv",
        "_target_": "visenv.algos.bridges.verl.loop.VisenvAgentLoop",
        "env_id": args.environment,
        "env_options": {"preset": args.preset},
        "turn_tokens": args.turn_tokens,
    }
    path.write_text(json.dumps([loop], indent=1), encoding="utf-8")


def settings(args: Args) -> dict[str, object]:
    """What differs from verl's defaults."""
    rollout = "actor_rollout_ref.rollout"
    return {
        "algorithm.adv_estimator": "grpo",
        "data.train_files": args.folder / "train.parquet",
        "data.val_files": args.folder / "val.parquet",
        "data.train_batch_size": args.prompts_per_step,
        "data.max_prompt_length": 4096,
        "data.max_response_length": 4096,  # all turns, the images of later ones included
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
    """Write the files; say how verl is started, or start it."""
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
