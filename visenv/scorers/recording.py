"""Records the verdicts that a block of code uses, and answers requests from recorded verdicts.

::

    with using(log):
        score = await judge(question=question, answer=answer)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from visenv.scorers.scorer import Scorer
    from visenv.scorers.service import Verdict


class VerdictLog(Protocol):
    """Receives every verdict, and may answer instead of the backend; any thread may call it."""

    def find(self, scorer: Scorer, digest: str) -> Verdict | None:
        """Return a recorded verdict, or None to use the backend.

        A log that must not use the backend raises an exception, which reaches the caller of the
        scorer.
        """
        ...

    def record(self, scorer: Scorer, verdict: Verdict) -> None:
        """Record a verdict, including recorded ones, in the order in which they arrive."""
        ...


_current: ContextVar[VerdictLog | None] = ContextVar("verdict_log", default=None)


@contextmanager
def using(log: VerdictLog | None) -> Iterator[None]:
    """Pass all verdicts in the block, and in tasks that are started in it, to the log.

    Args:
        log: The log, or None for no log.
    """
    token = _current.set(log)
    try:
        yield
    finally:
        _current.reset(token)


def current_log() -> VerdictLog | None:
    """Return the log of the innermost `using` block around the caller."""
    return _current.get()
