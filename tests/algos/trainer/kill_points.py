"""Trains in runs that are killed at different points; test_kill.py starts this program.

Arguments: a folder, and the names of the points. Every run is a fork of this process, so that
PyTorch is loaded once. The parent process computes nothing with tensors.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # otherwise the first optimizer step loads it in every fork

from tests.algos import toy
from tests.algos.runs import Sloped
from visenv.algos.trainer import (
    HeldOut,
    OptimizationConfig,
    RolloutConfig,
    SavingConfig,
    Trainer,
    TrainerConfig,
)
from visenv.algos.trainer import checkpoint as checkpoint_module
from visenv.algos.trainer import evaluation as evaluation_module
from visenv.algos.trainer.metrics import MetricsLog
from visenv.algos.trainer.reference import ReferencePolicy

CONFIG = TrainerConfig(
    steps=5,
    rollouts=RolloutConfig(prompts_per_step=3, num_generations=4, max_tokens=3),
    optimization=OptimizationConfig(
        learning_rate=0.02,
        schedule="cosine",
        num_minibatches=2,
        ref_sync_steps=3,
        max_grad_norm_ratio=50.0,
    ),
    saving=SavingConfig(checkpoint_every=2, keep_checkpoints=1, episodes_every=2),
)

HELD_OUT = HeldOut({"echo": toy.Echo}, {"echo": "reward"}, episodes=4, max_tokens=3, every=2)


def train(folder: Path, resume: bool = False) -> Any:
    policy = toy.ToyPolicy(dropout=0.3)
    algorithm, sampler = Sloped(kl_coef=0.1), toy.ToyEngine()
    trainer = Trainer(
        policy,
        algorithm,
        CONFIG,
        folder=folder,
        resume=resume,
        sampler=sampler,
        held_out=HELD_OUT,
    )
    trainer.train(toy.Echo)
    return policy


def dying(owner: Any, name: str, call: int, after: bool = False) -> Callable[[], None]:
    """Return a function that makes this process kill itself before or after call number `call`.

    Calls of the function `name` of `owner` are counted from 1.
    """

    def install() -> None:
        original = getattr(owner, name)
        calls = 0

        def counted(*arguments: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == call and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            result = original(*arguments, **options)
            if calls == call:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        setattr(owner, name, counted)

    return install


def removing(name: str) -> Callable[[], None]:
    """Return a function that makes this process kill itself while it removes a checkpoint."""

    def install() -> None:
        original = shutil.rmtree

        def half(path: Path, *arguments: Any, **options: Any) -> None:
            if path.name == name and path.parent.name == "checkpoints":
                (path / "state.json").unlink()
                os.kill(os.getpid(), signal.SIGKILL)
            original(path, *arguments, **options)

        shutil.rmtree = half  # type: ignore[assignment]

    return install


def points() -> dict[str, Callable[[], None]]:
    """Return the points at which a run is killed, as functions that install the kill, by name.

    Checkpoints are saved after the second, fourth and last step.
    """
    return {
        "sampling": dying(toy.Echo, "step", 60),
        "scoring": dying(toy.Scorer, "forward", 7),
        "between two updates of a step": dying(torch.optim.AdamW, "step", 5, after=True),
        "sending weights": dying(toy.ToyEngine, "load", 4),
        "having sent them": dying(toy.ToyEngine, "load", 4, after=True),
        "renewing the reference": dying(ReferencePolicy, "renew", 2, after=True),
        "logging": dying(MetricsLog, "write", 4, after=True),
        "beginning an evaluation": dying(evaluation_module, "play_held_out", 1),
        "having played held-out episodes": dying(evaluation_module, "flattened", 1),
        "having logged an evaluation": dying(MetricsLog, "write", 3, after=True),
        "naming the best weights": dying(evaluation_module, "publish", 1),
        "having named the best weights": dying(evaluation_module, "publish", 1, after=True),
        "saving the first checkpoint": dying(toy.ToyPolicy, "save", 2, after=True),
        "saving the best weights": dying(toy.ToyPolicy, "save", 3, after=True),
        "saving a reference": dying(toy.ToyPolicy, "save", 4, after=True),
        "saving the second checkpoint": dying(toy.ToyPolicy, "save", 5, after=True),
        "naming a checkpoint": dying(checkpoint_module, "publish", 2),
        "having named it": dying(checkpoint_module, "publish", 2, after=True),
        "removing an old one": removing("step_000002"),
    }


def kill_each(
    points: Mapping[str, Callable[[], None]], train: Callable[[Path], None], folder: Path
) -> None:
    """Train in one fork for each point and check that the fork is killed.

    Args:
        points: Functions that install the kill of the process, by the name of the point.
        train: Trains in the given folder.
        folder: Parent of the folders of the runs, which are named after their points.
    """
    for name, install in points.items():
        print(name, flush=True)
        child = os.fork()
        if child == 0:
            install()
            train(folder / name)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"nothing died while {name}"


if __name__ == "__main__":
    chosen = {name: points()[name] for name in sys.argv[2:]}
    kill_each(chosen, train, Path(sys.argv[1]))
