"""Saves finished episodes in the journal of a run until a checkpoint covers their step.

::

    journal/run.json                    the settings of the run
    journal/step_000012/
        episodes_0.jsonl, images/       finished episodes of process 0 (`visenv.episodes`)
        kept_0_of_1.json                written at the end of the step: the selected groups, and the
                                    metrics and the seconds of playing them

A run that was killed continues from its last checkpoint and repeats the steps after it. Episodes of
these steps that are in the journal are read and not played again, so no finished episode is lost.
The episodes of a step have a folder of their own, which is deleted with the step, so no episode is
used in another step. Aborted episodes are not saved; the resumed run plays them again.

A line that cannot be read (for example an incomplete line of a run that was killed) is ignored, and
its episode is played again.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from visenv.checksums import sealed, unsealed
from visenv.decoding.json_text import WRONG_VALUES, read_json_at
from visenv.episodes import append_episode, read_episode_lines
from visenv.errors import RunError
from visenv.files import check_no_link, open_output, output_folder, write_text
from visenv.old_names import with_new_names
from visenv.types import Episode, Group

from .changes import CHECKPOINT_SETTINGS, compare

_SYNC_SECONDS = 1.0
"""Maximum time between two syncs to disk, in seconds.

A power cut loses the episodes of this time, and those whose images are not on the disk yet; the
resumed run plays them again. A killed process loses no added episode.
"""


class JournalEntries(NamedTuple):
    """Holds the entries of a journal for one step.

    Attributes:
        episodes: The episodes by group and member.
        kept: The selected groups of the step; None if the selection was not complete, or one of
            their episodes is missing.
        report: The metrics of playing the step (`EpisodeSource.report`).
        seconds: The seconds in which the step was played.
    """

    episodes: Mapping[tuple[int, int], Episode]
    kept: list[Group] | None
    report: Mapping[str, float] = {}
    seconds: float = 0.0


class EpisodeJournal:
    """Reads and extends the journal of one run.

    Args:
        folder: The folder of the journal.
        run: The settings of the run, JSON-like; a journal with other settings is refused.
        rank: The number of this process, from 0.
        count: The number of processes of the run.
        exact: Whether only complete steps are read; an incomplete step is then played again as a
            whole. The rounding of a model that samples in batches depends on the shape of the batch
            (by 1e-7). A step that is partly read and partly played is therefore not bitwise equal
            to the interrupted step. A step that is completely read or completely played is.

    Attributes:
        exact: The value of the argument.

    Raises:
        RunError: If the journal belongs to another run.
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
            write_text(output_folder(self._folder) / "run.json", json.dumps(sealed(run), indent=2))
            return
        changes = compare(_settings(path), run, CHECKPOINT_SETTINGS)
        if changes.refused:
            raise RunError(
                f"{self._folder} holds episodes of a run with other settings: "
                f"{'; '.join(changes.refused)}. Use the old settings to continue it, or another "
                "name to start a new run."
            )
        if changes.allowed:
            write_text(path, json.dumps(sealed(run), indent=2))

    def read(self, step: int) -> JournalEntries:
        """Return the episodes of a step from all processes, and the groups that it keeps.

        Episodes that must not be used with `exact` are removed.
        """
        own = self._episodes(step)
        _cut(own)
        episodes: dict[tuple[int, int], Episode] = {}
        for path in sorted(own.parent.glob("episodes_*.jsonl")):
            episodes |= _read(path)
        found = _entries(self._decision(step), episodes)
        if self.exact and found.kept is None:
            own.unlink(missing_ok=True)
            return JournalEntries({}, None)
        return found

    def add(self, step: int, episode: Episode) -> Future[None]:
        """Save a finished episode in another thread; aborted episodes are not saved.

        Returns:
            A future that is done when the episode is on disk. Its exception is an `OSError` if, for
            example, the disk is full.
        """
        written = self._writer.submit(self._write, self._episodes(step), episode)
        self._pending.setdefault(step, []).append(written)
        return written

    def finish(
        self,
        step: int,
        kept: Mapping[int, Group],
        report: Mapping[str, float] | None = None,
        seconds: float = 0.0,
    ) -> Future[None]:
        """Save the numbers and episodes of the selected groups of the step.

        Args:
            step: The step.
            kept: The selected groups, by number.
            report: The metrics of playing the step.
            seconds: The seconds in which the step was played.

        Returns:
            A future that is done when the selection and every episode of the step are on disk.
        """
        keys = [[(number, each.member) for each in group] for number, group in kept.items()]
        told = {"groups": keys, "report": dict(report or {}), "seconds": seconds}
        return self._writer.submit(self._decide, step, told)

    def prune(self, step: int) -> None:
        """Remove the first `step` steps, which a checkpoint covers."""
        for folder in self._folder.glob("step_*"):
            if int(folder.name.removeprefix("step_")) < step:
                shutil.rmtree(folder)

    def forget(self, step: int) -> None:
        """Remove a complete step, counted from 0."""
        shutil.rmtree(self._episodes(step).parent, ignore_errors=True)

    # ------------------------------------------------------------------ on the writing thread

    def _write(self, path: Path, episode: Episode) -> None:
        if episode.status == "aborted":
            return
        append_episode(output_folder(path.parent) / path.name, episode)
        if time.monotonic() - self._synced > _SYNC_SECONDS:
            self._sync(path)

    def _decide(self, step: int, told: Mapping[str, Any]) -> None:
        for written in self._pending.pop(step, ()):
            written.result()
        path = self._decision(step)
        output_folder(path.parent)
        self._sync(self._episodes(step))
        write_text(path, json.dumps(sealed(told)))

    # ------------------------------------------------------------------ files

    def _episodes(self, step: int) -> Path:
        return self._folder / f"step_{step:06d}" / f"episodes_{self._rank}.jsonl"

    def _decision(self, step: int) -> Path:
        return self._episodes(step).with_name(f"kept_{self._rank}_of_{self._count}.json")

    def _sync(self, path: Path) -> None:
        with open_output(path, "ab") as file:
            os.fsync(file.fileno())
        self._synced = time.monotonic()


def _cut(path: Path) -> None:
    """Remove an incomplete line at the end, so that the next line does not continue it."""
    check_no_link(path)
    if path.exists():
        content = path.read_bytes()
        os.truncate(path, content.rfind(b"\n") + 1)


def _read(path: Path) -> dict[tuple[int, int], Episode]:
    """Return the episodes of a file by group and member; a later one replaces an earlier one."""
    episodes: dict[tuple[int, int], Episode] = {}
    for line in read_episode_lines(path):
        episode = line.episode
        if episode is None:
            continue
        episodes[episode.group, episode.member] = episode
    return episodes


def _settings(path: Path) -> dict[str, Any]:
    try:
        return with_new_names(unsealed(read_json_at(path)))
    except WRONG_VALUES as error:
        raise RunError(
            f"{path} is not the record of a run: {error}. Delete the folder {path.parent} to play "
            "the steps after the last checkpoint again."
        ) from error


def _entries(path: Path, episodes: Mapping[tuple[int, int], Episode]) -> JournalEntries:
    """Return the entries of a step; without groups if the file cannot be used."""
    if not path.exists():
        return JournalEntries(episodes, None)
    try:
        told = unsealed(read_json_at(path))
        kept: list[Group] = [
            [episodes[number, member] for number, member in group] for group in told["groups"]
        ]
        report = {str(name): float(value) for name, value in told["report"].items()}
        return JournalEntries(episodes, kept, report, float(told["seconds"]))
    except WRONG_VALUES:
        return JournalEntries(episodes, None)
