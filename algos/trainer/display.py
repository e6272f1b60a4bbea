"""Shows the progress of training by two bars and the latest metrics."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from visenv.terminal import printable, rich_text
from visenv.types import Episode

from .metrics_log import step_seconds

_SHOWN = ("reward", "terms/", "metrics/", "loss", "entropy", "kl", "grad_norm")


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
