"""The difficulty filter: keep what the policy does not know, or cannot do, yet.

Each sample is tried several times and kept when the mean of its scores is below a threshold. Two
papers, one rule:

- `GROUNDLIGHT` (arXiv 2506.14821): each question is asked straight, with a few tokens to answer in,
  8 times at temperature 1.0; kept below 0.5. `AskDifficulty` asks so.
- `ARM_THINKER` (section 3.2): the base model plays the task 5 times; what it gets right all five
  times is dropped. `PlayDifficulty` plays so, through the environment.

Both are steps (`visenv.curation.step`) over places (`visenv.curation.places`), so an interrupted
measurement goes on where it stopped; a kept place goes out with its ``mean`` score::

    AskDifficulty(source, policy).run(row_lines(source), Path("hard.jsonl"))
    hard = SourceSubset(source, [line.row["index"] for line in JsonLines("hard.jsonl")])
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, Protocol

import gymnasium as gym
from typing_extensions import override

from visenv.curation.journal import RowOutcome, dropped, failed, kept
from visenv.curation.lines import Row
from visenv.curation.places import place_of, sample_at
from visenv.curation.step import CurationStep, seed_of
from visenv.data.source import IndexedSource
from visenv.errors import ConfigurationError, DataError
from visenv.images import fit
from visenv.policy import Policy
from visenv.rollout import Collector
from visenv.types import Episode, Message, Sample, Sampling, TurnRequest

AnswerScore = Callable[[str, Sample], float]


class ScoredSource(IndexedSource, Protocol):
    """A finite source that knows how its answers are scored."""

    def score(self, answer: str, sample: Sample, compat: Literal["r1_vlm"] | None = None) -> float:
        """Return the score of an answer, 0 to 1."""
        ...


@dataclass(frozen=True, slots=True)
class DifficultyConfig:
    """Sets how difficulty is measured, and what is kept.

    Attributes:
        samples: Tries of each sample.
        temperature: What they are sampled at.
        max_tokens: Most tokens of a reply.
        threshold: Samples with a mean score below it are kept.
        inclusive: Whether a mean equal to it is kept too, as in Groundlight's public code.

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
        """Return the outcome of the place whose tries had these scores, each 0 to 1."""
        mean = sum(scores) / len(scores)
        detail |= {"scores": list(scores), "mean": mean}
        if mean < self.threshold or (self.inclusive and mean == self.threshold):
            return kept({**row, "mean": mean}, **detail)
        return dropped("easy", **detail)


GROUNDLIGHT = DifficultyConfig()
"""Mean of 8 short answers below 0.5."""

ARM_THINKER = DifficultyConfig(samples=5, max_tokens=2048, threshold=1.0)
"""Not right 5 times of 5. Temperature and length are ours: the paper names none."""


class SourceSubset:
    """Selects some rows of a source, in the order given, with the source's own scoring."""

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
    """Plays each place several times in its environment.

    Args:
        make_env: Makes one environment.
        policy: Who is tried.
        difficulty: How to measure.
        metric: The metric that says how right an episode was, 0 to 1. An episode without an answer
            scores 0; an aborted one fails the row.
        label: What the journal calls the policy.
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
    """Asks each question of a source several times, straight, without an environment.

    Args:
        source: The samples.
        policy: The policy that answers. It cannot be one that asks an environment for advice
            (oracle, random).
        difficulty: How to measure.
        score: Scores an answer; the source's own by default.
        view_side: An image is shrunk to this many pixels on its longer side, as in training.
        label: What the journal calls the policy.
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
