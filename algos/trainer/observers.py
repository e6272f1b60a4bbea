"""Notifies the observers of a run: the display, the metrics file, trackers and callbacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType

from visenv.types import Episode, Group

from .callbacks import Callback, TrainerState
from .display import Display
from .distributed import DistributedContext
from .evaluation import EvaluationResult
from .metrics_log import METRICS, MetricsLog
from .spread import FIRST_STEPS, spread_warnings
from .trackers import Trackers


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
