"""Defines the base classes of data sets whose rows are in tables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from typing_extensions import override

from visenv.data.cells import ImageCell, image_cells
from visenv.data.rows import (
    RowLocation,
    RowSource,
    existing_folder,
    first_files,
    image_by_end,
    text_of,
)
from visenv.data.tables import DataTable, DelimitedTable, ParquetTable, open_table
from visenv.errors import DataError
from visenv.types import Image, Sample

_LONGEST_REFERENCE = 64


class EncodedImages(NamedTuple):
    """Locates images that are not files: they are read from their table again.

    Attributes:
        key: The key of the row (`visenv.data.tables.DataRow.key`).
    """

    table: DataTable
    key: Any


class TableSource(RowSource):
    """Loads a data set from tables in a folder: JSONL, JSON, CSV, TSV or Parquet.

    The files are those that match the first of `patterns` with any match. An image is a path, or
    encoded in its cell (`visenv.data.cells.image_cells`); encoded images are read when their row is
    read. A subclass sets the class attributes and implements `make_sample`. It may override the
    other methods, for example `table_files` and `image_path`.

    Attributes:
        patterns: Patterns of the files, relative to the folder, in order of preference.
        image_columns: The columns with images, in the order in which they are shown. If there are
            any, each row needs an image.
        image_folders: The folders of images, relative to the folder. An image may have the path of
            another machine; the longest end of it that exists is used.

    Args:
        folder: The folder with the files.

    Raises:
        DataError: If the folder has no such file, or no row can be used.
    """

    patterns: Sequence[str] = ()
    image_columns: Sequence[str] = ("image",)
    image_folders: Sequence[str] = ("", "images")

    def __init__(self, folder: str | Path) -> None:
        super().__init__()
        self.folder = existing_folder(folder)
        for path in self.table_files():
            self.load_table(open_table(path))
        self.require_rows(self.folder)

    @abstractmethod
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample | Sequence[Sample]:
        """Return the sample of a row without its images, or several that share the images.

        Raises:
            DataError: If the row cannot be used.
        """

    def table_files(self) -> Sequence[Path]:
        """Return the files of rows; by default the first that match `patterns`."""
        return first_files(self.folder, self.patterns)

    def load_table(self, table: DataTable) -> None:
        """Keep every row of a table that can be used; list the others."""
        large = large_columns(table, self.image_columns)
        for row in table.rows(large):
            with self.listing_problems(row.place):
                fields = row.read()
                samples = self.make_sample(row.place, fields)
                if samples:
                    encoded = EncodedImages(table, row.key)
                    images = encoded if large else self.row_images(fields, encoded)
                    for sample in [samples] if isinstance(samples, Sample) else samples:
                        self.add_row(row.place, sample, images)

    def row_images(self, row: Mapping[str, Any], encoded: EncodedImages) -> Any:
        """Return the paths of the images of a row, or where encoded images can be read again."""
        cells = [cell for name in self.image_columns for cell in image_cells(row.get(name))]
        self.check_image_count(len(cells))
        if any(cell.encoded is not None for cell in cells):
            return encoded
        return tuple([self.image_path(cell.path) for cell in cells])

    def image_path(self, name: str) -> str | Path:
        """Return the file of an image."""
        if ".." in Path(name).parts:
            raise DataError(f"no image: the name {name!r:.200} leads out of the data folder")
        return image_by_end([self.folder / inner for inner in self.image_folders], name)

    def check_image_count(self, count: int) -> None:
        """Raise a `DataError` if a row may not have this number of images."""
        if self.image_columns and not count:
            raise DataError(f"no image under {' or '.join(self.image_columns)}")

    @override
    def open_images(self, place: RowLocation, images: Any) -> tuple[Image, ...]:
        if not isinstance(images, EncodedImages):
            return tuple([Image.from_file(path) for path in images])
        cells = list(self.encoded_cells(images))
        self.check_image_count(len(cells))
        return tuple([self._open_cell(cell, f"the image of {place}") for cell in cells])

    def _open_cell(self, cell: ImageCell, name: str) -> Image:
        if cell.encoded is None:
            return Image.from_file(self.image_path(cell.path))
        return cell.open((), name)

    def encoded_cells(self, images: EncodedImages) -> Iterator[ImageCell]:
        """Yield the images of a row, which are read from its table again."""
        values = images.table.cells(images.key, self.image_columns)
        for name in self.image_columns:
            yield from image_cells(values.get(name))


def large_columns(table: DataTable, names: Iterable[str]) -> list[str]:
    """Return the columns of a Parquet file with encoded images; a column of paths is small."""
    if not isinstance(table, ParquetTable):
        return []
    return [name for name in names if name in table.types and not _has_paths(table, name)]


def _has_paths(table: ParquetTable, name: str) -> bool:
    kind = table.types[name]
    if "binary" in kind or "struct" in kind:
        return False
    first = next(iter(table.rows([other for other in table.columns if other != name])), None)
    if first is None or first.problem:
        return False
    return all(cell.encoded is None for cell in image_cells(first.fields.get(name)))


class SharedImageSource(TableSource):
    """Loads tables in VLMEvalKit's TSV layout, which stores an image once.

    In a TSV file, an ``image`` of at most 64 characters is the ``index`` of the row that contains
    the image, which may be a later one. Other tables are read as by `TableSource`.

    Attributes:
        required_columns: The columns that each table must have.
    """

    required_columns: ClassVar[Sequence[str]] = ()

    @override
    def encoded_cells(self, images: EncodedImages) -> Iterator[ImageCell]:
        """Yield the images of a row, which are Base64 text and never a path."""
        for cell in super().encoded_cells(images):
            yield ImageCell("", cell.path) if cell.path else cell

    @override
    def load_table(self, table: DataTable) -> None:
        missing = [name for name in self.required_columns if name not in table.columns]
        if missing:
            names = ", ".join(table.columns)
            raise DataError(f"{table.path} has no column {', '.join(missing)}; it has {names}.")
        if not isinstance(table, DelimitedTable):
            super().load_table(table)
            return
        holders: dict[str, EncodedImages] = {}
        kept: list[tuple[RowLocation, Sample, str]] = []
        for row in table.rows():
            with self.listing_problems(row.place):
                fields = {name: value or "" for name, value in row.read().items()}
                image, index = text_of(fields, "image"), text_of(fields, "index")
                holder = image
                if len(image) > _LONGEST_REFERENCE:
                    holder = index
                    holders.setdefault(index, EncodedImages(table, row.key))
                sample = self.make_sample(row.place, {**fields, "image": ""})
                if isinstance(sample, Sample):
                    kept.append((row.place, sample, holder))
        for place, sample, holder in kept:
            with self.listing_problems(place):
                if holder not in holders:
                    raise DataError(f"no row has the index {holder!r}, to take its image")
                self.add_row(place, sample, holders[holder])
