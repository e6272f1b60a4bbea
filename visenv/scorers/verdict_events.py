"""Logs verdicts of scorers as events of an episode, and replays recorded verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from visenv.errors import ServiceError
from visenv.types import Scored

if TYPE_CHECKING:
    from visenv.scorers.scorer import Scorer
    from visenv.scorers.service import Verdict

Verdicts = Mapping[tuple[str, str], Scored]
"""Recorded verdicts by the name of the scorer and the digest of the request."""


def recorded_verdicts(events: Iterable[Any]) -> dict[tuple[str, str], Scored]:
    """Return the verdicts among the events of a saved episode."""
    verdicts = [event for event in events if type(event) is Scored]
    return {(verdict.scorer, verdict.digest): verdict for verdict in verdicts}


class EpisodeVerdicts:
    """Logs every verdict as a `Scored` event, and answers with recorded verdicts (a `VerdictLog`).

    Args:
        turn: The turn after which scorers are used, from 0.
        term: The reward term that requests verdicts, or ``""``.
        recorded: Recorded verdicts. If None, the scorers are used; otherwise a verdict that is not
            recorded is requested only if `ask_missing` is True.
        ask_missing: Whether verdicts that are not recorded are requested from scorers.
    """

    def __init__(
        self, turn: int, term: str, recorded: Verdicts | None, ask_missing: bool = False
    ) -> None:
        self._events: list[Scored] = []
        self._turn = turn
        self._term = term
        self._recorded = recorded
        self._ask_missing = ask_missing

    def sorted_events(self) -> list[Scored]:
        """Return the verdicts so far, sorted by scorer and request.

        They are sorted because concurrent verdicts arrive in a different order in each run.
        """
        return sorted(self._events, key=lambda event: (event.scorer, event.digest))

    def find(self, scorer: Scorer, digest: str) -> Verdict | None:
        """Return a recorded verdict, or None to use the scorer.

        Raises:
            ServiceError: If there are recorded verdicts, but not this one, and it may not be
                requested.
        """
        if self._recorded is None:
            return None
        from visenv.scorers.service import Verdict
        from visenv.scorers.values import from_json

        known = self._recorded.get((scorer.name, digest))
        if known is not None:
            return Verdict(from_json(known.value), known.model, digest)
        if self._ask_missing:
            return None
        raise ServiceError(
            scorer.name,
            "the episode has no verdict on this request; set ask_missing (--ask) to request one.",
        )

    def record(self, scorer: Scorer, verdict: Verdict) -> None:
        """Log a verdict."""
        from visenv.scorers.values import to_json

        value = to_json(verdict.value)
        self._events.append(
            Scored(self._turn, self._term, scorer.name, verdict.model, verdict.digest, value)
        )
