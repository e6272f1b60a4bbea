"""Implements the parts that the loaders share: questions with short answers about photographs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from typing_extensions import override

from visenv.data.json_rows import json_object
from visenv.data.rows import RowLocation, RowSource, existing_folder, image_file
from visenv.errors import DataError
from visenv.types import Image, QuestionTruth, Sample

Read = Callable[[dict[str, Any]], tuple[Sample, str]]
"""Returns the sample of a row without its image, and the file name of the image."""


class PhotoQuestions(RowSource):
    """Loads questions from one file, about images in one of several folders.

    The constructor checks that each image exists; an image is read when its row is accessed.

    Args:
        folder: The folder of the data set.
        images: Subfolders that may contain the images, in addition to `folder`.
    """

    ground_truth = QuestionTruth

    def __init__(self, folder: str | Path, images: Iterable[str] = ("images",)) -> None:
        super().__init__()
        self.folder = existing_folder(folder)
        self.image_folders = [self.folder, *(self.folder / name for name in images)]

    def _load(self, rows: Iterable[tuple[RowLocation, Any]], read: Read) -> None:
        """Keep every row that can be read; list the others."""
        for place, content in rows:
            with self._listing(place):
                sample, name = read(json_object(content))
                self._keep(place, sample, image_file(self.image_folders, name))
        self._require_rows(self.folder)

    @override
    def _open_images(self, place: RowLocation, images: Path) -> tuple[Image, ...]:
        return (Image.from_file(images),)


def file_name(row: dict[str, Any], key: str) -> str:
    """Return the name of an image under `key`.

    Raises:
        DataError: If there is no name.
    """
    name = row.get(key)
    if not isinstance(name, str) or not name.strip():
        raise DataError(f"no {key}: {name!r:.80}")
    return name
