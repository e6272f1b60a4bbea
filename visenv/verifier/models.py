"""Implements all teachers of a verifier with models behind scorers.

The prompts are arguments, which the family passes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from visenv.errors import ServiceError
from visenv.grammar.points import read_references
from visenv.scorers import Detect, Generate, HitMasks, Judge, LogProbs, Scorer
from visenv.scorers.judge import LONGEST_TRACE, quoted
from visenv.types import Message, Sample
from visenv.verifier.teachers import Box, FrameReference, Place

Coordinates = Literal["pixels", "relative1000"]

_POINT_2D = re.compile(
    r"""point_2d["']?\s?:\s?\[\s?(\d{1,6}(?:\.\d{1,4})?)\s?,\s?(\d{1,6}(?:\.\d{1,4})?)"""
)

MOST_WORDS = 6
"""The most words of a label. A longer label names several things, or gives instructions."""


def is_name(label: str, most_words: int = MOST_WORDS) -> bool:
    """Return whether a label has a letter or digit, and not too many words."""
    return any(map(str.isalnum, label)) and len(label.split()) <= most_words


@dataclass(frozen=True)
class ModelDetector:
    """Asks a detector behind a scorer that answers `Detect`.

    An open-vocabulary detector returns a box for almost any text. For a label without letters, or
    one that lists many words, it returns a box around most of the image, so that every point would
    count as right. Such labels and boxes are therefore treated as not found.

    Args:
        scorer: The detector.
        most_words: The most words of a label. A label with more words, or without a letter or
            digit, has no box.
        largest_box: The largest box that counts, as a share of the area of the image, 0 to 1.
    """

    scorer: Scorer
    most_words: int = MOST_WORDS
    largest_box: float = 0.9

    async def boxes(self, seen: FrameReference, label: str) -> Sequence[Box]:
        """Return the boxes of a label.

        Raises:
            ServiceError: If the scorer failed, or did not return a list of boxes.
        """
        if not is_name(label, self.most_words):
            return []
        value = (await self.scorer.score(Detect(seen.image, label))).value
        try:
            boxes: list[Box] = [
                (float(row[0]), float(row[1]), float(row[2]), float(row[3])) for row in value
            ]
        except (TypeError, ValueError, LookupError) as error:
            raise ServiceError(self.scorer.name, f"expected boxes, got {value!r:.80}") from error
        if not all(map(math.isfinite, (number for box in boxes for number in box))):
            raise ServiceError(self.scorer.name, f"expected finite boxes, got {value!r:.80}")
        width, height = seen.image.size
        most = self.largest_box * width * height
        return [box for box in boxes if _area_inside(box, width, height) <= most]


@dataclass(frozen=True)
class ModelSegmenter:
    """Asks a segmenter behind a scorer that answers `HitMasks`."""

    scorer: Scorer

    async def hits(
        self,
        seen: FrameReference,
        prompts: Sequence[Box] | Sequence[Place],
        places: Sequence[Place],
    ) -> Sequence[bool]:
        """Return which places lie in the union of the masks."""
        request = HitMasks(seen.image, tuple(map(tuple, prompts)), tuple(places))
        value = (await self.scorer.score(request)).value
        if not isinstance(value, list) or not all(isinstance(each, bool) for each in value):
            raise ServiceError(self.scorer.name, f"expected bools, got {value!r:.80}")
        return value


@dataclass(frozen=True)
class ModelPointing:
    """Asks a pointing model behind a scorer that answers `Generate`, such as Molmo or Qwen.

    Args:
        scorer: The model.
        prompt: The prompt, with the field ``label``, one JSON string.
        max_tokens: Maximum number of tokens of a reply.
        coordinates: Unit of the points that the model writes as JSON, see `read_pointing`.
        most_words: The most words of a label, as of `ModelDetector`; another one has no points.
    """

    scorer: Scorer
    prompt: str
    max_tokens: int = 512
    coordinates: Coordinates = "pixels"
    most_words: int = MOST_WORDS

    async def places(self, seen: FrameReference, label: str) -> Sequence[Place]:
        """Return the readable points of a reply.

        Raises:
            ServiceError: If the scorer failed, or returned no text.
        """
        if not is_name(label, self.most_words):
            return []
        prompt = self.prompt.format(label=quoted(label))
        messages = (Message("user", (seen.image, prompt)),)
        value = (await self.scorer.score(Generate(messages, self.max_tokens))).value
        text = value.get("text") if isinstance(value, Mapping) else None
        if not isinstance(text, str):
            raise ServiceError(self.scorer.name, f"expected a text, got {value!r:.80}")
        return read_pointing(text, seen.image.size, self.coordinates)


@dataclass(frozen=True)
class ModelDescriptionJudge:
    """Asks judges whether descriptions are right.

    Args:
        frame: Judge of frames; its prompt has the fields ``image`` and ``description``.
        span: Judge of spans; its prompt has the fields ``frames`` and ``description``.
    """

    frame: Judge[float]
    span: Judge[float]

    async def frame_is(self, seen: FrameReference, description: str) -> bool:
        """Return whether the frame matches the description."""
        return await self.frame.ask(image=seen.image, description=description) >= 0.5

    async def span_is(self, sample: Sample, first: int, last: int, description: str) -> bool:
        """Return whether the frames match the description."""
        frames = sample.images[first : last + 1]
        return await self.span.ask(frames=frames, description=description) >= 0.5


@dataclass(frozen=True)
class ModelReasoner:
    """Asks a larger model behind a scorer that answers `LogProbs`, by teacher forcing.

    Args:
        scorer: The model.
        prompt: The prompt, with the fields ``question`` and ``reasoning``, one JSON string.
    """

    scorer: Scorer
    prompt: str

    async def log_probabilities(
        self, sample: Sample, reasoning: str, answer: str
    ) -> Sequence[float]:
        """Return the log-probability of each token of the answer.

        Raises:
            ServiceError: If the scorer failed, or did not return a list of numbers.
        """
        said = quoted(reasoning, LONGEST_TRACE)
        text = self.prompt.format(question=sample.question, reasoning=said)
        messages = (Message("user", (*sample.images, text)),)
        value = (await self.scorer.score(LogProbs(messages, answer))).value
        if not isinstance(value, list) or not all(map(_is_number, value)):
            raise ServiceError(self.scorer.name, f"expected numbers, got {value!r:.80}")
        return [float(each) for each in value]


@dataclass(frozen=True)
class ModelEquivalenceJudge:
    """Asks a judge whether two answers are equivalent.

    The prompt of the judge has the fields ``question``, ``truth`` and ``answer``.
    """

    judge: Judge[bool]

    async def are_equivalent(self, sample: Sample, answer: str, truth: str) -> bool:
        """Return whether the answer has the same meaning as the true answer."""
        return await self.judge.ask(question=sample.question, truth=truth, answer=answer)


def read_pointing(
    text: str, size: tuple[int, int], coordinates: Coordinates = "pixels"
) -> list[Place]:
    """Return the points of a pointing model in pixels.

    Molmo writes tags (`visenv.grammar.points`). Their coordinates go from 0 to 100 and are
    multiplied by size / 100; larger values are dropped. Qwen writes JSON with ``point_2d`` or
    ``point``. Points outside the image are dropped.

    Args:
        text: The reply.
        size: Width and height of the image, pixels.
        coordinates: Unit of JSON points: ``"pixels"`` of the image (Qwen2.5-VL), or
            ``"relative1000"``, from 0 to 1000 in both directions (Qwen3-VL).
    """
    width, height = size
    places = [(float(x), float(y)) for x, y in _POINT_2D.findall(text)] + _json_points(text)
    across, down = (1.0, 1.0) if coordinates == "pixels" else (width / 1000, height / 1000)
    if not places:
        places = [(x, y) for x, y, *_ in read_references(text).points if max(x, y) <= 100]
        across, down = width / 100, height / 100
    scaled = [(x * across, y * down) for x, y in places]
    inside = [(x, y) for x, y in scaled if 0 <= x <= width and 0 <= y <= height]
    return [(min(x, width - 1e-6), min(y, height - 1e-6)) for x, y in dict.fromkeys(inside)]


def _json_points(text: str) -> list[Place]:
    """Return the points of a JSON list such as ``[{"point": [3, 4]}]``; of other texts, none."""
    try:
        found = json.loads(text.strip().strip("`").removeprefix("json"))
    except (ValueError, RecursionError):
        return []
    rows = found if isinstance(found, list) else []
    points = [row.get("point") for row in rows if isinstance(row, dict)]
    return [
        (float(point[0]), float(point[1]))
        for point in points
        if isinstance(point, list) and len(point) == 2 and all(map(_is_finite, point))
    ]


def _is_number(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < 2**53  # exact as a float
    return isinstance(value, float)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and abs(value) < 1e9


def _area_inside(box: Box, width: int, height: int) -> float:
    """Return the area of the part of a box that is inside the image, square pixels."""
    left, top, right, bottom = box
    across = min(right, width) - max(left, 0)
    down = min(bottom, height) - max(top, 0)
    return max(across, 0.0) * max(down, 0.0)
