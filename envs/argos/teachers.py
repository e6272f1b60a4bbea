"""Creates the teachers of an Argos environment from its options, with the family's prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from visenv.errors import ConfigurationError
from visenv.grammar.points import TraceReferences
from visenv.presets import check_choice
from visenv.scorers import JsonScore, Judge, Scorer, YesNo
from visenv.verifier import Extractor, ModelSelector, Teachers, oracle_teachers, read_extraction
from visenv.verifier.models import (
    ModelDescriptionJudge,
    ModelDetector,
    ModelEquivalenceJudge,
    ModelPointing,
    ModelReasoner,
    ModelSegmenter,
)
from visenv.verifier.selector import read_functions

from . import prompts
from .presets import TeacherNames
from .prompts import Coordinates


def make_teachers(
    teachers: Literal["oracle"] | Mapping[TeacherNames, str] | Teachers,
    noise: float,
    pointing_coordinates: Coordinates = "pixels",
) -> Teachers:
    """Return the teachers for the given options.

    Args:
        teachers: ``"oracle"``, scorers by the names of teachers, or `Teachers`.
        noise: Share of wrong verdicts of the oracle.
        pointing_coordinates: See `model_teachers`.

    Raises:
        ConfigurationError: If a teacher is unknown or missing, or noise is invalid.
    """
    if isinstance(noise, bool) or not 0 <= noise <= 1:
        raise ConfigurationError(f"noise must be from 0 to 1, got {noise!r}.")
    if isinstance(teachers, Teachers):
        return teachers
    if teachers == "oracle":
        return oracle_teachers(noise)
    if isinstance(teachers, str):
        raise ConfigurationError(f'teachers must be "oracle" or scorers by name, got {teachers!r}.')
    if noise:
        raise ConfigurationError(
            f'noise is an option of teachers="oracle", got noise={noise!r} with scorers: omit it.'
        )
    return model_teachers(teachers, pointing_coordinates)


def model_teachers(
    names: Mapping[TeacherNames, str], pointing_coordinates: Coordinates = "pixels"
) -> Teachers:
    """Return teachers that use scorers.

    Args:
        names: One line for each scorer (`Scorer.parse`); detector and segmenter are needed.
        pointing_coordinates: Unit of the points that the pointing model writes as JSON
            (`visenv.verifier.models.read_pointing`).

    Raises:
        ConfigurationError: If a teacher is unknown or missing.
    """
    for name in names:
        check_choice("teacher", name, get_args(TeacherNames))
    scorers = {name: Scorer.parse(line) for name, line in names.items()}
    missing = [name for name in ("detector", "segmenter") if name not in scorers]
    if missing:
        raise ConfigurationError(f"teachers needs {' and '.join(missing)}, got {sorted(names)}.")
    pointing, judge = scorers.get("pointing_model"), scorers.get("judge")
    reasoner = scorers.get("reasoner")
    score = JsonScore(values=(0.0, 1.0))
    return Teachers(
        detector=ModelDetector(scorers["detector"]),
        segmenter=ModelSegmenter(scorers["segmenter"]),
        pointing_model=ModelPointing(pointing, prompts.POINTING, coordinates=pointing_coordinates)
        if pointing
        else None,
        description_judge=ModelDescriptionJudge(
            Judge(judge, prompts.FRAME_JUDGE, score, quoted=("description",)),
            Judge(judge, prompts.SPAN_JUDGE, score, quoted=("description",)),
        )
        if judge
        else None,
        reasoner=ModelReasoner(reasoner, prompts.REASONER) if reasoner else None,
        equivalence_judge=ModelEquivalenceJudge(
            Judge(judge, prompts.EQUIVALENCE_JUDGE, YesNo(), quoted=("answer",))
        )
        if judge
        else None,
    )


def make_selector(line: str | None) -> ModelSelector | None:
    """Return the selector of a scorer line; None if rules select."""
    if line is None:
        return None
    return ModelSelector(Judge(Scorer.parse(line), prompts.SELECTOR_JUDGE, read_functions))


def make_extractor(line: str | None) -> Extractor | None:
    """Return the extractor of a scorer line; None if rules extract."""
    if line is None:
        return None
    judge: Judge[TraceReferences] = Judge(
        Scorer.parse(line), prompts.EXTRACTION, read_extraction, max_tokens=4096
    )
    return Extractor(judge)
