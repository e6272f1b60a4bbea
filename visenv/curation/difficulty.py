"""Filters samples by difficulty: keeps the samples that the policy does not yet solve.

Each sample is tried several times, and is kept if the mean of its scores is below a threshold. Two
papers use this rule:

- `GROUNDLIGHT` (arXiv 2506.14821): the question is asked directly, with a few tokens for the
  answer, 8 times at temperature 1.0; samples below 0.5 are kept. `AskDifficulty` implements this.
- `ARM_THINKER` (section 3.2): the base model plays the task 5 times; samples with 5 right answers
  are dropped. `PlayDifficulty` implements this with episodes of the environment.

Both are steps (`visenv.curation.step`) over places (`visenv.curation.places`), so that an
interrupted measurement continues where it stopped. The output row of a kept place contains its
``mean`` score::

    AskDifficulty(source, policy).run(row_lines(source), Path("hard.jsonl"))
    hard = SourceSubset(source, [line.row["index"] for line in JsonLines("hard.jsonl")])
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal, Protocol

import gymnasium as gym
from typing_extensions import override

from visenv.curation.journal import RowOutcome, dropped, failed, kept
from visenv.curation.lines import Row
from visenv.curation.places import place_of, sample_at, source_of
from visenv.curation.step import CurationStep, seed_of
from visenv.data.source import IndexedSource
from visenv.errors import ConfigurationError, DataError
from visenv.images import fit
from visenv.policy import Policy
from visenv.rollout import Collector
from visenv.types import Episode, Message, Sample, Sampling, TurnRequest

AnswerScore = Callable[[str, Sample], float]


class ScoredSource(IndexedSource, Protocol):
    """Represents a finite source with its own scoring of answers."""

    def score(self, answer: str, sample: Sample, compat: Literal["r1_vlm"] | None = None) -> float:
        """Return the score of an answer, 0 to 1."""
        ...


@dataclass(frozen=True, slots=True)
class DifficultyConfig:
    """Sets how difficulty is measured, and which samples are kept.

    Attributes:
        samples: Tries of each sample.
        temperature: Sampling temperature of the tries.
        max_tokens: Maximum number of tokens of a reply.
        threshold: Samples with a lower mean score are kept.
        inclusive: Whether samples with a mean equal to the threshold are also kept, as in
            Groundlight's public code.

    Raises:
        ConfigurationError: If a value is out of range.
    """

    samples: int = 8
    temperature: float = 1.0
    max_tokens: int = 10
    threshold: float = 0.5
    inclusive: bool = False

    def __post_init__(self) -> None:
        if self.samples < 1 or self.max_tokens < 1:
            raise ConfigurationError(
                "Expected samples and max_tokens of at least 1, got "
                f"{self.samples} and {self.max_tokens}."
            )
        if not 0 <= self.threshold <= 1 or not self.temperature >= 0:
            raise ConfigurationError(
                "Expected a threshold from 0 to 1 and a temperature of at least 0, got "
                f"{self.threshold} and {self.temperature}."
            )

    def outcome(self, row: Row, scores: Sequence[float], **detail: Any) -> RowOutcome:
        """Return the outcome of a place whose tries had these scores, each from 0 to 1."""
        mean = sum(scores) / len(scores)
        detail |= {"scores": list(scores), "mean": mean}
        if mean < self.threshold or (self.inclusive and mean == self.threshold):
            return kept({**row, "mean": mean}, **detail)
        return dropped("easy", **detail)


GROUNDLIGHT = DifficultyConfig()
"""Keeps samples with a mean below 0.5 over 8 short answers."""

ARM_THINKER = DifficultyConfig(samples=5, max_tokens=2048, threshold=1.0)
"""Keeps samples unless all 5 tries are right. The paper states no temperature and length; these are
ours."""


class SourceSubset:
    """Selects some rows of a source, in the given order, with the scoring of the source."""

    def __init__(self, source: ScoredSource, indices: Sequence[int]) -> None:
        self.source = source
        self.indices = tuple(indices)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Sample:
        return self.source[self.indices[index]]

    def score(self, answer: str, sample: Sample, compat: Literal["r1_vlm"] | None = None) -> float:
        """Return the source's score."""
        return self.source.score(answer, sample, compat)


class PlayDifficulty(CurationStep):
    """Plays each place several times in its environment, and keeps the difficult ones.

    Args:
        make_env: Makes one environment.
        policy: The policy whose skill is measured.
        difficulty: How to measure difficulty.
        metric: The metric of correctness, 0 to 1. An episode without an answer scores 0; an aborted
            one fails the row.
        label: Name of the policy in the journal.
    """

    name: ClassVar[str] = "difficulty by playing"

    def __init__(
        self,
        make_env: Callable[[], gym.Env[Any, str]],
        policy: Policy[Any],
        difficulty: DifficultyConfig = ARM_THINKER,
        metric: str = "accuracy",
        label: str = "",
    ) -> None:
        sampling = Sampling(difficulty.temperature, difficulty.max_tokens)
        self._collector = Collector(make_env, policy, sampling)
        self._difficulty = difficulty
        self._metric = metric
        self._label = label

    @override
    def settings(self) -> dict[str, Any]:
        return {**asdict(self._difficulty), "metric": self._metric, "policy": self._label}

    @override
    async def decide(self, row: Row) -> RowOutcome:
        """Play the sample, and keep it if it is difficult."""
        places = [place_of(row, member) for member in range(self._difficulty.samples)]
        episodes = await asyncio.gather(*(self._collector.play(place) for place in places))
        for episode in episodes:
            if episode.status == "aborted":
                return failed("aborted", episode.end_reason)
        return self._difficulty.outcome(row, [self._score(episode) for episode in episodes])

    @override
    def close(self) -> None:
        """Close the environments; the policy stays open."""
        self._collector.close()

    def _score(self, episode: Episode) -> float:
        if episode.status != "terminated":
            return 0.0
        if self._metric not in episode.metrics:
            there = ", ".join(episode.metrics) or "none"
            raise DataError(f"{episode.env_id} has no metric {self._metric!r}; it has: {there}")
        return episode.metrics[self._metric]


class AskDifficulty(CurationStep):
    """Asks each question of a source several times, directly, without an environment.

    Args:
        source: The samples.
        policy: The policy that answers. It cannot be one that needs an environment (oracle,
            random).
        difficulty: How to measure difficulty.
        score: Scores an answer; by default the scoring of the source.
        view_side: Longest side of an image in pixels; larger images are shrunk, as in training.
        label: Name of the policy in the journal.
    """

    name: ClassVar[str] = "difficulty by asking"

    def __init__(
        self,
        source: ScoredSource,
        policy: Policy[Any],
        difficulty: DifficultyConfig = GROUNDLIGHT,
        score: AnswerScore | None = None,
        view_side: int = 1024,
        label: str = "",
    ) -> None:
        self._source = source
        self._policy = policy
        self._difficulty = difficulty
        self._score = score or source.score
        self._view_side = view_side
        self._label = label

    @override
    def settings(self) -> dict[str, Any]:
        return {
            **asdict(self._difficulty),
            "view_side": self._view_side,
            "samples_in_source": len(self._source),
            "policy": self._label,
        }

    @override
    async def decide(self, row: Row) -> RowOutcome:
        """Ask the policy, and keep the sample if it is difficult."""
        sample = sample_at(self._source, row)
        message = _question(sample, self._view_side)
        seeds = [seed_of(row["id"], draw) for draw in range(self._difficulty.samples)]
        answers = await asyncio.gather(*(self._answer(message, seed) for seed in seeds))
        scores = [float(self._score(answer, sample)) for answer in answers]
        return self._difficulty.outcome(row, scores, sample=sample.id, answers=list(answers))

    async def _answer(self, message: Message, seed: int) -> str:
        session = self._policy.open(seed)
        session.observe([message])
        most = self._difficulty.max_tokens
        sampling = Sampling(self._difficulty.temperature, most, seed)
        reply = await self._policy.respond(session, TurnRequest(max_tokens=most), sampling)
        return reply.text.strip()


def _question(sample: Sample, view_side: int) -> Message:
    text = f"{sample.question}\nGive only the answer, in one word or a short phrase."
    images = [fit(image, view_side * view_side, view_side) for image in sample.images]
    return Message("user", (*images, text))


@dataclass(eq=False)
class Difficulty(CurationStep):
    """Measures how often a policy is right, and keeps the difficult samples.

    By playing, samples that are right 5 times of 5 are dropped (ARM-Thinker); by asking without the
    environment, samples with a mean of at least 0.5 over 8 answers are dropped (Groundlight). The
    output is a file for --places.
    """

    make_env: Callable[[], gym.Env[Any, str]]
    policy: Policy[Any]
    label: str = ""
    by: Literal["playing", "asking"] = "playing"
    """Play the environment, or only ask the question."""
    tries: int | None = None
    """Number of tries for each sample."""
    threshold: float | None = None
    """A sample is kept if its mean is below this value."""
    inclusive: bool = False
    """Also keep a sample whose mean is equal to the threshold."""
    metric: str = "accuracy"
    """The metric that measures how right an episode was."""
    temperature: float = 1.0
    """Sampling temperature."""
    max_tokens: int | None = None
    """Maximum number of tokens in a turn."""

    def __post_init__(self) -> None:
        self._step = self._playing() if self.by == "playing" else self._asking()

    def _playing(self) -> CurationStep:
        measure = replace(ARM_THINKER, **self._measure())
        return PlayDifficulty(self.make_env, self.policy, measure, self.metric, self.label)

    def _asking(self) -> CurationStep:
        source = source_of(self.make_env)
        if not hasattr(source, "score"):
            raise ConfigurationError(
                "--by asking needs a data set that scores answers, as --data NAME:FOLDER, got "
                f"{type(source).__name__}."
            )
        measure = replace(GROUNDLIGHT, **self._measure())
        return AskDifficulty(source, self.policy, measure, label=self.label)

    def _measure(self) -> dict[str, Any]:
        """Return the settings that differ from those of the paper."""
        own = {
            "samples": self.tries,
            "threshold": self.threshold,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "inclusive": self.inclusive,
        }
        return {name: value for name, value in own.items() if value is not None}

    @property
    @override
    def name(self) -> str:  # type: ignore[override]
        """Return the name in the journal, which contains the way of measuring."""
        return self._step.name

    @override
    def settings(self) -> Mapping[str, Any]:
        return self._step.settings()

    @override
    async def decide(self, row: Row) -> RowOutcome:
        return await self._step.decide(row)

    @override
    def close(self) -> None:
        self._step.close()
