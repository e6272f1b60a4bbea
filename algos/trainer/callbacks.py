"""Defines callbacks, which run your own code during training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from visenv.policy import TrainablePolicy
from visenv.types import Group


@dataclass
class TrainerState:
    """Holds the state of a run for callbacks.

    Attributes:
        policy: The policy that is trained.
        folder: The run's folder.
        steps: The number of steps of the run.
        step: The number of steps that were taken.
        is_first: Whether this process writes the files of the run.
        should_stop: Set this to True to end the run after the current step, with a checkpoint. Any
            process may set it.
    """

    policy: TrainablePolicy[Any]
    folder: Path
    steps: int
    step: int = 0
    is_first: bool = True
    should_stop: bool = False


class Callback:
    """Defines the methods of a callback. Override the methods that you need.

    Every process of a run calls its callbacks, so a callback that writes files must check
    `TrainerState.is_first`. An exception in a callback ends the run and keeps its last checkpoint.
    """

    def on_train_begin(self, state: TrainerState) -> None:
        """Run before the first step of this process, also in a resumed run."""

    def on_step_end(
        self, state: TrainerState, metrics: Mapping[str, float], groups: Sequence[Group]
    ) -> None:
        """Run after each step.

        Args:
            state: The state of the run.
            metrics: The metrics of the step, as in ``metrics.jsonl``.
            groups: The episodes of this process.
        """

    def on_evaluate(self, state: TrainerState, metrics: Mapping[str, float]) -> None:
        """Run after each evaluation on held-out samples.

        Args:
            state: The state of the run.
            metrics: The scores by name, as in ``evaluations.jsonl``.
        """

    def on_save(self, state: TrainerState, checkpoint: Path) -> None:
        """Run after a checkpoint was written to the folder `checkpoint`."""

    def on_train_end(self, state: TrainerState) -> None:
        """Run after the last step."""
