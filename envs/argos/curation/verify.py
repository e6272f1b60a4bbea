"""Scores traces, keeps the best of each sample (section 4), and splits samples for SFT and RL.

The rollouts are episodes of `ArgosImage` or `ArgosVideo` from `visenv data trajectories`, so that
their reward is the score of the verifier::

    visenv data trajectories ArgosImage-v0 --tries 8 --temperature 0.6 --max-tokens 6144 …
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from typing_extensions import override

from visenv.curation.journal import RowOutcome, dropped, failed, kept
from visenv.curation.lines import InputRow, Row
from visenv.curation.places import place_of
from visenv.curation.step import CurationStep, seed_of
from visenv.data.rows import text_of
from visenv.episodes import episode_from_json, episode_to_json, save_images
from visenv.errors import ConfigurationError, DataError
from visenv.grammar.points import TraceReferences
from visenv.policy import Policy, Session
from visenv.rollout.episode import play
from visenv.types import Reply, Sampling, TurnRequest
from visenv.verifier.verifier import ACCURACY

from .extraction import references_of
from .rows import MakeEnv, SampleEnv

Part = Literal["sft", "rl"]


@dataclass(eq=False)
class ScoreTraces(CurationStep):
    """Turns rows with traces into episodes, whose reward is the score of the verifier.

    The trace becomes the turn of the policy, and its references are taken from the extraction. A
    row fails if its episode is aborted because a teacher of the verifier failed.
    """

    name: ClassVar[str] = "argos-score"

    make_env: MakeEnv
    folder: Path
    label: str = ""

    def __post_init__(self) -> None:
        self._all = [SampleEnv(self.make_env)]
        self._idle = list(self._all)

    @override
    def settings(self) -> dict[str, Any]:
        return {"env": self.label}

    @override
    async def decide(self, row: Row) -> RowOutcome:
        place, trace, references = place_of(row), text_of(row, "trace"), references_of(row)
        samples = self._free()
        try:
            samples.base.read_by(_Given(references))
            episode = await play(samples.env, _Says(trace), place)
        finally:
            self._idle.append(samples)
        if episode.status == "aborted":
            return failed("aborted", episode.end_reason)
        if episode.sample_id != row.get("sample"):
            raise DataError(
                f"the place contains {episode.sample_id!r}, but the row {row.get('sample')!r:.80}"
            )
        save_images(self.folder / "images", episode.images)
        scored = {"id": row["id"], **episode_to_json(episode), "extraction": row["extraction"]}
        return kept(scored)

    def _free(self) -> SampleEnv:
        if not self._idle:
            self._idle.append(SampleEnv(self.make_env))
            self._all += self._idle
        return self._idle.pop()

    @override
    def close(self) -> None:
        for samples in self._all:
            samples.close()


@dataclass(frozen=True)
class _Given:
    """Returns the given references of a trace, instead of extracting them."""

    references: TraceReferences

    async def extract(self, trace: str) -> TraceReferences:
        return self.references


class _Says(Policy[Session]):
    """Replies with a given text."""

    def __init__(self, text: str) -> None:
        self._text = text

    @override
    def open(self, seed: int) -> Session:
        return Session()

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        reply = Reply.of_text(self._text)
        session.said(reply)
        return reply


@dataclass(eq=False)
class Verify(CurationStep):
    """Keeps a sample if its best rollout scores at least `threshold` and its answer is right.

    The best rollout has the largest reward; ties go to the first.

    Attributes:
        paper_yield: The share of rollouts that the paper kept (section 4).

    Raises:
        ConfigurationError: If `threshold` is not in (0, 1].
    """

    name: ClassVar[str] = "argos-verify"
    paper_yield: ClassVar[float] = 0.031

    lines: Iterable[InputRow]
    images: Path
    folder: Path
    threshold: float = 0.7
    """Minimum reward."""

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise ConfigurationError(f"threshold must be in (0, 1], got {self.threshold}.")
        self._best = best_rollouts(self.lines)

    @override
    def settings(self) -> dict[str, Any]:
        """Return the threshold, which decides whether a rollout is kept."""
        return {"threshold": self.threshold}

    @override
    def notes(self) -> list[str]:
        """Return the share of kept rollouts."""
        share = self.report.kept / max(1, self.report.lines)
        return [f"yield {share:.1%} of the rollouts (paper: {self.paper_yield:.1%})"]

    @override
    async def decide(self, row: Row) -> RowOutcome:
        """Keep the rollout if it is the best of its sample and good enough."""
        reward, accuracy = _reward(row), _accuracy(row)
        if self._best[sample_of(row)] != row["id"]:
            return dropped("another rollout of the sample is better")
        if accuracy < 1:
            return dropped("the answer is wrong")
        if reward < self.threshold:
            return dropped("the score is below the threshold", reward=reward)
        if (self.folder / "images").absolute() != self.images.absolute():
            save_images(self.folder / "images", episode_from_json(row, self.images).images)
        return kept(row)


def best_rollouts(lines: Iterable[InputRow]) -> dict[str, str]:
    """Return the id of the best rollout of each sample; unusable rows are skipped.

    A right answer is always better than a wrong one, independent of the reward.
    """
    best: dict[str, tuple[float, float, str]] = {}
    for line in lines:
        if line.problem:
            continue
        try:
            sample = sample_of(line.row)
            score = _accuracy(line.row) >= 1, _reward(line.row)
        except DataError:
            continue
        if sample not in best or score > best[sample][:2]:
            best[sample] = (*score, line.id)
    return {sample: identity for sample, (_, _, identity) in best.items()}


def sample_of(row: Row) -> str:
    """Return the id of the sample of an episode.

    Raises:
        DataError: If the row is not an episode.
    """
    sample = row.get("sample_id")
    if not isinstance(sample, str) or not sample:
        raise DataError(f"no sample_id: {sample!r:.80}")
    return sample


def _accuracy(row: Row) -> float:
    """Return the accuracy of the verifier if there is one, otherwise that of the metrics.

    The metric compares answers by rules, so it is 0 for an open answer that the judge accepted.
    """
    terms = row.get("terms")
    if isinstance(terms, Mapping) and terms.get(ACCURACY) is not None:
        return _number(terms, ACCURACY)
    metrics = row.get("metrics")
    if not isinstance(metrics, Mapping):
        raise DataError(f"an episode must have metrics, an object, got {metrics!r:.80}")
    return _number(metrics, ACCURACY)


def _reward(row: Row) -> float:
    turns = row.get("turns")
    if not isinstance(turns, list) or not all(isinstance(turn, Mapping) for turn in turns):
        raise DataError(f"an episode must have turns, a list of objects, got {turns!r:.80}")
    return sum(_number(turn, "reward") for turn in turns)


def _number(row: Mapping[str, Any], key: str) -> float:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise DataError(f"no number {key}: {value!r:.80}")
    return float(value)


@dataclass(eq=False)
class Mix(CurationStep):
    """Keeps the rows of one part. The part of a sample depends only on its id and the seed.

    Raises:
        ConfigurationError: If `rl_share` is not between 0 and 1, or there is no such part.
    """

    name: ClassVar[str] = "argos-mix"

    keep: Part
    """The part to keep."""
    rl_share: float = 0.05
    """Share of the samples in the RL part; in the paper about 4.5K of 89.5K."""
    seed: int = 0
    """Seed of the split; use the same for both parts."""

    def __post_init__(self) -> None:
        if self.keep not in ("sft", "rl") or not 0 <= self.rl_share <= 1:
            raise ConfigurationError(
                f"Expected 'sft' or 'rl' and rl_share from 0 to 1, got {self.keep!r} and "
                f"{self.rl_share}."
            )

    @override
    def settings(self) -> dict[str, Any]:
        """Return the part, and the parameters of the split."""
        return {"part": self.keep, "rl_share": self.rl_share, "seed": self.seed}

    @override
    async def decide(self, row: Row) -> RowOutcome:
        """Keep the row if its sample is in this part."""
        is_rl = seed_of(sample_of(row), self.seed) < self.rl_share * 2**32
        mine = "rl" if is_rl else "sft"
        return kept(row) if mine == self.keep else dropped(f"the sample is for {mine}")
