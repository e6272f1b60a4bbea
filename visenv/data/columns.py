"""Finds the columns of a table that contain questions, images and answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase

from typing_extensions import override

from visenv.errors import ConfigurationError, DataError, UnknownNameError

USUAL_NAMES: Mapping[str, Sequence[str]] = {
    "id": ("id", "question_id", "uid", "uuid", "index", "idx"),
    "split": ("split",),
    "image": ("image", "images", "picture", "image_path", "file_name", "img"),
    "video": ("video", "video_path"),
    "document": ("document", "doc", "doc_id", "pdf"),
    "question": ("question", "problem", "prompt", "query", "instruction"),
    "answer": ("answer", "answers", "solution", "label", "ground_truth"),
    "options": ("options", "choices"),
    "kind": ("kind", "category", "type"),
    "box": ("box", "bbox", "boxes", "bboxes"),
    "responses": ("responses", "candidates"),
    "best": ("best", "verdict", "preferred"),
    "prompt": ("prompt", "instruction", "question"),
    "response": ("response", "output"),
    "constraint": ("constraint",),
    "checks": ("checks", "check"),
    "verdict": ("verdict", "label"),
}
"""The usual names of each column, in the order in which they are tried; case is ignored."""

_PICTURES = ("image", "images", "picture", "img")
"""Usual names of images; a column of paths may name the same image again."""

_NUMBERED = re.compile(rf"(?:{'|'.join(_PICTURES)})[ _-]?(\d{{1,3}})", re.IGNORECASE)
"""Columns of several images of a row, such as those of MMMU: ``image_1``, ``image_2``."""

ALIASES: Mapping[str, str] = {"images": "image", "answers": "answer"}
"""Other names of the same option."""


class Columns:
    """Maps the columns that a task reads to columns of the tables.

    Args:
        found: The columns of the tables by the column of the task. Several columns are possible for
            images and options.
        recognized: The columns of the task that were recognized by their usual names.

    Attributes:
        found: The columns of the tables by the column of the task.
    """

    def __init__(self, found: Mapping[str, Sequence[str]], recognized: Iterable[str] = ()) -> None:
        self.found = {name: tuple(columns) for name, columns in found.items()}
        self.recognized = tuple(recognized)

    def __getitem__(self, name: str) -> tuple[str, ...]:
        """Return the columns of the tables; empty if there is none."""
        return self.found.get(name, ())

    @override
    def __str__(self) -> str:
        """Return the mapping, such as ``Recognized: image=picture. Given: id=key.``."""
        parts = {"Recognized": list[str](), "Given": list[str]()}
        for name, columns in self.found.items():
            part = "Recognized" if name in self.recognized else "Given"
            parts[part].append(f"{name}={','.join(columns)}")
        return " ".join(f"{part}: {', '.join(found)}." for part, found in parts.items() if found)


def find_columns(
    reads: Sequence[str],
    needs: Sequence[str],
    given: Mapping[str, str],
    present: Mapping[Path, Sequence[str]],
) -> Columns:
    """Find the columns of a task in the columns of tables.

    Args:
        reads: The columns that the task reads.
        needs: Those of them that each table must have.
        given: Names of columns by the column of the task, several separated by commas.
        present: The columns of each table.

    Raises:
        ConfigurationError: If a name is given for a column that the task does not read.
        UnknownNameError: If no table has a given column; suggests the nearest.
        DataError: If a needed column is missing in a table; the message names its columns.
    """
    known = list(dict.fromkeys(name for columns in present.values() for name in columns))
    found: dict[str, tuple[str, ...]] = {}
    recognized: list[str] = []
    for name in given:
        if name not in reads:
            raise ConfigurationError(
                f"This environment does not read the column {name!r} of rows; it reads "
                f"{', '.join(reads)}."
            )
    for name in reads:
        if name in given:
            found[name] = tuple(column.strip() for column in given[name].split(","))
            for column in found[name]:
                if column not in known:
                    raise UnknownNameError(f"column of {_names(present)}", column, known)
        else:
            used = {column for columns in found.values() for column in columns}
            free = [column for column in known if column not in used]
            usual = _images(free, present) if name == "image" else _usual(name, free)
            if usual:
                found[name] = usual
                recognized.append(name)
    for name in needs:
        if name not in found:
            raise DataError(_missing(name, present, known))
        for path, columns in present.items():
            if not set(found[name]) & set(columns):
                raise DataError(
                    f"{path} lacks the column {found[name][0]!r}, which other files have; it has "
                    f"{', '.join(columns) or 'no columns'}. Name the files to read, for example "
                    "with a pattern such as rows:FOLDER/train-*.jsonl."
                )
    return Columns(found, recognized)


def _images(free: Sequence[str], present: Mapping[Path, Sequence[str]]) -> tuple[str, ...]:
    """Return the columns with images: one with a usual name, and the numbered ones.

    Two with usual names raise `DataError`, because the images of one would be left out.
    """
    named = [column for column in free if column.casefold() in _PICTURES]
    if len(named) > 1:
        raise DataError(
            f"{_names(present)} has several columns of images: {', '.join(named)}. Name those to "
            f"show: rows:FILE?image={named[0]}, or image={','.join(named)}."
        )
    numbers = {column: int(found[1]) for column in free if (found := _NUMBERED.fullmatch(column))}
    numbered = sorted(numbers, key=numbers.__getitem__)
    return (*(named or ([] if numbered else _usual("image", free))), *numbered)


def _usual(name: str, free: Sequence[str]) -> tuple[str, ...]:
    """Return the column with a usual name, of those that no other column of the task uses."""
    folded = {column.casefold(): column for column in reversed(free)}
    for usual in USUAL_NAMES[name]:
        if usual in folded:
            return (folded[usual],)
    if name == "options" and {"A", "B"} <= set(free):
        letters = [letter for letter in ascii_uppercase if letter in free]
        return tuple(letters[: _first_gap(letters)])
    return ()


def _first_gap(letters: Sequence[str]) -> int:
    matched = [one == other for one, other in zip(letters, ascii_uppercase, strict=False)]
    return matched.index(False) if False in matched else len(letters)


def _missing(name: str, present: Mapping[Path, Sequence[str]], known: Sequence[str]) -> str:
    usual = ", ".join(USUAL_NAMES[name])
    return (
        f"No column of {_names(present)} is recognized as the {name} ({usual}); the columns are "
        f"{', '.join(known) or 'none'}. Name it: rows:FILE?{name}=COLUMN."
    )


def _names(present: Mapping[Path, Sequence[str]]) -> str:
    first, *others = present
    return f"{first} and {len(others)} more files" if others else str(first)
