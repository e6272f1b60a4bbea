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
        failures = [str(each.failure) for each in episodes if each.failure is not None]
        what = f"episodes{f' of {name}' if name else ''} were aborted"
        check_not_all_failed(what, len(episodes), len(failures), next(iter(failures), ""))


def check_not_all_failed(what: str, total: int, failed: int, first_reason: str) -> None:
    """Raise an error if every item failed.

    Args:
        what: The items and what happened, as in ``"rows failed"``.
        total: The number of items; 0 is no failure.
        failed: The number of items that failed.
        first_reason: The reason of the first item that failed, ``""`` if there is none.

    Raises:
        VisenvError: With the number of items, and the first reason.
    """
    if total and failed >= total:
        count = f"All {total}" if total > 1 else "All of 1"
        first = f" The first reason: {first_reason}" if first_reason else ""
        raise VisenvError(f"{count} {what}.{first}")
