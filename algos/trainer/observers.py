"""Shows the progress of training, and notifies the metrics file, trackers and callbacks.

A `Callback` runs your own code during training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from visenv.policy import TrainablePolicy
from visenv.terminal import printable, rich_text
from visenv.types import Episode, Group

from .diagnostics import FIRST_STEPS, spread_warnings
from .distributed import DistributedContext
from .evaluation import EvaluationResult
from .metrics import METRICS, MetricsLog, step_seconds
from .trackers import Trackers

_SHOWN = ("reward", "terms/", "metrics/", "loss", "entropy", "kl", "grad_norm")


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


class Display:
    """Shows progress on standard error.

    It prints a line for every twentieth of the run. In a terminal, two bars below the lines show
    the steps of the run, with the time left, and the episodes of the step.

    Args:
        label: The name of the algorithm, for example ``"GRPO"``.
        steps: The number of steps of the run.
        taken: The number of steps that were already taken.
        episodes: The number of episodes in a step.
        shown: Whether this process shows anything.
    """

    def __init__(
        self, label: str, steps: int, taken: int, episodes: int, *, shown: bool = True
    ) -> None:
        self._console = Console(stderr=True, quiet=not shown)
        self._label = label
        self._steps = steps
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[numbers]}", markup=False),
            console=self._console,
            disable=not (shown and self._console.is_terminal),
        )
        self._run = self._bars.add_task(printable(label), total=steps, completed=taken, numbers="")
        self._step = self._bars.add_task("episodes", total=episodes, numbers="")
        self._rewards: list[float] = []

    def __enter__(self) -> Display:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def episode(self, episode: Episode) -> None:
        """Show that an episode of the current step has ended."""
        if episode.status != "aborted":
            self._rewards.append(episode.reward)
        mean = sum(self._rewards) / max(len(self._rewards), 1)
        self._bars.update(self._step, advance=1, numbers=f"reward {mean:.3f}")

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Show that a step, counted from 1, has ended."""
        shown = {name: value for name, value in metrics.items() if name.startswith(_SHOWN)}
        numbers = "  ".join(printable(f"{name.split('/')[-1]} {shown[name]:.3g}") for name in shown)
        numbers += f"  {1 / step_seconds(metrics):.2f} steps/s"
        self._bars.update(self._run, completed=step, numbers=numbers)
        self._bars.reset(self._step, numbers="")
        self._rewards = []
        every = max(self._steps // 20, 1)
        if step % every == 0 or step == self._steps:
            self.say(f"{self._label} {step}/{self._steps}  {numbers}")

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        self._console.print(rich_text(text), soft_wrap=True, highlight=False)


class Observers:
    """Notifies all observers of a run. It is a context manager.

    Only the first process has a display, files and trackers. Every process calls its callbacks.

    Args:
        label: The name of the algorithm.
        episodes: The number of episodes of this process in a step.
        stage: The name of the phase, which is written to ``metrics.jsonl``; ``""`` writes none.
        trackers: The names of trackers.
        state: The state of the run.
        callbacks: The callbacks, which are called in this order.
        processes: The processes of the run.
    """

    def __init__(
        self,
        label: str,
        episodes: int,
        stage: str,
        *,
        trackers: Sequence[str],
        state: TrainerState,
        callbacks: Sequence[Callback],
        processes: DistributedContext,
    ) -> None:
        self._state = state
        self._callbacks = callbacks
        self._processes = processes
        self._stage = stage
        first, folder, step = processes.first, state.folder, state.step
        self._display = Display(label, state.steps, step, episodes, shown=first)
        self._log = MetricsLog(folder / METRICS, step, stage) if first else None
        self._open = ExitStack()
        try:
            self._trackers = Trackers(trackers if first else (), folder, step, self._display.say)
        except BaseException:
            if self._log is not None:
                self._log.close()
            raise

    def __enter__(self) -> Observers:
        self._open.callback(self._trackers.close)
        if self._log is not None:
            self._open.callback(self._log.close)
        self._open.enter_context(self._display)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def begin(self, notices: Sequence[str] = ()) -> None:
        """Notify that the run starts or is resumed.

        Args:
            notices: Sentences about a run that is resumed, which are printed.
        """
        for notice in notices:
            self.say(notice)
        for callback in self._callbacks:
            callback.on_train_begin(self._state)

    def say(self, text: str) -> None:
        """Print a sentence."""
        self._display.say(text)

    def episode(self, episode: Episode) -> None:
        """Notify that an episode of the current step has ended."""
        self._display.episode(episode)

    def step(self, metrics: Mapping[str, float], groups: Sequence[Group]) -> None:
        """Notify that a step has ended, and warn if no group of the first steps had a spread.

        Args:
            metrics: The metrics of the step.
            groups: The episodes of this process.
        """
        step = self._state.step
        if self._log is not None:
            self._log.write(step, metrics)
            self._trackers.log(step, metrics)
            self._display.step(step, metrics)
            if step == FIRST_STEPS < self._state.steps:
                self._warn()
        for callback in self._callbacks:
            callback.on_step_end(self._state, metrics, groups)

    def example(self, name: str, episode: Episode) -> None:
        """Send an example episode to the trackers."""
        self._trackers.log_example(self._state.step, f"examples/{name}", episode)

    def evaluated(self, evaluated: EvaluationResult) -> None:
        """Notify that the policy was evaluated after the current step."""
        step = self._state.step
        if self._processes.first:
            self._trackers.log(step, evaluated.metrics)
            for name, episode in evaluated.examples.items():
                self.example(f"eval/{name}", episode)
            headline = evaluated.metrics["eval/headline"]
            self._display.say(f"step {step}: held-out headline metric {headline:.3f}")
        for callback in self._callbacks:
            callback.on_evaluate(self._state, evaluated.metrics)

    def end(self) -> None:
        """Notify that the run has ended, and warn if no group had different rewards.

        An experiment repeats no warning of a phase: it prints them after its tables.
        """
        if self._processes.first and not self._stage:
            self._warn()
        for callback in self._callbacks:
            callback.on_train_end(self._state)

    def _warn(self) -> None:
        """Warn if no group has had different rewards so far."""
        for warning in spread_warnings(self._state.folder / METRICS):
            self._display.say(f"Warning: {warning}")

    @property
    def should_stop(self) -> bool:
        """Return whether a callback of any process has requested the end of the run."""
        if not self._callbacks:
            return False
        return any(self._processes.gather(self._state.should_stop))
