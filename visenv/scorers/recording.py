"""Recording the verdicts that a piece of code uses, and answering it from recorded ones.

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
    """Sees every verdict, and may answer in place of the backend. Any thread may call it."""

    def find(self, scorer: Scorer, digest: str) -> Verdict | None:
        """Return a recorded verdict, or None to ask the backend.

        A log that must not ask the backend raises an exception, which reaches the caller of the
        scorer.
        """
        ...

    def record(self, scorer: Scorer, verdict: Verdict) -> None:
        """Take note of a verdict, recorded ones included, in the order in which they arrive."""
        ...


_current: ContextVar[VerdictLog | None] = ContextVar("verdict_log", default=None)


@contextmanager
def using(log: VerdictLog | None) -> Iterator[None]:
    """Give all verdicts in the block, and in tasks that are started in it, to the log.

    Args:
        log: The log; None for none.
    """
    token = _current.set(log)
    try:
        yield
    finally:
        _current.reset(token)


def current_log() -> VerdictLog | None:
    """Return the log of the innermost `using` block around the caller."""
    return _current.get()
