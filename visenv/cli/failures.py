"""Ends a command with an error if every item of it failed.

A command that lists its failures, but exits with 0, looks like a success to a script.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from visenv.errors import VisenvError
from visenv.types import Episode


def check_not_all_aborted(groups: Iterable[tuple[str, Sequence[Episode]]]) -> None:
    """Raise an error if every episode of one of the groups was aborted.

    Args:
        groups: The name of each group in the error, ``""`` for none, and its episodes.

    Raises:
        VisenvError: With the number of episodes, and the first failure.
    """
    for name, episodes in groups:
        failures = [each.failure for each in episodes if each.failure is not None]
        check_not_all_failed(
            f"episodes{f' of {name}' if name else ''} were aborted",
            len(episodes),
            [str(failure) for failure in failures],
        )


def check_not_all_failed(what: str, total: int, reasons: Sequence[str]) -> None:
    """Raise an error if every item failed.

    Args:
        what: The items and what happened, as in ``"rows failed"``.
        total: The number of items; 0 is no failure.
        reasons: The reason of each item that failed.

    Raises:
        VisenvError: With the number of items, and the first reason.
    """
    if total and len(reasons) >= total:
        count = f"All {total}" if total > 1 else "All of 1"
        first = f" The first reason: {reasons[0]}" if reasons[0] else ""
        raise VisenvError(f"{count} {what}.{first}")
