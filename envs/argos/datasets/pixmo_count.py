"""Loads PixMo-Count (Deitke et al., 2024): questions about the number of objects in photographs.

Folder (``allenai/pixmo-count``): ``data/<split>-*.parquet`` with ``image_url``, ``image_sha256``,
``count``, ``label`` and ``points``. The data set does not contain the images; each must be in
``images/``, named by its SHA-256 with any suffix. An image with another hash is rejected, because
the content of a URL may change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from visenv.data.parquet import ParquetShards
from visenv.data.rows import RowLocation, existing_folder, first_files, text_of
from visenv.decoding.files import read_regular
from visenv.decoding.pictures import MOST_BYTES
from visenv.errors import DataError
from visenv.types import Image, Sample

from ..ground_truth import MediaTruth
from .common import Benchmark


class PixMoCount(Benchmark):
    """Loads PixMo-Count from a local folder.

    Args:
        folder: The folder with ``data/`` and ``images/``.
        split: ``"train"``, ``"validation"`` or ``"test"``.

    Raises:
        DataError: If the folder has no such file, or no row can be used.
    """

    splits = ("train", "validation", "test")

    def __init__(self, folder: str | Path, split: str = "train") -> None:
        super().__init__()
        path = existing_folder(folder)
        files = first_files(path, (f"data/{split}-*.parquet", f"{split}-*.parquet"))
        images = {each.stem: each for each in sorted((path / "images").glob("*"))}
        for row in ParquetShards(files, ()).rows():
            with self._listing(row.place):
                digest = text_of(row.read(), "image_sha256")
                if digest not in images:
                    raise DataError(f"images/ has no file {digest}")
                self._keep(row.place, _sample(row.number, row.fields), images[digest])
        self._require_rows(path)

    @override
    def _open_images(self, place: RowLocation, images: Path) -> tuple[Image, ...]:
        encoded = read_regular(images, MOST_BYTES)
        if hashlib.sha256(encoded).hexdigest() != images.stem:
            raise DataError(f"{images} does not have the SHA-256 of its name")
        return (Image.from_bytes(encoded, str(images)),)


def _sample(number: int, row: Mapping[str, Any]) -> Sample:
    count, label = row.get("count"), text_of(row, "label")
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise DataError(f"count must be a whole number, got {count!r}")
    return Sample(
        id=f"pixmo_count-{number}-{row['image_sha256'][:12]}",
        question=f"How many {label} are there in the image?",
        answers=(str(count),),
        kind="count",
        ground_truth=MediaTruth(labels={"source": "PixMo-Count"}),
    )
