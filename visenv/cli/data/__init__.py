"""Implements `visenv data STEP …`: creates training and benchmark data in steps (docs/data.md).

This folder defines the options of each step, in one class per step. The work is done by the objects
in `CURATION` of `visenv.registration`, and by `visenv.curation.difficulty`.

    samples.py    questions, difficulty             an environment's samples, as rows
    distortions.py distort                          questions about images that need repair
    pairs.py      negatives, dedupe                 preference pairs
    episodes.py   trajectories, filter, export      a policy's episodes
    items.py      arrange, armbench, constraints    judging items, in the format of a benchmark
    zooming.py    zoom-score, clear, stratify, mags-train   rated by the need for a zoom
    tracing.py    argos-draft to argos-score, argos-reformat   traces with points
    grounded.py   argos-verify, argos-mix           the best rollouts, and their parts
    base.py       shared options
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import OmitSubcommandPrefixes, subcommand

from visenv.cli.data.distortions import DistortCommand
from visenv.cli.data.episodes import ExportEpisodesCommand, FilterCommand, TrajectoriesCommand
from visenv.cli.data.grounded import ArgosMixCommand, ArgosVerifyCommand
from visenv.cli.data.items import ArmBenchCommand, ArrangeCommand, ConstraintsCommand
from visenv.cli.data.pairs import DedupeCommand, NegativesCommand
from visenv.cli.data.samples import DifficultyCommand, QuestionsCommand
from visenv.cli.data.tracing import (
    ArgosDraftCommand,
    ArgosEntitiesCommand,
    ArgosExtractCommand,
    ArgosOverlayCommand,
    ArgosPointCommand,
    ArgosReformatCommand,
    ArgosScoreCommand,
    ArgosTracesCommand,
)
from visenv.cli.data.zooming import (
    ClearCommand,
    MagsTrainCommand,
    StratifyCommand,
    ZoomScoreCommand,
)


@dataclass(frozen=True)
class DataCommand:
    """Create training and benchmark data, step by step; an interrupted step is resumed."""

    step: OmitSubcommandPrefixes[
        Annotated[QuestionsCommand, subcommand("questions")]
        | Annotated[NegativesCommand, subcommand("negatives")]
        | Annotated[DedupeCommand, subcommand("dedupe")]
        | Annotated[ArrangeCommand, subcommand("arrange")]
        | Annotated[DifficultyCommand, subcommand("difficulty")]
        | Annotated[TrajectoriesCommand, subcommand("trajectories")]
        | Annotated[FilterCommand, subcommand("filter")]
        | Annotated[ExportEpisodesCommand, subcommand("export")]
        | Annotated[ArmBenchCommand, subcommand("armbench")]
        | Annotated[ConstraintsCommand, subcommand("constraints")]
        | Annotated[DistortCommand, subcommand("distort")]
        | Annotated[ZoomScoreCommand, subcommand("zoom-score")]
        | Annotated[ClearCommand, subcommand("clear")]
        | Annotated[StratifyCommand, subcommand("stratify")]
        | Annotated[MagsTrainCommand, subcommand("mags-train")]
        | Annotated[ArgosDraftCommand, subcommand("argos-draft")]
        | Annotated[ArgosEntitiesCommand, subcommand("argos-entities")]
        | Annotated[ArgosPointCommand, subcommand("argos-point")]
        | Annotated[ArgosOverlayCommand, subcommand("argos-overlay")]
        | Annotated[ArgosTracesCommand, subcommand("argos-traces")]
        | Annotated[ArgosExtractCommand, subcommand("argos-extract")]
        | Annotated[ArgosScoreCommand, subcommand("argos-score")]
        | Annotated[ArgosReformatCommand, subcommand("argos-reformat")]
        | Annotated[ArgosVerifyCommand, subcommand("argos-verify")]
        | Annotated[ArgosMixCommand, subcommand("argos-mix")]
    ]

    def run(self) -> None:
        """Run the chosen step."""
        self.step.run()
