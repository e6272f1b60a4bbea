"""Callbacks: code of your own that is called while a run trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from visenv.policy import TrainablePolicy
from visenv.types import Group


@dataclass
class TrainerState:
    """The state of a run, as callbacks see it.

    Attributes:
        policy: The policy that is trained.
        folder: The run's folder.
        steps: The number of steps of the run.
        step: The number of steps taken so far.
        is_first: Whether this process is the one that writes files.
        should_stop: Set it to True to end the run after the present step, with a checkpoint. Any
            process may set it.
    """

    policy: TrainablePolicy[Any]
    folder: Path
    steps: int
    step: int = 0
    is_first: bool = True
    should_stop: bool = False


class Callback:
    """Base class of callbacks; override the methods that you need.

    Every process of a run calls its callbacks, so a callback that writes files checks
    `TrainerState.is_first`. An exception in a callback ends the run; its last checkpoint stays.
    """

    def on_train_begin(self, state: TrainerState) -> None:
        """Do something before the first step of this process, also when a run is resumed."""

    def on_step_end(
        self, state: TrainerState, metrics: Mapping[str, float], groups: Sequence[Group]
    ) -> None:
        """Do something after each step.

        Args:
            state: The state of the run.
            metrics: The metrics of the step, as in ``metrics.jsonl``.
            groups: The episodes that this process played or took.
        """

    def on_evaluate(self, state: TrainerState, metrics: Mapping[str, float]) -> None:
        """Do something after each evaluation on held-out samples.

        Args:
            state: The state of the run.
            metrics: The scores by name, as in ``evaluations.jsonl``.
        """

    def on_save(self, state: TrainerState, checkpoint: Path) -> None:
        """Do something after a checkpoint was written to the folder `checkpoint`."""

    def on_train_end(self, state: TrainerState) -> None:
        """Do something after the last step."""
