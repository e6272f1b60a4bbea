"""Judging items as ARMBench-VL has them: of pairs, of short answers, of instructions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from visenv.cli.data.base import (
    CurationCommand,
    Pairs,
    PolicyOptions,
    WriterStepCommand,
    part,
    read,
)


@dataclass(frozen=True, kw_only=True)
class ArrangeCommand(CurationCommand):
    """Make judging items of preference pairs, in the layout of ARMBench-VL."""

    pairs: Pairs
    """File of preference pairs."""
    both_orders: bool = False
    """Give each pair in both orders, instead of in one that is drawn."""
    seed: int = 0
    """Seeds the order."""

    def run(self) -> None:
        """Make the judging items."""
        step = part("arrange")(self.out.parent, self.both_orders, self.seed)
        self._work(step, read(self.pairs))


@dataclass(frozen=True, kw_only=True)
class ArmBenchCommand(WriterStepCommand):
    """Make judging items of questions with short answers, as ARMBench-VL was made.

    The name of the file to write, <folder>/<track>.jsonl, says which track the items are for.
    """

    tags: tuple[str, ...] = ()
    """Which forms of the track to draw from; all by default."""
    length_ratio: float = 2.0
    """A response may be this many times as long as the right one, or as short."""

    def run(self) -> None:
        """Write the items of the benchmark."""
        self._write(
            "armbench",
            self.out.parent,
            track=self.out.stem,
            tags=self.tags,
            length_ratio=self.length_ratio,
        )


@dataclass(frozen=True, kw_only=True)
class ConstraintsCommand(PolicyOptions, CurationCommand):
    """Have instructions answered, and let the text checks judge each constraint, as ARMBench-VL.

    The file to write is <folder>/multimodal_instruction_following.jsonl.
    """

    data: Annotated[str, Positional, arg(metavar="NAME:FOLDER")]
    """Data set of instructions, mm_ifeval:<folder>."""
    dialect: Literal["strict", "arm", "mmif"] = "strict"
    """How the checks read."""
    max_tokens: int = 2048
    """Most tokens in a reply."""
    concurrency: int = 64
    """Most instructions in work."""
    seed: int = 0
    """Seeds the sampling."""

    def run(self) -> None:
        """Answer the instructions, and check the answers."""
        from visenv.curation.places import row_lines
        from visenv.data.open import open_data

        sampling = self._sampling(self.max_tokens)
        source = open_data(self.data)
        label = f"{self._policy_label()} on {self.data}"
        with self._open_policy() as policy:
            judge = part("constraints")
            folder = self.out.parent
            step = judge(
                source, policy, folder, sampling, self.dialect, label=label, seed=self.seed
            )
            self._work(step, row_lines(source), self.concurrency)
