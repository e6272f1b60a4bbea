"""Implements `visenv compare`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from visenv.cli.arguments import check_at_least


@dataclass(frozen=True)
class CompareCommand:
    """Train algorithms on a suite of tiny tasks, and print a table with 95 % intervals.

    GRPO, rejection sampling and filtered SFT are always part of the table. For each task and seed,
    all algorithms start from the same warm-up. OUT contains a file for each finished cell (an
    algorithm, a task and a seed); the same command continues from them, also in another checkout.
    It also contains results.md and results.png.
    """

    algorithms: Annotated[list[str], arg(metavar="NAME")] = field(default_factory=list)
    """A further algorithm (visenv list), or module:Class; may be given several times."""
    tasks: Annotated[list[str], arg(metavar="NAME")] = field(default_factory=list)
    """A task of the suite, or a TOML file of a recipe; may be given several times. By default all
    tasks of the suite.
    """
    seeds: Annotated[list[int], arg(metavar="SEED")] = field(default_factory=list)
    """A seed; may be given several times. By default 0, 1 and 2."""
    num_generations: Annotated[list[int], arg(metavar="SIZE")] = field(default_factory=list)
    """A further size of groups with which GRPO is run; may be given several times."""
    quick: bool = False
    """Take two tasks and one seed unless --tasks or --seeds are given.

    This is planned for at most 15 minutes on two cores.
    """
    minutes: float = math.inf
    """Number of minutes after which no cell is started; 0 only prints the table."""
    threads: int = 2
    """Number of threads of the policy."""
    out: Path = Path("runs/compare/results")
    """Folder of the finished cells, the table and the picture."""
    runs: Path = Path("runs/compare")
    """Folder of the runs, with checkpoints."""
    against: Path | None = None
    """Another folder of results, whose algorithms are added to the table."""

    def run(self) -> None:
        """Run the cells that are not finished, and print the table.

        Raises:
            ConfigurationError: If an option has an invalid value.
        """
        from visenv.registration import load

        check_at_least(0, minutes=self.minutes, seeds=min(self.seeds, default=0))
        check_at_least(1, threads=self.threads)
        check_at_least(2, num_generations=min(self.num_generations, default=2))
        load("command", "compare")(
            self.algorithms,
            self.tasks,
            self.seeds,
            self.num_generations,
            quick=self.quick,
            minutes=self.minutes,
            threads=self.threads,
            out=self.out,
            runs=self.runs,
            against=self.against,
        )
