"""Finds a held-out episode that training changed, and links to both episodes in the report."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from visenv.episodes import read_episodes


class Change(NamedTuple):
    """Names two episodes of one held-out sample by their lines.

    Attributes:
        before: The line of the first episode, counted from 0.
        after: The line of the second episode.
        gain: The reward of the second episode minus that of the first one.
    """

    before: int
    after: int
    gain: float


def largest_change(before: Path, after: Path) -> Change | None:
    """Return the two episodes of the sample whose reward increased most; the first of equal ones.

    Args:
        before: A file of episodes.
        after: A file of episodes of another policy.

    Returns:
        The two episodes, or None if no reward has risen.
    """
    lines = {
        (episode.env_id, episode.sample_id, episode.seed): (line, episode.reward)
        for line, episode in enumerate(read_episodes(before, messages=False))
        if episode.status != "aborted"
    }
    best: Change | None = None
    for line, episode in enumerate(read_episodes(after, messages=False)):
        found = lines.get((episode.env_id, episode.sample_id, episode.seed))
        if found is None or episode.status == "aborted":
            continue
        change = Change(found[0], line, episode.reward - found[1])
        if change.gain > (best.gain if best else 0.0):
            best = change
    return best


def link_change(folder: Path, before: Path, after: Path) -> str | None:
    """Return the address of the page of the report with the largest change, side by side.

    Args:
        folder: The folder of the run, which holds ``report.html``.
        before: A file of episodes in the folder.
        after: A file of episodes of another policy in the folder.

    Returns:
        The address, or None if no reward has risen.
    """
    change = largest_change(before, after)
    if change is None:
        return None
    names = (path.relative_to(folder).with_suffix("").as_posix() for path in (before, after))
    first, second = (quote(name, safe="") for name in names)
    page = (folder / "report.html").absolute().as_uri()
    return f"{page}#/pair/{first}/{change.before}/{second}/{change.after}"
