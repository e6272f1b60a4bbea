"""Runs the toy trainer in folders in which something fails, and compares the results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from typing_extensions import override

from tests.algos import toy
from tests.algos.runs import Sloped, metrics
from visenv.algos.trainer import (
    Callback,
    HeldOut,
    OptimizationConfig,
    RolloutConfig,
    SavingConfig,
    Trainer,
    TrainerConfig,
    TrainerState,
)

HELD_OUT = HeldOut({"echo": toy.Echo}, {"echo": "reward"}, episodes=2, max_tokens=3, every=2)


class AtStep(Callback):
    """Calls a function with the folder of a run after a step, while the run goes on."""

    def __init__(self, step: int, work: Callable[[Path], object]) -> None:
        self._step, self._work = step, work

    @override
    def on_step_end(self, state: TrainerState, metrics: Any, groups: Any) -> None:
        if state.step == self._step:
            self._work(state.folder)


def config(steps: int = 4, **optimization: Any) -> TrainerConfig:
    """Return the settings of a run with a checkpoint after each step."""
    return TrainerConfig(
        steps=steps,
        rollouts=RolloutConfig(prompts_per_step=2, num_generations=2, max_tokens=3),
        optimization=OptimizationConfig(learning_rate=0.02, **optimization),
        saving=SavingConfig(checkpoint_every=1, keep_checkpoints=2, episodes_every=1),
    )


def train(
    folder: Path,
    steps: int = 4,
    *,
    resume: bool = False,
    trackers: tuple[str, ...] = (),
    callbacks: tuple[Callback, ...] = (),
    make_env: Callable[[], Any] = toy.Echo,
    **optimization: Any,
) -> toy.ToyPolicy:
    """Run or resume the steps, with a reference and evaluations; return the policy."""
    policy = toy.ToyPolicy(dropout=0.3)
    Trainer(
        policy,
        Sloped(kl_coef=0.1),
        config(steps, **optimization),
        folder=folder,
        resume=resume,
        held_out=HELD_OUT,
        callbacks=callbacks,
        trackers=trackers,
    ).train(make_env)
    return policy


def results(folder: Path, policy: toy.ToyPolicy) -> tuple[Any, ...]:
    """Return all results of a run that must not depend on an interruption."""
    evaluations = (folder / "evaluations.jsonl").read_text()
    return policy.weights(), policy.version, metrics(folder), evaluations
