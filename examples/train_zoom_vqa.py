"""Groundlight's recipe: GRPO alone teaches Qwen2.5-VL-3B to zoom into an image before it answers.

    python examples/train_zoom_vqa.py --tiny                    # minutes on a CPU, no downloads
    accelerate launch --config_file configs/zero3.yaml examples/train_zoom_vqa.py \
        --data textvqa:<folder> --hard hard.jsonl --sampler vllm

The defaults are the hyper-parameters of arXiv 2506.14821 (sections 2 and 3.1) and, where it is
silent, of its public code; docs/training.md tells how to launch them on one GPU or many. hard.jsonl
holds the questions that the untrained model answers badly without a tool, as the paper has it:

    visenv data difficulty ZoomVQA-v0 --by asking --data textvqa:<folder> --out hard.jsonl \
        --policy transformers --policy-option model=Qwen/Qwen2.5-VL-3B-Instruct

`--tiny` builds a small model and first warms it up on procedural scenes, with a demonstrator who
often answers without looking; GRPO then finds out that looking pays. A run that was stopped goes on
when it is started again with the same words.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import tyro

import visenv  # noqa: F401 - registers the environments
from visenv.algos.policy_gradient import GRPO
from visenv.algos.sft import WarmUp
from visenv.algos.trainer import Optimisation, Rollouts, Trainer, TrainerConfig
from visenv.algos.trainer.processes import is_first
from visenv.curation.difficulty import Subset
from visenv.curation.lines import JsonLines
from visenv.data.open import open_data
from visenv.data.source import Source
from visenv.makers import find_model
from visenv.makers import settings as keyword_arguments
from visenv.policies.transformers import LoraSettings
from visenv.policy import EnginePolicy, TrainablePolicy
from visenv.registration import load
from visenv.rollout import Env, Executor, ThreadExecutor

PAPER = TrainerConfig(
    steps=800,
    # The global batch of 4 is 3 GPUs x 1 episode x 4 accumulated: 4 questions, 3 episodes of each.
    rollouts=Rollouts(groups=4, group_size=3, temperature=1.0, max_tokens=2048, sleep=True),
    optimisation=Optimisation(
        learning_rate=1e-6,
        schedule="cosine",
        warmup_steps=10,
        beta1=0.9,
        beta2=0.98,
        weight_decay=0.0,
        max_grad_norm=1.0,
    ),
)
"""Section 3.1; one optimiser step for each batch. What it does not name has TRL's default."""

PAPER_GRPO = GRPO(clip_low=0.2, clip_high=0.28, kl_weight=0.0, scale="group")
"""Clip-higher, no reference; the mean of each sequence, then of those."""


@dataclass(frozen=True)
class ZoomVQA:
    """Train a model to zoom into an image before it answers, as Groundlight does."""

    folder: Path = Path("runs/zoom-vqa")
    """Where everything goes."""
    model: str = "Qwen/Qwen2.5-VL-3B-Instruct"
    """A checkpoint folder, a hub name, or the name of a tiny model."""
    data: str = "procedural"
    """The paper's is textvqa:<folder>."""
    hard: Path | None = None
    """Rows of the data to train on, as `visenv data difficulty` writes them; by default all."""
    preset: str | None = None
    """Preset of the environment: by default the paper's "train" for a data set, else "scenes"."""
    sampler: Literal["transformers", "vllm"] = "transformers"
    """Who samples: the model that is trained, or vLLM, which is sent its weights."""
    engine: tuple[str, ...] = ("gpu_memory_utilization=0.4",)
    """Further arguments of vLLM, key=value."""
    environments: Literal["here", "threads", "ray"] = "here"
    """Where they run: ray places them on any machine of its cluster."""
    device: str = "cuda"
    """Device of the policy; under accelerate launch each process has its own."""
    dtype: str = "bfloat16"
    """Of the weights."""
    freeze_vision: bool = False
    """Leave the vision tower as it is; its features are then kept. The paper does not say."""
    lora: int = 0
    """Rank of adapters that learn in the language model's place; 0 trains all of it."""
    gradient_checkpointing: bool = True
    """Compute activations twice, and keep few of them."""
    warm_up: WarmUp = field(default_factory=WarmUp)
    """Before RL."""
    grpo: GRPO = PAPER_GRPO
    """The algorithm of RL."""
    trainer: TrainerConfig = PAPER
    """Steps of RL, sampling, optimisation, what is saved."""


TINY = ZoomVQA(
    folder=Path("runs/zoom-vqa-tiny"),
    model="tiny",
    preset="tiny",
    engine=(),
    device="cpu",
    dtype="float32",
    gradient_checkpointing=False,
    warm_up=WarmUp(
        demonstrations=256,
        trainer=TrainerConfig(
            steps=110, optimisation=Optimisation(2e-3, warmup_steps=30, beta2=0.95)
        ),
    ),
    trainer=TrainerConfig(
        steps=20,
        rollouts=Rollouts(groups=8, group_size=8, max_tokens=28),
        optimisation=Optimisation(1e-4, schedule="linear", warmup_steps=5, beta2=0.99),
    ),
)


class Run:
    """What `ZoomVQA` tells, done; what was done before is loaded."""

    def __init__(self, settings: ZoomVQA) -> None:
        self.settings = settings
        rank = os.environ.get("RANK", "0")  # each process builds a tiny model of its own
        model = find_model(settings.model, settings.folder / f"model-{rank}")
        gpu = os.environ.get("LOCAL_RANK")
        self.policy: TrainablePolicy[Any] = load("policy", "transformers")(
            model,
            device=f"cuda:{gpu}" if gpu and settings.device == "cuda" else settings.device,
            dtype=settings.dtype,
            freeze_vision=settings.freeze_vision,
            lora=LoraSettings(settings.lora) if settings.lora else None,
            gradient_checkpointing=settings.gradient_checkpointing,
        )
        self.sampler: EnginePolicy[Any] | None = None
        if settings.sampler == "vllm":
            options = keyword_arguments(settings.engine)
            self.sampler = load("policy", "vllm")(model, dtype=settings.dtype, options=options)
        self.make_env = self._env_maker()

    def __call__(self) -> None:
        """Warm up where asked for, train, and say what came of it."""
        settings, folder = self.settings, self.settings.folder / "rl"
        settings.warm_up.apply(self.policy, self.make_env, settings.folder / "warm-up")
        trainer = Trainer(
            self.policy,
            settings.grpo,
            settings.trainer,
            folder=folder,
            resume=folder.is_dir(),
            sampler=self.sampler,
            executor=make_executor(settings.environments),
        )
        trainer.train(self.make_env)
        if self.sampler is not None:
            self.sampler.close()
        if is_first():
            report(folder)

    def _env_maker(self) -> Callable[[], Env]:
        """The paper's reward and its one zoom are the environment's defaults."""
        data: str | Source = self.settings.data
        if self.settings.hard is not None:
            rows = [line.row["index"] for line in JsonLines(self.settings.hard)]
            source: Any = open_data(self.settings.data)
            data = Subset(source, rows)
        return partial(gym.make, "visenv/ZoomVQA-v0", data=data, preset=self.settings.preset)


def make_executor(environments: str) -> Executor | None:
    """What calls the environments; None calls them one after the other, always alike."""
    if environments == "ray":
        from visenv.rollout.ray_executor import RayExecutor

        return RayExecutor()
    return ThreadExecutor() if environments == "threads" else None


def report(folder: Path) -> None:
    """The reward of the first and the last steps, and where everything is."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text("utf-8").splitlines()]
    few = max(1, len(rows) // 5)
    for when, some in (("first", rows[:few]), ("last", rows[-few:])):
        reward, zoomed = (
            np.mean([row[key] for row in some]) for key in ("reward", "tools/used_tools")
        )
        print(f"{when} {few} steps: reward {reward:.3f} of at most 2.1, used the tool {zoomed:.0%}")
    weights = max((folder / "checkpoints").glob("step_*")) / "policy"
    print(f"Look at it: visenv view {folder.parent}")
    print(f"Score it: visenv eval ZoomVQA-v0 --policy transformers --policy-option model={weights}")


def main(words: Sequence[str] | None = None) -> None:
    """Read the settings, `--tiny` first, and run."""
    given = list(sys.argv[1:] if words is None else words)
    default = TINY if "--tiny" in given else ZoomVQA()
    given = [word for word in given if word != "--tiny"]
    Run(tyro.cli(ZoomVQA, args=given, default=default, description=__doc__))()


if __name__ == "__main__":
    main()
