"""The journal of a run: finished episodes, kept safe until a checkpoint holds what they taught.

::

    journal/run.json                    the run's settings
    journal/step_000012/
        episodes_0.jsonl, images/       episodes as process 0 finished them (`visenv.episodes`)
        kept_0_of_1.json                in the end: which of them it learns from

A run that is killed and goes on from its last checkpoint takes the steps since then again. What the
journal holds of them is read, not played: no finished episode is lost, and as a step's episodes lie
under its number and go with it, none is used for another. Aborted ones are not kept: the run that
goes on tries them again.

A line that cannot be read (half of one, of a run that was killed while it wrote) stands for an
episode that was not finished.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from visenv.episodes import append_episode, episode_from_json
from visenv.errors import DataError, RunError
from visenv.files import replacing
from visenv.old_names import with_new_names
from visenv.types import Episode, Group

_SYNC_SECONDS = 1.0
"""A power cut loses at most this much; a killed process loses nothing that was added."""


class JournalEntries(NamedTuple):
    """Holds what a journal knows of one step.

    Attributes:
        episodes: By group and member.
        kept: The groups the step learns from; None where that was not decided yet, or one of their
            episodes is not there.
    """

    episodes: Mapping[tuple[int, int], Episode]
    kept: list[Group] | None


class EpisodeJournal:
    """Reads and extends the journal of one run.

    Args:
        folder: Where it lies.
        run: What the run was told, JSON-like; a journal of a run that was told otherwise is
            refused.
        rank: The number of this process, from 0.
        count: How many processes take part in the run.
        exact: Whether a step is read only where it was played to its end; otherwise it is played
            again as a whole. A model that samples in batches rounds differently in batches of
            another shape (by 1e-7), so a step that is half read and half played is not to the bit
            the one that was killed; one that is read whole is, and one that is played whole is.

    Attributes:
        exact: The same.

    Raises:
        RunError: If the journal is of another run.
    """

    def __init__(
        self,
        folder: Path,
        run: Mapping[str, Any],
        *,
        rank: int = 0,
        count: int = 1,
        exact: bool = True,
    ) -> None:
        self._folder = folder
        self._rank = rank
        self._count = count
        self.exact = exact
        self._synced = time.monotonic()
        self._writer = ThreadPoolExecutor(1, "visenv-journal")
        self._pending: dict[int, list[Future[None]]] = {}
        self._claim(json.loads(json.dumps(run)))

    def _claim(self, run: Mapping[str, Any]) -> None:
        path = self._folder / "run.json"
        if not path.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            with replacing(path) as partial:
                partial.write_text(json.dumps(run, indent=2), encoding="utf-8")
        elif with_new_names(json.loads(path.read_text(encoding="utf-8"))) != run:
            raise RunError(
                f"{self._folder} holds episodes of a run with other settings (run.json says which)."
                " Give the old ones to continue it, or another run name to start a new run."
            )

    def read(self, step: int) -> JournalEntries:
        """Return the episodes of a step from all processes, and the groups that it keeps.

        What `exact` forbids to use is removed.
        """
        own = self._episodes(step)
        _cut(own)
        episodes: dict[tuple[int, int], Episode] = {}
        for path in sorted(own.parent.glob("episodes_*.jsonl")):
            episodes |= _read(path)
        kept = _kept(self._decision(step), episodes)
        if self.exact and kept is None:
            own.unlink(missing_ok=True)
            episodes = {}
        return JournalEntries(episodes, kept)

    def add(self, step: int, episode: Episode) -> Future[None]:
        """Keep a finished episode, unless it was aborted; written by another thread.

        Returns:
            Done when it is safe; holds the `OSError` of a full disk.
        """
        written = self._writer.submit(self._write, self._episodes(step), episode)
        self._pending.setdefault(step, []).append(written)
        return written

    def finish(self, step: int, kept: Mapping[int, Group]) -> Future[None]:
        """Note what the step learns from: groups by number.

        Returns:
            Done when that is safe, and every episode of the step.
        """
        keys = [[(number, each.member) for each in group] for number, group in kept.items()]
        return self._writer.submit(self._decide, step, keys)

    def prune(self, step: int) -> None:
        """Remove the first `step` steps: a checkpoint holds what they taught."""
        for folder in self._folder.glob("step_*"):
            if int(folder.name.removeprefix("step_")) < step:
                shutil.rmtree(folder)

    # ------------------------------------------------------------------ on the writing thread

    def _write(self, path: Path, episode: Episode) -> None:
        if episode.status == "aborted":
            return
        append_episode(path, episode)
        if time.monotonic() - self._synced > _SYNC_SECONDS:
            self._sync(path)

    def _decide(self, step: int, keys: Sequence[Sequence[tuple[int, int]]]) -> None:
        for written in self._pending.pop(step, ()):
            written.result()
        path = self._decision(step)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            partial.write_text(json.dumps(keys), encoding="utf-8")
        self._sync(self._episodes(step))

    # ------------------------------------------------------------------ files

    def _episodes(self, step: int) -> Path:
        return self._folder / f"step_{step:06d}" / f"episodes_{self._rank}.jsonl"

    def _decision(self, step: int) -> Path:
        return self._episodes(step).with_name(f"kept_{self._rank}_of_{self._count}.json")

    def _sync(self, path: Path) -> None:
        with path.open("ab") as file:
            os.fsync(file.fileno())
        self._synced = time.monotonic()


def _cut(path: Path) -> None:
    """Cut off half a line at the end, so that the next one does not continue it."""
    if path.exists():
        content = path.read_bytes()
        os.truncate(path, content.rfind(b"\n") + 1)


def _read(path: Path) -> dict[tuple[int, int], Episode]:
    """Return the episodes of a file by group and member; a later one replaces an earlier one."""
    episodes: dict[tuple[int, int], Episode] = {}
    for line in path.read_bytes().splitlines():
        try:
            record = json.loads(line.decode("utf-8", "surrogatepass"))
            episode = episode_from_json(record, path.parent / "images")
        except (ValueError, RecursionError, DataError):
            continue
        episodes[episode.group, episode.member] = episode
    return episodes


def _kept(path: Path, episodes: Mapping[tuple[int, int], Episode]) -> list[Group] | None:
    if not path.exists():
        return None
    try:
        keys = json.loads(path.read_text(encoding="utf-8"))
        return [[episodes[number, member] for number, member in group] for group in keys]
    except (ValueError, TypeError, LookupError):
        return None
