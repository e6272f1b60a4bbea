"""Makes judging items as in ARMBench-VL: from pairs, short answers and instructions."""

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
    """Make judging items from preference pairs, in the layout of ARMBench-VL."""

    pairs: Pairs
    """File of preference pairs."""
    both_orders: bool = False
    """Write each pair in both orders, instead of in one random order."""
    seed: int = 0
    """Seed of the order."""

    def run(self) -> None:
        """Make the judging items."""
        step = part("arrange")(self.out.parent, self.both_orders, self.seed)
        self._work(step, read(self.pairs))


@dataclass(frozen=True, kw_only=True)
class ArmBenchCommand(WriterStepCommand):
    """Make judging items from questions with short answers, as for ARMBench-VL.

    The name of the output file, <folder>/<track>.jsonl, determines the track of the items.
    """

    tags: tuple[str, ...] = ()
    """The forms of the track to choose from; by default all."""
    length_ratio: float = 2.0
    """Maximum ratio between the lengths of a response and of the right response, in both
    directions.
    """

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
    """Answer instructions with a policy, and check each constraint, as in ARMBench-VL.

    The output file must be <folder>/multimodal_instruction_following.jsonl.
    """

    data: Annotated[str, Positional, arg(metavar="NAME:FOLDER")]
    """Data set of instructions, mm_ifeval:<folder>."""
    dialect: Literal["strict", "arm", "mmif"] = "strict"
    """The variant of the checks."""
    max_tokens: int = 2048
    """Maximum number of tokens in a reply."""
    concurrency: int = 64
    """Number of instructions that are processed at the same time."""
    seed: int = 0
    """Seed of the sampling."""

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
