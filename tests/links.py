"""Puts links at the names that a program writes, as a received folder can contain them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from visenv.errors import VisenvError

_RANDOM = re.compile(r"[0-9a-f]{16}|tfevents|\d{4}-\d\d-\d\dT")

Write = Callable[[Path], object]


def outputs(write: Write, folder: Path) -> list[str]:
    """Return the files and folders that `write` makes, except those with random names.

    Names of folders end with a slash; that of the folder itself is ``"./"``.
    """
    before = {*_names(folder)}
    write(folder)
    return ["./", *(name for name in _names(folder) if name not in before)]


def written_through_links(
    write: Write, prepare: Write, names: list[str], scratch: Path
) -> Iterator[str]:
    """Yield each change to another folder after `write` ran with a link at one of its names.

    Args:
        write: Writes to a folder.
        prepare: Fills the folder before the links are made, as a run that somebody sent.
        names: The names to replace with links (`outputs`).
        scratch: A folder for the runs.
    """
    for number, name in enumerate(names):
        folder, other = scratch / str(number), scratch / f"other-{number}"
        for path in (folder, other):
            path.mkdir(parents=True)
        (other / "notes.txt").write_text("keep")
        prepare(folder)
        _link(folder / name, other if name.endswith("/") else other / "notes.txt")
        with suppress(VisenvError, OSError, ValueError):
            write(folder)
        if [path.name for path in other.iterdir()] != ["notes.txt"]:
            yield f"{name}: wrote {sorted(path.name for path in other.iterdir())}"
        elif (other / "notes.txt").read_text() != "keep":
            yield f"{name}: changed the file"


def _link(place: Path, target: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


def _names(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if _RANDOM.search(path.name) is None or path.suffix == ".png":
            yield path.relative_to(folder).as_posix() + "/" * path.is_dir()
