"""Loads CounterCurate and SugarCrepe: two captions of an image, one of which is true."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from visenv.data.json_rows import json_file, json_list, json_object
from visenv.data.rows import RowLocation, existing_folder, first_files, image_by_end, text_of
from visenv.errors import DataError
from visenv.types import Sample

from ..ground_truth import MediaTruth
from .common import FileBenchmark

QUESTION = "Which caption describes the image?"


class SugarCrepe(FileBenchmark):
    """Loads SugarCrepe (Hsieh et al., 2023): 7,511 pairs of captions of COCO val2017 in 7 files.

    The paper says 7,512. Each file is an object of rows with ``filename``, ``caption`` and
    ``negative_caption``. The order of the two captions depends only on the id.

    Args:
        folder: The folder with the json files, and the images in ``val2017/`` or ``images``.
        images: Another folder of the images.

    Raises:
        DataError: If the folder has no such file, or no row can be used.
    """

    def __init__(self, folder: str | Path, images: str = "") -> None:
        super().__init__()
        path = existing_folder(folder)
        places = [Path(images)] if images else [path / "val2017", path / "images", path]
        patterns = ("data/*_*.json", "*_*.json")
        for file in first_files(path, patterns):
            rows = json_object(json_file(file))
            for number, (key, row) in enumerate(rows.items(), start=1):
                place = RowLocation(str(file), number)
                with self._listing(place):
                    image = image_by_end(places, text_of(row, "filename"))
                    self._keep(place, _sugar(file.stem, key, row), [image])
        self._require_rows(path)


class CounterCurate(FileBenchmark):
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

    def __init__(
        self, folder: str | Path, images: str = "", split: str = "left_right_up_down"
    ) -> None:
        super().__init__()
        path = existing_folder(folder)
        places = [Path(images)] if images else [path / "images", path / "flickr30k-images", path]
        patterns = (f"llava_sample_data/test_{split}_.json", f"test_{split}_.json")
        file = first_files(path, patterns)[0]
        for number, row in enumerate(json_list(file), start=1):
            place = RowLocation(str(file), number)
            with self._listing(place):
                image = image_by_end(places, text_of(row, "image"))
                self._keep(place, _conversation(number, split, row), [image])
        self._require_rows(path)


def _sugar(kind: str, key: str, row: Mapping[str, Any]) -> Sample:
    true, false = text_of(row, "caption"), text_of(row, "negative_caption")
    identity = f"sugar_crepe-{kind}-{key}"
    swapped = hashlib.sha256(identity.encode()).digest()[0] % 2 == 1
    options = (false, true) if swapped else (true, false)
    truth = MediaTruth(options=options, labels={"source": "SugarCrepe"})
    return Sample(identity, QUESTION, answers=(true,), kind=kind, ground_truth=truth)


def _conversation(number: int, split: str, row: Mapping[str, Any]) -> Sample:
    said = row.get("conversations")
    if not isinstance(said, list) or len(said) < 2:
        raise DataError(f"conversations must be a question and an answer, got {said!r:.80}")
    question, answer = text_of(said[0], "value"), text_of(said[1], "value")
    identity = str(row.get("id", number))
    return Sample(
        f"counter_curate-{split}-{number}-{identity}",
        question.replace("<image>", "").strip(),
        answers=(answer.strip(),),
        kind=split,
        ground_truth=MediaTruth(labels={"source": "CounterCurate"}),
    )
