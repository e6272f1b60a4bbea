"""Provides judges, teacher models and encoders: shared, batched and cached (docs/scorers.md)."""

from visenv.scorers.backend import InProcessBackend, ScorerBackend, ServiceLimits
from visenv.scorers.judge import JsonScore, Judge, OneOf, ReplyError, YesNo
from visenv.scorers.request import (
    Detect,
    Embed,
    Generate,
    HitMasks,
    LogProbs,
    ScoreRequest,
    digest,
)
from visenv.scorers.retry import RefusedError, TransientError
from visenv.scorers.scorer import Scorer, VerdictLog, current_log, using
from visenv.scorers.service import ServiceCounts, Verdict
from visenv.scorers.services import for_worker

__all__ = [
    "Detect",
    "Embed",
    "Generate",
    "HitMasks",
    "InProcessBackend",
    "JsonScore",
    "Judge",
    "LogProbs",
    "OneOf",
    "RefusedError",
    "ReplyError",
    "ScoreRequest",
    "Scorer",
    "ScorerBackend",
    "ServiceCounts",
    "ServiceLimits",
    "TransientError",
    "Verdict",
    "VerdictLog",
    "YesNo",
    "current_log",
    "digest",
    "for_worker",
    "using",
]
