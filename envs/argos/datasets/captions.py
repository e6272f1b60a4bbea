"""Loads CounterCurate and SugarCrepe: two captions of an image, one of which is true."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from visenv.data.rows import RowLocation, text_of
from visenv.errors import DataError
from visenv.types import Sample

from ..ground_truth import MediaTruth
from .common import Benchmark

QUESTION = "Which caption describes the image?"


class SugarCrepe(Benchmark):
    """Loads SugarCrepe (Hsieh et al., 2023): 7,511 pairs of captions of COCO val2017 in 7 files.

    The paper says 7,512. Each file is an object of rows with ``filename``, ``caption`` and
    ``negative_caption``. The order of the two captions depends only on the id.

    Args:
        folder: The folder with the json files, and the images in ``val2017/`` or ``images``.
        images: Another folder of the images.

    Raises:
        DataError: If the folder has no such file, or no row can be used.
    """

    patterns = ("data/*_*.json", "*_*.json")
    image_columns = ("filename",)
    image_folders: Sequence[str] = ("val2017", "images", "")

    def __init__(self, folder: str | Path, images: str = "") -> None:
        if images:
            self.image_folders = (str(Path(images).absolute()),)
        super().__init__(folder)

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample:
        kind = Path(place.file).stem
        true, false = text_of(row, "caption"), text_of(row, "negative_caption")
        identity = f"sugar_crepe-{kind}-{row['id']}"
        swapped = hashlib.sha256(identity.encode()).digest()[0] % 2 == 1
        options = (false, true) if swapped else (true, false)
        truth = MediaTruth(options=options, labels={"source": "SugarCrepe"})
        return Sample(identity, QUESTION, answers=(true,), kind=kind, ground_truth=truth)


class CounterCurate(Benchmark):
    """Loads CounterCurate (Zhang et al., 2024): left, right, up and down on images of Flickr30k.

    Folder: ``llava_sample_data/test_{left_right,up_down,left_right_up_down}_.json``, lists of rows
    with ``id``, ``image`` and ``conversations``, of which the first is the question and the second
    the answer. The images of Flickr30k are not included.

    Args:
        folder: The folder with the json files.
        images: The folder of the images; by default ``images`` in `folder`.
        split: ``"left_right_up_down"``, ``"left_right"`` or ``"up_down"``.

    Raises:
        DataError: If the folder has no such file, or no row can be used.
    """

    splits = ("left_right_up_down", "left_right", "up_down")
    image_folders: Sequence[str] = ("images", "flickr30k-images", "")

    def __init__(
        self, folder: str | Path, images: str = "", split: str = "left_right_up_down"
    ) -> None:
        if images:
            self.image_folders = (str(Path(images).absolute()),)
        self.split = split
        self.patterns = (f"llava_sample_data/test_{split}_.json", f"test_{split}_.json")
        super().__init__(folder)

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample:
        said = row.get("conversations")
        if not isinstance(said, list) or len(said) < 2:
            raise DataError(f"conversations must be a question and an answer, got {said!r:.80}")
        question, answer = text_of(said[0], "value"), text_of(said[1], "value")
        identity = str(row.get("id", place.row))
        return Sample(
            f"counter_curate-{self.split}-{place.row}-{identity}",
            question.replace("<image>", "").strip(),
            answers=(answer.strip(),),
            kind=self.split,
            ground_truth=MediaTruth(labels={"source": "CounterCurate"}),
        )
