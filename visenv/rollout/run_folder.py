"""Defines `RunFolder`, the folder of a rollout or an evaluation, which can be resumed.

::

    run.json            the settings; package versions and commit of each process that played
    episodes.jsonl      the episodes in the order in which they ended (`visenv.episodes`)
    images/

Each episode is saved when it ends. If a process is killed, the episodes in flight are lost. The
same command then removes an incomplete line at the end of the file and plays the missing episodes.
It also plays aborted episodes again, for example after a server was down, and removes their lines.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from filelock import lock_descriptor

from visenv.checksums import sealed, unsealed
from visenv.decoding.files import read_regular
from visenv.decoding.json_text import read_json_file
from visenv.disk import disk_errors
from visenv.episodes import append_episode, read_episodes
from visenv.errors import DataError, RunError
from visenv.files import open_output, output_folder, replacing, write_text
from visenv.old_names import with_new_names
from visenv.provenance import provenance
from visenv.types import Episode

FORMAT = 1
"""The format of `run.json`."""

RUN_FILE = "run.json"
EPISODES_FILE = "episodes.jsonl"

EpisodeKey = tuple[int, int]
"""The group and the member of an episode."""


class RunFolder:
    """Locks a folder and saves the episodes of one run in it, as a context manager.

    If a run fails before its first episode has ended, no file and no folder remains.

    Args:
        folder: The folder, which is created if it does not exist.
        settings: All settings that the episodes depend on, JSON-like. A folder of a run with other
            settings is refused.
        details: Further facts for `run.json`, JSON-like. A run with other details is not refused.

    Attributes:
        known: The saved episodes, without messages, by group and member.

    Raises:
        RunError: On entering: if the run in the folder has other settings, if the folder contains
            episodes of an unknown run, or if another process uses the folder.
        ConfigurationError: On entering: if the folder or one of its files is a link.
        DataError: On entering: if a saved episode cannot be read.
        DiskError: On entering: if the folder cannot be written or locked.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, Any], details: Mapping[str, Any] | None = None
    ) -> None:
        self.folder = folder
        self.known: dict[EpisodeKey, Episode] = {}
        self._settings: dict[str, Any] = json.loads(json.dumps(settings))
        self._details = dict(details or {})
        self._made: list[Path] = []
        self._file: IO[bytes] | None = None
        self._keys: dict[int, EpisodeKey] = {}  # by the number of the line
        self._earlier: list[Any] = []

    @property
    def episodes_file(self) -> Path:
        """Return the path of the file with the episodes."""
        return self.folder / EPISODES_FILE

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leave()

    def add(self, episode: Episode) -> None:
        """Save an episode.

        Raises:
            EpisodeError: If a field that must be JSON-like has another value.
            DiskError: If the disk is full or fails.
        """
        append_episode(self.episodes_file, episode)
        self.known[episode.group, episode.member] = episode.without_messages()

    def forget_aborted(self) -> int:
        """Remove the saved episodes that were aborted, so that they are played again.

        Returns:
            Their number. The session in ``run.json`` contains it as ``played_again``.

        Raises:
            DiskError: If the disk is full or fails; the file then remains unchanged.
        """
        lines = {number for number, key in self._keys.items() if self.known[key].failure}
        if not lines:
            return 0
        assert self._file is not None
        with replacing(self.episodes_file) as partial:
            kept = open_output(partial, "a+b")
            try:
                lock_descriptor(kept.fileno(), blocking=False)  # nobody else knows the file
                self._file.seek(0)
                for number, line in enumerate(self._file, start=1):
                    if number not in lines:
                        kept.write(line)
                kept.flush()
            except BaseException:
                kept.close()
                raise
        self._file.close()
        self._file = kept
        self.known = {key: each for key, each in self.known.items() if not each.failure}
        self._keys = {}
        self._write_record({"played_again": len(lines)})
        return len(lines)

    def episodes(self) -> list[Episode]:
        """Return all saved episodes, without messages, in the order of groups and members."""
        return [self.known[place] for place in sorted(self.known)]

    # ------------------------------------------------------------------ inside

    def _open(self) -> None:
        self._made += _missing(self.folder, *self.folder.parents)[::-1]
        output_folder(self.folder)
        self._made += _missing(self.folder / "images", self.folder / RUN_FILE, self.episodes_file)
        file = self._file = open_output(self.episodes_file, "a+b")
        # The system releases the lock when the process is killed. `forget_aborted` of another
        # process may have replaced the file since it was opened.
        with disk_errors(self.episodes_file):
            locked = lock_descriptor(file.fileno(), blocking=False)
        if not (locked and os.path.samestat(os.fstat(file.fileno()), self.episodes_file.stat())):
            self._made.clear()
            raise RunError(f"Another process writes to {self.folder}. Wait until it has ended.")
        self._earlier = self._sessions()
        _cut_half_line(file)
        for number, episode in enumerate(read_episodes(self.episodes_file, messages=False), 1):
            key = self._keys[number] = (episode.group, episode.member)
            self.known[key] = episode
        self._write_record({})

    def _write_record(self, facts: Mapping[str, Any]) -> None:
        """Write ``run.json`` with the provenance of this process, and further facts about it."""
        record = {
            "format": FORMAT,
            "settings": self._settings,
            **self._details,
            "sessions": [*self._earlier, {**provenance(), **facts}],
        }
        write_text(self.folder / RUN_FILE, json.dumps(sealed(record), indent=2) + "\n")

    def _sessions(self) -> list[Any]:
        """Compare the settings, and return the provenance of each earlier process of the run."""
        path = self.folder / RUN_FILE
        if not path.exists():
            if self.episodes_file.stat().st_size:
                raise RunError(
                    f"{self.episodes_file} contains the episodes of an earlier run, whose settings "
                    f"{path} are missing; choose another folder with --out, or remove that file."
                )
            return []
        found = read_run(self.folder)
        if difference := _difference(found["settings"], self._settings):
            raise RunError(
                f"{self.folder} was started with {difference}; choose another folder with --out, "
                "or use the same settings to resume the run."
            )
        return list(found["sessions"])

    def _leave(self) -> None:
        """Release the lock; if no episode is saved, remove the files that this process made."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if self.known:
            return
        while self._made:
            path = self._made.pop()
            if path.name == "images":
                shutil.rmtree(path, ignore_errors=True)
            elif path.is_dir():
                with suppress(OSError):  # another process may use it by now
                    path.rmdir()
            else:
                path.unlink(missing_ok=True)


def _missing(*paths: Path) -> list[Path]:
    return [path for path in paths if not path.exists()]


def read_run(folder: Path) -> dict[str, Any]:
    """Return the content of `run.json`; settings with names of earlier versions are renamed.

    Raises:
        RunError: If the file cannot be read, or has another format.
    """
    path = folder / RUN_FILE
    try:
        found = unsealed(read_json_file(read_regular(path)))
        if found["format"] != FORMAT:
            raise RunError(
                f"{path} has the format {found['format']!r}; this version reads {FORMAT}."
            )
        if not isinstance(found["settings"], dict) or not isinstance(found["sessions"], list):
            raise TypeError("settings or sessions have another type")
    except (OSError, DataError, ValueError, LookupError, TypeError) as error:
        raise RunError(f"{path} is not the record of a run: {error}.") from error
    return {**found, "settings": with_new_names(found["settings"])}


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return a description of the first setting that differs, or ``""``."""
    for name in (*new, *old):
        if old.get(name) != new.get(name):
            return f"{name} {_shown(old.get(name))}, not {_shown(new.get(name))}"
    return ""


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= 120 else f"{text[:120]}…"


def _cut_half_line(file: IO[bytes], block: int = 1 << 16) -> None:
    """Remove an incomplete last line, which a process leaves if it is killed while it writes."""
    end = file.seek(0, 2)
    place = end
    while place > 0:
        start = max(0, place - block)
        file.seek(start)
        found = file.read(place - start).rfind(b"\n")
        if found >= 0:
            place = start + found + 1
            break
        place = start
    if place < end:
        file.truncate(place)
