"""Scores if a response is right, grounded and consistent: the Argos verifier (docs/argos.md)."""

from visenv.verifier.extraction import Extractor, read_extraction
from visenv.verifier.grounding import (
    mean_of_categories,
    point_scores,
    spatial_score,
    temporal_score,
)
from visenv.verifier.oracle import TeacherNoise, WorldTruth, oracle_teachers
from visenv.verifier.outcome import answer_kind, matches, outcome_score, rule_score
from visenv.verifier.reasoning import hide_answer, probability, reasoning_score
from visenv.verifier.referred import Referred, Selected, refer
from visenv.verifier.selector import ModelSelector, RuleSelector, Selector, select_by_rules
from visenv.verifier.teachers import FrameReference, Teachers
from visenv.verifier.verifier import TERMS, GatedAggregate, Verification, Verifier, referred_in

__all__ = [
    "TERMS",
    "Extractor",
    "FrameReference",
    "GatedAggregate",
    "ModelSelector",
    "Referred",
    "RuleSelector",
    "Selected",
    "Selector",
    "TeacherNoise",
    "Teachers",
    "Verification",
    "Verifier",
    "WorldTruth",
    "answer_kind",
    "hide_answer",
    "matches",
    "mean_of_categories",
    "oracle_teachers",
    "outcome_score",
    "point_scores",
    "probability",
    "read_extraction",
    "reasoning_score",
    "refer",
    "referred_in",
    "rule_score",
    "select_by_rules",
    "spatial_score",
    "temporal_score",
]
