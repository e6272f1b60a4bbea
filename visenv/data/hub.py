"""Loads data sets of the hub: parquet shards with images in cells, or JSON with image paths."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from visenv.data.json_rows import json_object, read_rows
from visenv.data.parquet import ParquetShards
from visenv.data.rows import (
    RowLocation,
    RowSource,
    existing_folder,
    first_files,
    image_file,
    image_from_cell,
)
from visenv.errors import DataError
from visenv.types import Image, Sample


class HubSource(RowSource):
    """Loads a data set that is stored as parquet, as on the hub, or as JSON Lines or one JSON list.

    The files to read are those that match the first of `patterns` with any match. In parquet (needs
    the extra ``data``), image columns contain encoded images or lists of them, which are read when
    their row is read. In JSON they contain paths, relative to the folder or to its ``images/``.

    A subclass sets the two class attributes and implements `_sample`.

    Attributes:
        patterns: Patterns of the files, relative to the folder, in order of preference.
        image_columns: The columns with images, in the order in which they are shown. If there are
            any, each row needs an image.

    Args:
        folder: The folder with the files.

    Raises:
        DataError: If the folder has no such file, or no row can be used.
    """

    patterns: Sequence[str]
    image_columns: Sequence[str] = ("image",)

    def __init__(self, folder: str | Path) -> None:
        super().__init__()
        self.folder = existing_folder(folder)
        self._shards: ParquetShards | None = None
        files = first_files(self.folder, self.patterns)
        if files[0].suffix == ".parquet":
            self._load_parquet(files)
        else:
            for file in files:
                self._load_json(file)
        self._require_rows(self.folder)

    @abstractmethod
    def _sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample | Sequence[Sample]:
        """Return the sample of a row without its images; or several samples that share the images.

        Raises:
            DataError: If the row cannot be used.
        """

    def _load_parquet(self, files: Sequence[Path]) -> None:
        self._shards = ParquetShards(files, large=self.image_columns)
        for row in self._shards.rows():
            with self._listing(row.place):
                self._keep_all(row.place, self._sample(row.place, row.read()), row.number)

    def _load_json(self, file: Path) -> None:
        for place, content in read_rows(file, "data"):
            with self._listing(place):
                row = json_object(content)
                samples = self._sample(place, row)
                self._keep_all(place, samples, self._image_files(row))

    def _keep_all(
        self, place: RowLocation, samples: Sample | Sequence[Sample], images: Any
    ) -> None:
        for sample in [samples] if isinstance(samples, Sample) else samples:
            self._keep(place, sample, images)

    def _image_files(self, row: Mapping[str, Any]) -> list[Path]:
        names = [name for column in self.image_columns for name in _each(row.get(column))]
        self._check_images(names)
        folders = (self.folder, self.folder / "images")
        return [image_file(folders, str(name)) for name in names]

    @override
    def _open_images(self, place: RowLocation, images: int | list[Path]) -> tuple[Image, ...]:
        if isinstance(images, list):
            return tuple([Image.from_file(path) for path in images])
        assert self._shards is not None
        columns = [name for name in self.image_columns if name in self._shards.columns]
        cells = [cell for name in columns for cell in _each(self._shards.cell(images, name))]
        self._check_images(cells)
        return tuple([image_from_cell(cell, f"the image of {place}") for cell in cells])

    def _check_images(self, images: Sequence[Any]) -> None:
        if self.image_columns and not images:
            raise DataError(f"no image under {' or '.join(self.image_columns)}")


def _each(value: Any) -> list[Any]:
    """Return the items of a list, a list of the value itself, or an empty list for None."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
