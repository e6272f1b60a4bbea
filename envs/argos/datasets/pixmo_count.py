"""Loads PixMo-Count (Deitke et al., 2024): questions about the number of objects in photographs.

Folder (``allenai/pixmo-count``): ``data/<split>-*.parquet`` with ``image_url``, ``image_sha256``,
``count``, ``label`` and ``points``. The data set does not contain the images; each must be in
``images/``, named by its SHA-256 with any suffix. An image with another hash is rejected, because
the content of a URL may change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from visenv.data.rows import RowLocation, existing_folder, text_of
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
    image_columns = ("image_sha256",)

    def __init__(self, folder: str | Path, split: str = "train") -> None:
        self.patterns = (f"data/{split}-*.parquet", f"{split}-*.parquet")
        images = (existing_folder(folder) / "images").glob("*")
        self._images = {each.stem: each for each in sorted(images)}
        super().__init__(folder)

    @override
    def image_path(self, name: str) -> Path:
        if name not in self._images:
            raise DataError(f"images/ has no file {name}")
        return self._images[name]

    @override
    def open_images(self, place: RowLocation, images: Sequence[Path]) -> tuple[Image, ...]:
        return tuple([_checked(path) for path in images])

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample:
        digest, count, label = text_of(row, "image_sha256"), row.get("count"), text_of(row, "label")
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise DataError(f"count must be a whole number, got {count!r}")
        return Sample(
            id=f"pixmo_count-{place.row - 1}-{digest[:12]}",
            question=f"How many {label} are there in the image?",
            answers=(str(count),),
            kind="count",
            ground_truth=MediaTruth(labels={"source": "PixMo-Count"}),
        )


def _checked(path: Path) -> Image:
    """Return the image of a file whose name is the SHA-256 of its content."""
    encoded = read_regular(path, MOST_BYTES)
    if hashlib.sha256(encoded).hexdigest() != path.stem:
        raise DataError(f"{path} does not have the SHA-256 of its name")
    return Image.from_bytes(encoded, str(path))
