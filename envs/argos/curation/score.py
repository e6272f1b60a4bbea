"""Turns traces into episodes, which the environment's verifier scores (section 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from visenv.curation.journal import RowOutcome, failed, kept
from visenv.curation.lines import Row
from visenv.curation.places import place_of
from visenv.curation.step import CurationStep
from visenv.data.rows import text_of
from visenv.episodes import episode_to_json, save_images
from visenv.errors import DataError
from visenv.grammar.points import TraceReferences
from visenv.policy import Policy, Session
from visenv.rollout.episode import play
from visenv.types import Reply, Sampling, TurnRequest

from .extraction import references_of
from .rows import MakeEnv, SampleEnv


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
