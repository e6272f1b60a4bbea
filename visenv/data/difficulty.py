"""The difficulty filter of Groundlight's paper: keep what the model does not know without tools.

Each question is asked `samples` times, straight, with a few tokens to answer in; a sample is kept
when the mean of its scores is below the threshold (arXiv 2506.14821: 8 samples at temperature 1.0,
10 tokens, below 0.5; the public code keeps 0.5 itself too: ``inclusive=True``).

Every sample gives a line in a JSONL file as soon as it is measured, so that an interrupted run goes
on where it stopped::

    rows = measure_difficulty(source, policy, Path("difficulty.jsonl"))
    hard = Subset(source, [row.index for row in rows if row.kept])
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import gymnasium as gym
import numpy as np

from visenv.data.source import IndexedSource
from visenv.errors import ConfigurationError, DataError, PolicyError, ServiceError
from visenv.images import shrink, size_with_long_side
from visenv.policy import Policy
from visenv.types import Ask, Image, Message, Sample, Sampling

AnswerScore = Callable[[str, Sample], float]


class ScoredSource(IndexedSource, Protocol):
    """A finite source that knows how its answers are scored."""

    def score(self, answer: str, sample: Sample, compat: Literal["r1_vlm"] | None = None) -> float:
        """The score of an answer, 0 to 1."""
        ...


@dataclass(frozen=True, slots=True)
class Settings:
    """How difficulty is measured; the first line of the file.

    Attributes:
        samples: Answers for each question.
        temperature: What they are sampled at.
        max_tokens: Most tokens of an answer.
        threshold: Samples with a mean score below it are kept.
        inclusive: Whether a mean equal to it is kept too, as in the public code.
        view_side: The image's longer side is shrunk to this many pixels, as in training.
        seed: Seeds the sampling.
    """

    samples: int = 8
    temperature: float = 1.0
    max_tokens: int = 10
    threshold: float = 0.5
    inclusive: bool = False
    view_side: int = 1024
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Difficulty:
    """What was measured for one sample.

    Attributes:
        index: Its row in the source.
        id: `Sample.id`, or ``""`` when the row cannot be read.
        answers: The policy's answers.
        scores: Their scores, 0 to 1; empty when it could not be measured.
        mean: Their mean, or None.
        kept: Whether the filter keeps it.
        reason: ``"hard"``, ``"easy"``, or what went wrong.
    """

    index: int
    id: str
    answers: tuple[str, ...]
    scores: tuple[float, ...]
    mean: float | None
    kept: bool
    reason: str


class Subset:
    """Some rows of a source, in the order given, with the source's own scoring."""

    def __init__(self, source: ScoredSource, indices: Sequence[int]) -> None:
        self.source = source
        self.indices = tuple(indices)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Sample:
        return self.source[self.indices[index]]

    def score(self, answer: str, sample: Sample, compat: Literal["r1_vlm"] | None = None) -> float:
        """The source's score."""
        return self.source.score(answer, sample, compat)


def measure_difficulty(
    source: ScoredSource,
    policy: Policy[Any],
    path: Path,
    settings: Settings | None = None,
    score: AnswerScore | None = None,
    concurrency: int = 64,
    on_row: Callable[[Difficulty], None] | None = None,
) -> list[Difficulty]:
    """Ask every question of `source`, and write and return what came of each.

    Args:
        source: The samples.
        policy: Who answers. It is opened on a bare `gym.Env`, so it cannot be one that looks into
            its environment (oracle, random).
        path: The JSONL file; what it holds already is not asked again, except rows that could not
            be measured.
        settings: How to measure; the paper's by default.
        score: Scores an answer; the source's own by default.
        concurrency: Most questions in flight.
        on_row: Called with each newly measured row (progress bars).

    Returns:
        One row for each sample, in the order of the source.

    Raises:
        ConfigurationError: If the file was written with other settings or for other data.
        DataError: If the file is not one of this function's.
    """
    settings = settings or Settings()
    rows = _resume(path, settings, len(source))
    missing = [index for index in range(len(source)) if not (index in rows and rows[index].scores)]

    def record(row: Difficulty) -> None:
        rows[row.index] = row
        _append(path, asdict(row))
        if on_row is not None:
            on_row(row)

    examiner = _Examiner(source, policy, settings, score or source.score)
    asyncio.run(examiner.examine(missing, concurrency, record))
    return [rows[index] for index in range(len(source))]


class _Examiner:
    def __init__(
        self, source: ScoredSource, policy: Policy[Any], settings: Settings, score: AnswerScore
    ) -> None:
        self._source = source
        self._policy = policy
        self._settings = settings
        self._score = score
        self._env: gym.Env[Any, str] = gym.Env()

    async def examine(
        self, indices: Sequence[int], concurrency: int, record: Callable[[Difficulty], None]
    ) -> None:
        gate = asyncio.Semaphore(concurrency)

        async def one(index: int) -> None:
            async with gate:
                record(await self._measure(index))

        await asyncio.gather(*(one(index) for index in indices))

    async def _measure(self, index: int) -> Difficulty:
        identity = ""
        try:
            sample = self._source[index]
            identity = sample.id
            message = _question(sample, self._settings.view_side)
            draws = range(self._settings.samples)
            answers = await asyncio.gather(*(self._answer(message, index, draw) for draw in draws))
            scores = [float(self._score(answer, sample)) for answer in answers]
        except (DataError, PolicyError, ServiceError) as error:
            reason = f"{type(error).__name__}: {error}"
            return Difficulty(index, identity, (), (), None, False, reason)
        mean = sum(scores) / len(scores)
        kept = mean < self._settings.threshold or (
            self._settings.inclusive and mean == self._settings.threshold
        )
        reason = "hard" if kept else "easy"
        return Difficulty(index, identity, tuple(answers), tuple(scores), mean, kept, reason)

    async def _answer(self, message: Message, index: int, draw: int) -> str:
        settings = self._settings
        entropy = np.random.SeedSequence([settings.seed, index, draw])
        seed = int(entropy.generate_state(1)[0])
        session = self._policy.open(self._env, seed)
        session.observe([message])
        sampling = Sampling(settings.temperature, settings.max_tokens, seed)
        reply = await self._policy.respond(session, Ask(max_tokens=settings.max_tokens), sampling)
        return reply.text.strip()


def _question(sample: Sample, view_side: int) -> Message:
    text = f"{sample.question}\nGive only the answer, in one word or a short phrase."
    return Message("user", (*(_view(image, view_side) for image in sample.images), text))


def _view(image: Image, side: int) -> Image:
    if max(image.size) <= side:
        return image
    return Image.from_pixels(shrink(image.pixels, size_with_long_side(image.size, side)))


# ---------------------------------------------------------------------------- the file


def _resume(path: Path, settings: Settings, count: int) -> dict[int, Difficulty]:
    """The rows measured so far, by index; begins the file if there is none."""
    header = {"settings": asdict(settings), "samples_in_source": count}
    if not path.exists() or not path.stat().st_size:
        path.parent.mkdir(parents=True, exist_ok=True)
        _append(path, header)
        return {}
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]  # a killed run may have left half a line
    try:
        written, *lines = whole.decode().splitlines()
        found = json.loads(written)
        rows = [_row(json.loads(line)) for line in lines]
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{path} is not a file of difficulties: {error}.") from error
    if found != header:
        raise ConfigurationError(
            f"{path} was begun with {found}, not with {header}. Name another file, or delete it."
        )
    if whole != content:
        os.truncate(path, len(whole))
    return {row.index: row for row in rows}


def _row(fields: dict[str, Any]) -> Difficulty:
    listed = {name: tuple(fields[name]) for name in ("answers", "scores")}
    return Difficulty(**{**fields, **listed})


def _append(path: Path, value: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(value) + "\n")
