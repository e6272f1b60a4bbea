"""Selects the scoring functions that apply to a response."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from visenv.scorers import Judge, ReplyError
from visenv.types import Sample
from visenv.verifier.outcome import AnswerKind, answer_kind
from visenv.verifier.referred import Referred, Selected

FUNCTIONS = ("exact", "numeric", "equivalence", "spatial", "spatial_chart", "temporal", "reasoning")
"""The names of the scoring functions, in the order in which they are computed."""

GROUNDING_FUNCTIONS = frozenset(("spatial", "spatial_chart", "temporal"))
"""The functions that score points and time anchors."""

CHART_KINDS = frozenset(("chart", "map", "diagram", "table"))
"""If the kind of a sample contains one of these words, a pointing model replaces the detector."""

CHART_SOURCES = frozenset(
    ("ai2d", "chartqa", "dvqa", "figureqa", "infographicvqa", "mapqa", "plotqa", "tabmwp")
)
"""Data sources that contain only charts, maps, diagrams or tables, in lower case without
separators."""

_OUTCOME: dict[AnswerKind, str] = {
    "choice": "exact",
    "whole": "exact",
    "phrase": "exact",
    "decimal": "numeric",
    "open": "equivalence",
}


class Selector(Protocol):
    """Chooses the scoring functions of a response."""

    async def select(self, sample: Sample, referred: Referred) -> Selected:
        """Return the scoring functions; the episode logs them."""
        ...


@dataclass(frozen=True)
class RuleSelector:
    """Selects by rules, from modality, answer type, data source and the parsed references."""

    async def select(self, sample: Sample, referred: Referred) -> Selected:
        """Return the scoring functions."""
        return select_by_rules(sample, referred)


@dataclass(frozen=True)
class ModelSelector:
    """Asks a model to select among the functions that can apply.

    The model can omit only the reasoning. Outcome and grounding are always scored: the model sees
    the number of points of a response, and if it could omit the grounding of a response without
    points, such responses would get higher rewards.

    Args:
        judge: The model. Its prompt has the fields ``question``, ``kind``, ``source``, ``points``,
            ``spans`` and ``functions``, and its reply is read by `read_functions`.
    """

    judge: Judge[tuple[str, ...]]

    async def select(self, sample: Sample, referred: Referred) -> Selected:
        """Return the scoring functions."""
        possible = select_by_rules(sample, referred).functions
        chosen = await self.judge.ask(
            question=sample.question,
            kind=answer_kind(sample),
            source=source_of(sample) or "unknown",
            points=str(len(referred.points)),
            spans=str(len(referred.frames) + len(referred.spans)),
            functions=", ".join(possible),
        )
        needed = {possible[0]} | GROUNDING_FUNCTIONS
        kept = tuple(each for each in possible if each in needed or each in chosen)
        return Selected(referred.turn, kept, self.judge.scorer.name)


def select_by_rules(sample: Sample, referred: Referred) -> Selected:
    """Return the functions that apply by rules.

    The first one compares the answer. Points apply to every sample with one image, and the
    reasoning to every response, even if the response has none, so that omitting them does not
    increase the reward. Points do not apply to a sample with several images, because a point does
    not say to which image it belongs.
    """
    functions = [_OUTCOME[answer_kind(sample)]]
    if is_video(sample):
        functions.append("temporal")
    elif len(sample.images) == 1:
        functions.append("spatial_chart" if is_chart(sample) else "spatial")
    functions.append("reasoning")
    return Selected(referred.turn, tuple(functions))


def times_of(sample: Sample) -> Sequence[float]:
    """Return the time of each frame of a video in seconds; an empty list for images."""
    return getattr(sample.ground_truth, "times", ())


def is_video(sample: Sample) -> bool:
    """Return whether the images of a sample are the frames of a video."""
    return bool(times_of(sample))


def is_chart(sample: Sample) -> bool:
    """Return whether a sample shows a chart or a map.

    A sample shows a chart if a word of its kind is in `CHART_KINDS`, or its data source is in
    `CHART_SOURCES`.
    """
    words = set(re.findall(r"[a-z]+", sample.kind.casefold()))
    source = re.sub(r"[^a-z0-9]", "", source_of(sample).casefold())
    return bool(words & CHART_KINDS) or source in CHART_SOURCES


def source_of(sample: Sample) -> str:
    """Return the data source of a sample, ``""`` if it is not known."""
    labels: Any = getattr(sample.ground_truth, "labels", {})
    return str(labels.get("source", ""))


def read_functions(text: str) -> tuple[str, ...]:
    """Read a JSON list of function names, as a reader for judges.

    Raises:
        ReplyError: If the text is not such a list.
    """
    try:
        names = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReplyError(f"expected a JSON list of names, got {text[:80]!r}") from error
    if not isinstance(names, list) or not all(name in FUNCTIONS for name in names):
        raise ReplyError(f"expected names among {FUNCTIONS}, got {text[:80]!r}")
    return tuple(names)
