"""Implements `visenv data STEP …`: making training and benchmark data, step by step (docs/data.md).

The options of each step are here, a class for each; the work is done by what `CURATION` of
`visenv.registration` names, and by `visenv.curation.difficulty`.

    samples.py    questions, difficulty             an environment's samples, as rows
    distortions.py distort                          questions about images that need repair
    pairs.py      negatives, dedupe                 preference pairs
    episodes.py   trajectories, filter, export      a policy's episodes
    items.py      arrange, armbench, constraints    judging items, as a benchmark has them
    zooming.py    zoom-score, clear, stratify, mags-train   rated by need of a zoom
    tracing.py    argos-draft to argos-score, argos-reformat   traces with points
    grounded.py   argos-verify, argos-mix           the best rollouts, and their parts
    base.py       what they share
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import OmitSubcommandPrefixes, subcommand

from visenv.cli.data.distortions import Distort
from visenv.cli.data.episodes import Export, Filter, Trajectories
from visenv.cli.data.grounded import ArgosMix, ArgosVerify
from visenv.cli.data.items import ArmBench, Arrange, Constraints
from visenv.cli.data.pairs import Dedupe, Negatives
from visenv.cli.data.samples import Difficulty, Questions
from visenv.cli.data.tracing import (
    ArgosDraft,
    ArgosEntities,
    ArgosExtract,
    ArgosOverlay,
    ArgosPoint,
    ArgosReformat,
    ArgosScore,
    ArgosTraces,
)
from visenv.cli.data.zooming import Clear, MagsTrain, Stratify, ZoomScore


@dataclass(frozen=True)
class Data:
    """Make training and benchmark data, step by step; an interrupted step goes on where it was."""

    step: OmitSubcommandPrefixes[
        Annotated[Questions, subcommand("questions")]
        | Annotated[Negatives, subcommand("negatives")]
        | Annotated[Dedupe, subcommand("dedupe")]
        | Annotated[Arrange, subcommand("arrange")]
        | Annotated[Difficulty, subcommand("difficulty")]
        | Annotated[Trajectories, subcommand("trajectories")]
        | Annotated[Filter, subcommand("filter")]
        | Annotated[Export, subcommand("export")]
        | Annotated[ArmBench, subcommand("armbench")]
        | Annotated[Constraints, subcommand("constraints")]
        | Annotated[Distort, subcommand("distort")]
        | Annotated[ZoomScore, subcommand("zoom-score")]
        | Annotated[Clear, subcommand("clear")]
        | Annotated[Stratify, subcommand("stratify")]
        | Annotated[MagsTrain, subcommand("mags-train")]
        | Annotated[ArgosDraft, subcommand("argos-draft")]
        | Annotated[ArgosEntities, subcommand("argos-entities")]
        | Annotated[ArgosPoint, subcommand("argos-point")]
        | Annotated[ArgosOverlay, subcommand("argos-overlay")]
        | Annotated[ArgosTraces, subcommand("argos-traces")]
        | Annotated[ArgosExtract, subcommand("argos-extract")]
        | Annotated[ArgosScore, subcommand("argos-score")]
        | Annotated[ArgosReformat, subcommand("argos-reformat")]
        | Annotated[ArgosVerify, subcommand("argos-verify")]
        | Annotated[ArgosMix, subcommand("argos-mix")]
    ]

    def run(self) -> None:
        """Run the chosen step."""
        self.step.run()
