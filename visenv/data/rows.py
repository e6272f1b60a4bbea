"""Defines the base class of data sets in files: rows, some of which may be unreadable."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path, PurePosixPath
from string import ascii_uppercase
from typing import Any, ClassVar, NamedTuple

from pydantic import ValidationError
from typing_extensions import override

from visenv.cache import SharedCache
from visenv.data.encoded_image import decoded_bytes
from visenv.errors import DataError
from visenv.files import is_relative
from visenv.terminal import printable
from visenv.types import Episode, Image, Sample

_logger = logging.getLogger(__name__)
_KEPT = 4


class RowLocation(NamedTuple):
    """Locates a row: its file, and its line or row in the file, counted from 1."""

    file: str
    row: int

    @override
    def __str__(self) -> str:
        return f"{self.file}:{self.row}"


class RowProblem(NamedTuple):
    """Describes a row that cannot be used.

    Attributes:
        file: The file that contains the row.
        row: The number of the line (line-based files) or row, from 1.
        problem: A description of the problem for a person.
    """

    file: str
    row: int
    problem: str

    @override
    def __str__(self) -> str:
        return f"{self.file}:{self.row}: {self.problem}"


class _Row(NamedTuple):
    place: RowLocation
    sample: Sample
    images: Any


class RowSource(ABC):
    """Provides rows with their images, read from files, as a finite source.

    When the source is opened, the text of each row and the existence of its image files are
    checked; an invalid row is left out and listed in `problems`. The content of an image is checked
    when its row is read. Only the header is read, so that a decompression bomb is never decoded. If
    this check fails, the row is listed too, and reading it raises an error.

    A subclass sets `ground_truth` and implements `open_images`. Its constructor calls `add_row` for
    each row of its files, and then `require_rows`. It creates samples inside `listing_problems`, so
    that an invalid value of the ground truth is a problem of its row. `TableSource` does this for
    tables.

    A source whose answers are scored has a method ``score(answer, sample, compat)``; a source whose
    samples are about documents has a `library`.

    The most recent samples are kept, so that a group of episodes shares one decoded image.

    Attributes:
        ground_truth: The type of `Sample.ground_truth` of all rows.
        splits: Values of the argument ``split`` of the data set, if it has one.
        problems: Rows that cannot be used, in the order in which they were found.
        left_out: Number of rows that were left out when the source was opened.
        revision: The commit, for a data set of the Hugging Face Hub; None for a folder.
    """

    ground_truth: ClassVar[type]
    splits: ClassVar[Sequence[str]] = ()
    left_out = 0
    revision: str | None = None

    def __init__(self) -> None:
        self.problems: list[RowProblem] = []
        self._listed: set[RowProblem] = set()
        self._rows: list[_Row] = []
        self._ids: dict[str, int] = {}
        self._recent: SharedCache[int, Sample] = SharedCache(_KEPT)

    @abstractmethod
    def open_images(self, place: RowLocation, images: Any) -> tuple[Image, ...]:
        """Return handles to the images of a row.

        Args:
            place: The file and the row in the file.
            images: The argument `images` of `add_row`.

        Raises:
            DataError: If a file is missing or has changed.
        """

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def ids(self) -> Sequence[str]:
        """Return the ids of the samples, in order."""
        return list(self._ids)

    def __iter__(self) -> Iterator[Sample]:
        """Yield all samples, in order."""
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> Sample:
        """Return the sample at `index`, 0 to ``len(self) - 1``.

        Raises:
            IndexError: If there is no such row.
            DataError: If an image is broken or too large (`ImageError`), or a file has changed.
        """
        if not 0 <= index < len(self._rows):
            raise IndexError(f"There is no row {index} among {len(self._rows)}.")
        return self._recent.get(index, partial(self._with_images, self._rows[index]))

    def _with_images(self, row: _Row) -> Sample:
        try:
            images = self.open_images(row.place, row.images)
            for image in images:
                _ = image.size  # reads the header; raises if the image is broken or too large
            return self.attach_images(row.sample, row.images, images)
        except DataError as error:
            before = len(self.problems)
            problem = self.list_problem(row.place, error)
            if len(self.problems) > before:
                _logger.warning("%s", printable(problem))
            raise type(error)(str(problem)) from error

    def attach_images(self, sample: Sample, files: Any, images: tuple[Image, ...]) -> Sample:
        """Return a sample with its images.

        A subclass may add data that is read from the image files, such as the times of frames.

        Args:
            sample: The sample without images.
            files: The `images` of the row that were passed to `add_row`.
            images: The images.
        """
        return replace(sample, images=images)

    def add_row(self, place: RowLocation, sample: Sample, images: Any = None) -> None:
        """Add a row.

        Args:
            place: The file and the row in the file.
            sample: The sample of the row, without images.
            images: Any value from which `open_images` can open the images of the row, again and
                again: paths, or a place in a file.

        Raises:
            DataError: If an earlier row has the same id.
            TypeError: If the ground truth does not have the declared type.
        """
        if not isinstance(sample.ground_truth, self.ground_truth):
            raise TypeError(
                f"{type(self).__name__} declares the ground truth {self.ground_truth.__name__}, "
                f"but the sample {sample.id!r} has {type(sample.ground_truth).__name__}."
            )
        if sample.id in self._ids:
            raise DataError(f"the id {sample.id} was used before")
        self._ids[sample.id] = len(self._rows)
        self._rows.append(_Row(place, sample, images))

    def select_rows(self, chosen: Sequence[bool] | None) -> None:
        """Keep some of the rows that were added.

        Args:
            chosen: Whether each row is kept, in order; None keeps all.
        """
        if chosen is not None:
            self._rows = [
                row for row, is_chosen in zip(self._rows, chosen, strict=True) if is_chosen
            ]
            self._ids = {row.sample.id: index for index, row in enumerate(self._rows)}

    def _known(self, sample_id: str) -> Sample | None:
        """Return the sample with that id without its images, or None."""
        index = self._ids.get(sample_id)
        return None if index is None else self._rows[index].sample

    def sample_of(self, episode: Episode) -> Sample | None:
        """Return the sample of an episode without its images, or None.

        An episode whose images could not be decoded has no sample id, but its row is known.
        """
        index = episode.index
        if not episode.sample_id and index is not None and 0 <= index < len(self._rows):
            return self._rows[index].sample
        return self._known(episode.sample_id)

    def listing_problems(self, place: RowLocation) -> _Listing:
        """Catch an error in the block, and list it as the problem of the row at `place`.

        The error is a `DataError`, or the `ValidationError` of a ground truth.
        """
        return _Listing(self, place)

    def list_problem(self, place: RowLocation, error: DataError) -> RowProblem:
        """List the problem of the row at `place`, only once even if it occurs several times."""
        problem = RowProblem(*place, str(error))
        if problem not in self._listed:
            self._listed.add(problem)
            self.problems.append(problem)
        return problem

    def require_rows(self, folder: Path) -> None:
        """Count the rows that were left out, after all rows were added.

        Args:
            folder: The folder or the file, for the message of the error.

        Raises:
            DataError: If no row can be used.
        """
        self.left_out = len(self.problems)
        if not self._rows:
            first = f" The first problem: {self.problems[0]}" if self.problems else ""
            raise DataError(f"No row of {folder} can be used.{first}")


class _Listing:
    """Lists an error in its block as the problem of a row; see `RowSource.listing_problems`.

    A class takes half the time of a generator, which matters for a hundred thousand rows.
    """

    __slots__ = ("_place", "_source")

    def __init__(self, source: RowSource, place: RowLocation) -> None:
        self._source = source
        self._place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if isinstance(error, ValidationError):
            error = DataError(_complaint(error))
        if not isinstance(error, DataError):
            return False
        self._source.list_problem(self._place, error)
        return True


def _complaint(error: ValidationError) -> str:
    """Return the problems of a ground truth, by field."""
    return "; ".join(
        f"{'.'.join(map(str, each['loc']))}: {each['msg']}, got {each['input']!r:.80}"
        for each in error.errors(include_url=False, include_context=False)[:4]
    )


def existing_folder(folder: str | Path) -> Path:
    """Return `folder` as a path.

    Raises:
        DataError: If the folder does not exist; the message suggests a similar name.
    """
    path = Path(folder).expanduser()
    if path.is_dir():
        return path
    parent = path.parent
    beside = (
        sorted(each.name for each in parent.iterdir() if each.is_dir()) if parent.is_dir() else []
    )
    near = get_close_matches(path.name, beside, n=1, cutoff=0.6)
    hint = f" Did you mean {str(parent / near[0])!r}?" if near else ""
    raise DataError(f"There is no folder {str(path)!r}.{hint}")


def contents(folder: Path, most: int = 12) -> str:
    """Return a list of the files in a folder, for an error message."""
    names = sorted(each.name + "/" * each.is_dir() for each in folder.iterdir())
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "nothing") + more


def first_files(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """Return the files in `folder` that match the first pattern with any match, sorted.

    Raises:
        DataError: If no pattern matches; the message lists the patterns and the content of the
            folder.
    """
    for pattern in patterns:
        if found := sorted(path for path in folder.glob(pattern) if path.is_file()):
            return found
    raise DataError(f"Expected {' or '.join(patterns)} in {folder}; it holds {contents(folder)}.")


def id_of(row: Mapping[str, Any], *keys: str) -> str:
    """Return a row's id as a string; it must be a non-empty string or an integer.

    Args:
        row: The row.
        keys: The possible keys of the id; the first key in the row is used. By default ``"id"``.

    Raises:
        DataError: If the row has no id.
    """
    keys = keys or ("id",)
    given = next((row[key] for key in keys if key in row), None)
    if isinstance(given, bool) or not isinstance(given, int | str) or given == "":
        raise DataError(f"no {keys[0]}: {given!r:.80}")
    return str(given)


def text_of(row: Any, key: str) -> str:
    """Return the non-empty string at `key`.

    Raises:
        DataError: If there is no such string.
    """
    if not isinstance(row, dict):
        raise DataError(f"a row must be an object, got {type(row).__name__}")
    value = row.get(key)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"no {key}: {value!r:.80}")
    return value


def image_file(folders: Iterable[Path], name: str, suffixes: Sequence[str] = ("",)) -> Path:
    """Return the image file with this name in the first of `folders` that contains it.

    Links are followed: the person names the folder of a data set, and a download from the hub
    consists of links.

    Raises:
        DataError: If no folder contains it, or if the name refers to a place outside the folder.
    """
    if not is_relative(name):
        raise DataError(f"the image name {name!r} leads out of the data folder")
    tried = [folder / (name + suffix) for folder in folders for suffix in suffixes]
    for path in tried:
        if path.is_file():
            return path
    raise DataError(f"there is no image {tried[0] if tried else name}")


def image_by_end(folders: Iterable[Path], name: str) -> Path:
    """Return the image that a path of another machine names.

    The longest end of the path that exists in one of the folders is used.

    Raises:
        DataError: If no folder contains the image.
    """
    folders = list(folders)
    parts = [part for part in PurePosixPath(name).parts if part not in ("/", "..", ".")]
    for start in range(len(parts)):
        try:
            return image_file(folders, "/".join(parts[start:]))
        except DataError:
            if start == len(parts) - 1:
                raise
    raise DataError(f"no image: {name!r}")


def image_from_cell(cell: Any, name: str) -> Image:
    """Return the image in a cell: an encoded image, ``{"bytes": …, "path": …}``, or base64 text.

    Base64 text may have line ends and a ``data:`` prefix.

    Raises:
        DataError: If the cell contains no bytes, or text that is not base64.
    """
    encoded = cell.get("bytes") if isinstance(cell, dict) else cell
    if isinstance(encoded, str):
        encoded = decoded_bytes(encoded, name)
    if not isinstance(encoded, bytes) or not encoded:
        raise DataError(f"{name} holds no image bytes")
    return Image.from_bytes(encoded, name)


def lettered(options: Sequence[str]) -> list[str]:
    """Return the options with their letters, as in ``(A) red``."""
    return [f"({letter}) {text}" for letter, text in zip(ascii_uppercase, options, strict=False)]


def as_choices(question: str, options: Sequence[str]) -> str:
    """Return a multiple-choice question as text, with one lettered option per line."""
    return "\n".join([question, *lettered(options), "Answer with the letter of the right option."])
