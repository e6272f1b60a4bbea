"""V*Bench (Wu and Xie, "V*: Guided Visual Search", 2023), in either published layout.

Folder::

    direct_attributes/<name>.jpg   direct_attributes/<name>.json
    relative_position/<name>.jpg   relative_position/<name>.json

with ``{"target_object": [...], "bbox": [[x, y, w, h], ...], "question": ..., "options": [...]}``.
Option 0 is always the right one there, so the options are shuffled, by the sample's id alone.

Hub (``craigwu/vstar_bench``): the same folders and ``test_questions.jsonl`` with ``image``,
``text`` (question and options), ``category``, ``label`` (a letter) and ``question_id``. Where that
file is, it decides; boxes come from the JSON files beside the images, where those are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Literal

import numpy as np

from visenv.data.json_rows import json_lines, json_object
from visenv.data.rows import (
    Place,
    RowSource,
    as_choices,
    contents,
    existing_folder,
    image_file,
    text_of,
)
from visenv.errors import DataError
from visenv.rewards.choice import choice_score
from visenv.types import Image, Sample

CATEGORIES = ("direct_attributes", "relative_position")
_QUESTIONS = "test_questions.jsonl"
_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp")
_OPTION_LINE = re.compile(r"^\(([A-Z])\)[ \t]*(.+)$", re.MULTILINE)


class VStarBench(RowSource):
    """V*Bench from a local folder.

    `Sample.answers` is the right letter; `Sample.kind` the category. `Sample.meta` holds
    ``options`` (texts), ``label`` (the letter) and, where boxes are published, ``target_objects``,
    ``target_boxes`` ``[left, top, right, bottom]`` in pixels and ``target_box``, around them all.

    Args:
        folder: A folder in one of the two layouts.

    Raises:
        DataError: If the folder has neither layout, or no row can be used.
    """

    def __init__(self, folder: str | Path) -> None:
        super().__init__()
        self.folder = existing_folder(folder)
        if (self.folder / _QUESTIONS).is_file():
            self._load_questions(self.folder / _QUESTIONS)
        else:
            self._load_annotations()
        self._require_rows(self.folder)

    def score(self, answer: str, sample: Sample, compat: Literal["r1_vlm"] | None = None) -> float:
        """1 if the answer picks the right option (`visenv.rewards.choice`), otherwise 0."""
        return choice_score(answer, sample.meta["label"], sample.meta["options"], compat)

    def _open_images(self, place: Place, images: Path) -> tuple[Image, ...]:
        return (Image.from_file(images),)

    def _load_questions(self, file: Path) -> None:
        for place, line in json_lines(file):
            with self._listing(place):
                row = json_object(line)
                image = image_file([self.folder], text_of(row, "image"))
                annotation = image.with_suffix(".json")
                boxes = _boxes(json_object(annotation.read_bytes())) if annotation.is_file() else {}
                self._keep(place, _lettered(row, boxes), image)

    def _load_annotations(self) -> None:
        folders = [self.folder / name for name in CATEGORIES if (self.folder / name).is_dir()]
        if not folders:
            raise DataError(
                f"Expected {_QUESTIONS}, or the folders {' and '.join(CATEGORIES)}, in "
                f"{self.folder}; it holds {contents(self.folder)}."
            )
        for folder in folders:
            for file in sorted(folder.glob("*.json")):
                place = Place(str(file), 1)
                with self._listing(place):
                    sample = _shuffled(json_object(file.read_bytes()), folder.name, file.stem)
                    self._keep(place, sample, image_file([folder], file.stem, _SUFFIXES))


def _lettered(row: Mapping[str, Any], boxes: Mapping[str, Any]) -> Sample:
    """A row of the hub: its text holds the options, its label is a letter."""
    question, label = text_of(row, "text"), text_of(row, "label")
    options = dict(_OPTION_LINE.findall(question))
    if "".join(options) != ascii_uppercase[: len(options)] or label not in options:
        raise DataError(f"the label {label!r} is not among the options {list(options)}")
    meta = {"options": list(options.values()), "label": label, **boxes}
    category = text_of(row, "category")
    return Sample(f"vstar-{row.get('question_id')}", question, (), (label,), category, meta)


def _shuffled(row: Mapping[str, Any], category: str, name: str) -> Sample:
    """A row of the folder layout: option 0 is right, so the options change places."""
    identity = f"vstar-{category}/{name}"
    options = row.get("options")
    if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
        raise DataError(f"no list of options: {options!r:.200}")
    if not 2 <= len(options) <= len(ascii_uppercase):
        raise DataError(f"{len(options)} options")
    seed = int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8])
    order = np.random.default_rng(seed).permutation(len(options))
    label = ascii_uppercase[int(np.flatnonzero(order == 0)[0])]
    shuffled = [options[place] for place in order]
    question = as_choices(text_of(row, "question"), shuffled)
    meta = {"options": shuffled, "label": label, **_boxes(row)}
    return Sample(identity, question, (), (label,), category, meta)


def _boxes(row: Mapping[str, Any]) -> dict[str, Any]:
    """The published ``[x, y, width, height]`` as ``[left, top, right, bottom]``."""
    boxes = row.get("bbox")
    if not boxes:
        return {}
    try:
        sides = np.array(boxes, dtype=np.float64).reshape(-1, 4)
    except (TypeError, ValueError) as error:
        raise DataError(f"bbox is not a list of four numbers each: {boxes!r:.200}") from error
    sides[:, 2:] += sides[:, :2]
    around = [*sides[:, :2].min(axis=0).tolist(), *sides[:, 2:].max(axis=0).tolist()]
    return {
        "target_objects": list(row.get("target_object") or []),
        "target_boxes": sides.tolist(),
        "target_box": around,
    }
