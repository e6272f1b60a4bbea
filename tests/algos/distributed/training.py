"""Trains on several processes: complete runs, runs killed while saving, and resumed runs."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import gymnasium as gym
import numpy as np
import torch
from typing_extensions import override

import visenv  # noqa: F401 - registers the environments
from tests.algos import toy
from tests.algos.runs import Sloped
from visenv.algos.policy_gradient import GRPO
from visenv.algos.trainer import (
    Callback,
    HeldOut,
    OptimizationConfig,
    RolloutConfig,
    SavingConfig,
    Trainer,
    TrainerConfig,
    checkpoint,
    loop,
)
from visenv.algos.trainer.backend import Accept, TrainingBackend
from visenv.algos.trainer.ddp import make_backend
from visenv.launcher import is_first
from visenv.registration import load
from visenv.rollout import Mixture

CONFIG = TrainerConfig(
    steps=3,
    rollouts=RolloutConfig(prompts_per_step=3, num_generations=2, max_tokens=6),
    optimization=OptimizationConfig(
        learning_rate=0.01, weight_decay=0.1, tokens_per_batch=500, num_minibatches=2
    ),
    saving=SavingConfig(checkpoint_every=1, episodes_every=2),
    timeout=600,
)


def make_env() -> Any:
    return gym.make("visenv/ZoomVQA-v0", preset="tiny")


def train(
    model: str, folder: Path, resume: bool = False, callbacks: Sequence[Callback] = ()
) -> None:
    """Train, and save the state of the optimizer after each update and the final weights."""
    policy = load("policy", "transformers")(model, threads=1) if model else toy.ToyPolicy()
    made = make_env if model else toy.Echo
    trainer = Trainer(
        policy,
        Sloped(kl_coef=0.1),
        CONFIG,
        folder=folder,
        resume=resume,
        callbacks=callbacks,
        held_out=HeldOut({"a": made}, {"a": "reward"}, episodes=3, max_tokens=6, every=2),
    )
    with patch.object(loop, "make_backend", partial(_recorded_backend, folder)):
        trainer.train(Mixture({"a": made, "b": made}, {"a": 1.0, "b": 1.0}, by_pass_rate=True))
    if is_first():
        weights = {name: each.detach() for name, each in policy.module.named_parameters()}
        torch.save(weights, folder / "final.pt")


def _recorded_backend(folder: Path, *arguments: Any) -> TrainingBackend:
    """Return a backend that saves the optimizer after each update, and after it has loaded one.

    The folders ``update <number>`` are numbered from the start of the run.
    """
    backend = make_backend(*arguments)
    load_state, take_step = backend.load, backend.step
    updates = 0

    def loading(saved: Path, policy: Path) -> None:
        nonlocal updates
        updates = len(list(folder.glob("update *")))
        load_state(saved, policy)
        backend.save(folder / "loaded")

    def stepping(accept: Accept) -> float:
        nonlocal updates
        norm = take_step(accept)
        updates += 1
        backend.save(folder / f"update {updates}")
        return norm

    backend.load = loading  # type: ignore[method-assign, assignment]
    backend.step = stepping  # type: ignore[method-assign]
    return backend


class StopAfterTheFirst(Callback):
    """Ends the run after its first step, with a checkpoint."""

    @override
    def on_step_end(self, state: Any, *_: Any, **__: Any) -> None:
        state.should_stop = True


class _Flat(GRPO):
    """Gives all episodes the advantage 0."""

    @override
    def advantages(self, groups: Any) -> Any:
        return [[np.zeros(()) for _ in group] for group in groups]


def train_flat(folder: Path) -> None:
    """Train one step without a gradient."""
    config = replace(CONFIG, steps=1)
    Trainer(toy.ToyPolicy(), _Flat(), config, folder=folder).train(toy.Echo)


def train_long(folder: Path) -> None:
    """Train until the processes are stopped; each process writes its process id."""
    folder.mkdir(exist_ok=True)
    (folder / f"{os.environ['RANK']}.pid").write_text(str(os.getpid()))
    config = replace(CONFIG, steps=10**6)
    Trainer(toy.ToyPolicy(), GRPO(), config, folder=folder).train(toy.Echo)


def die_while_saving_the_second() -> None:
    """Kill the first process during this run, just before it publishes the second checkpoint."""
    publish = checkpoint.publish

    def dying(partial: Path, final: Path) -> None:
        if final.name == "step_000002":
            os.kill(os.getpid(), signal.SIGKILL)
        publish(partial, final)

    checkpoint.publish = dying
