"""Tests callbacks: the arguments of each hook, and how a callback ends a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from typing_extensions import override

from tests.algos import toy
from tests.algos.runs import metrics
from visenv.algos.policy_gradient import GRPO
from visenv.algos.trainer import (
    Callback,
    HeldOut,
    RolloutConfig,
    SavingConfig,
    Trainer,
    TrainerConfig,
    TrainerState,
)
from visenv.types import Group

pytestmark = pytest.mark.component("torch", "tensorboard")

CONFIG = TrainerConfig(
    steps=4,
    rollouts=RolloutConfig(prompts_per_step=2, num_generations=2, max_tokens=3),
    saving=SavingConfig(checkpoint_every=2),
)
HELD_OUT = HeldOut({"echo": toy.Echo}, {"echo": "reward"}, episodes=2, max_tokens=3, every=3)


class Recorder(Callback):
    """Records every call."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    @override
    def on_train_begin(self, state: TrainerState) -> None:
        self.calls.append(f"begin {state.step}/{state.steps}")

    @override
    def on_step_end(
        self, state: TrainerState, metrics: Mapping[str, float], groups: Sequence[Group]
    ) -> None:
        assert {"reward", "loss"} <= metrics.keys()
        assert [len(group) for group in groups] == [2, 2]
        self.calls.append(f"step {state.step}")

    @override
    def on_evaluate(self, state: TrainerState, metrics: Mapping[str, float]) -> None:
        assert "eval/headline" in metrics
        self.calls.append(f"evaluate {state.step}")

    @override
    def on_save(self, state: TrainerState, checkpoint: Path) -> None:
        assert (checkpoint / "state.json").exists()
        self.calls.append(f"save {checkpoint.name}")

    @override
    def on_train_end(self, state: TrainerState) -> None:
        self.calls.append(f"end {state.step}")


def test_callback_receives_all_events_in_order(tmp_path: Path) -> None:
    recorder = Recorder()
    trainer = Trainer(
        toy.ToyPolicy(), GRPO(), CONFIG, folder=tmp_path, held_out=HELD_OUT, callbacks=[recorder]
    )
    trainer.train(toy.Echo)
    assert recorder.calls == [
        "begin 0/4", "step 1", "step 2", "save step_000002", "step 3", "evaluate 3", "step 4",
        "save step_000004", "evaluate 4", "end 4",
    ]  # fmt: skip


class StopAfter(Callback):
    def __init__(self, step: int) -> None:
        self.step = step

    @override
    def on_step_end(
        self, state: TrainerState, metrics: Mapping[str, float], groups: Sequence[Group]
    ) -> None:
        state.should_stop = state.step >= self.step


def test_callback_ends_a_run_with_a_checkpoint(tmp_path: Path) -> None:
    recorder = Recorder()
    trainer = Trainer(
        toy.ToyPolicy(), GRPO(), CONFIG, folder=tmp_path, callbacks=[StopAfter(3), recorder]
    )
    trainer.train(toy.Echo)
    assert len(metrics(tmp_path)) == trainer.step == 3
    assert (tmp_path / "checkpoints" / "step_000003").is_dir()
    assert recorder.calls[-2:] == ["save step_000003", "end 3"]


def test_callback_that_raises_ends_the_run_and_its_checkpoint_stays(tmp_path: Path) -> None:
    class Broken(Callback):
        @override
        def on_step_end(
            self, state: TrainerState, metrics: Mapping[str, float], groups: Sequence[Group]
        ) -> None:
            if state.step == 3:
                raise ValueError("mine")

    trainer = Trainer(toy.ToyPolicy(), GRPO(), CONFIG, folder=tmp_path, callbacks=[Broken()])
    with pytest.raises(ValueError, match="mine"):
        trainer.train(toy.Echo)
    resumed = Trainer(toy.ToyPolicy(), GRPO(), CONFIG, folder=tmp_path, resume=True)
    resumed.train(toy.Echo)
    assert [row["step"] for row in metrics(tmp_path)] == [1, 2, 3, 4]
