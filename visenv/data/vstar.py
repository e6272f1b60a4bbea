"""Loads V*Bench (Wu and Xie, "V*: Guided Visual Search", 2023), in either published layout.

The folder layout is::

    direct_attributes/<name>.jpg   direct_attributes/<name>.json
    relative_position/<name>.jpg   relative_position/<name>.json

with ``{"target_object": [...], "bbox": [[x, y, w, h], ...], "question": ..., "options": [...]}``.
Option 0 is always the right one there; therefore the options are shuffled, in an order that depends
only on the sample's id.

The hub layout (``craigwu/vstar_bench``) has the same folders and ``test_questions.jsonl`` with
``image``, ``text`` (question and options), ``category``, ``label`` (a letter) and ``question_id``.
If that file exists, it is used; boxes are read from the JSON files in the folders, if they exist.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Literal

import numpy as np
from typing_extensions import override

from visenv.data.json_rows import json_file, json_lines, json_object
from visenv.data.rows import (
    RowLocation,
    RowSource,
    as_choices,
    contents,
    existing_folder,
    image_file,
    text_of,
)
from visenv.errors import DataError
from visenv.rewards.choice import choice_score
from visenv.types import Image, QuestionTruth, Sample

CATEGORIES = ("direct_attributes", "relative_position")
_QUESTIONS = "test_questions.jsonl"
_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp")
_OPTION_LINE = re.compile(r"^\(([A-Z])\)[ \t]*(.+)$", re.MULTILINE)


class VStarBench(RowSource):
    """Loads V*Bench from a local folder.

    `Sample.answers` is the right letter, and `Sample.kind` is the category. `Sample.ground_truth`
    is a `QuestionTruth`, with boxes and names of the target objects where they are published.

    Args:
        folder: A folder in one of the two layouts.

    Raises:
        DataError: If the folder has neither layout, or no row can be used.
    """

    ground_truth = QuestionTruth

    def __init__(self, folder: str | Path) -> None:
        super().__init__()
        self.folder = existing_folder(folder)
        if (self.folder / _QUESTIONS).is_file():
            self._load_questions(self.folder / _QUESTIONS)
        else:
            self._load_annotations()
        self.require_rows(self.folder)

    def score(self, answer: str, sample: Sample, compat: Literal["r1_vlm"] | None = None) -> float:
        """Return 1 if the answer selects the right option (`visenv.rewards.choice`), else 0."""
        (label,) = sample.answers
        return choice_score(answer, label, sample.truth_as(QuestionTruth).options, compat)

    @override
    def open_images(self, place: RowLocation, images: Path) -> tuple[Image, ...]:
        return (Image.from_file(images),)

    def _load_questions(self, file: Path) -> None:
        for place, line in json_lines(file):
            with self.listing_problems(place):
                row = json_object(line)
                image = image_file([self.folder], text_of(row, "image"))
                annotation = image.with_suffix(".json")
                boxes = json_object(json_file(annotation)) if annotation.is_file() else {}
                self.add_row(place, _lettered(row, boxes), image)

    def _load_annotations(self) -> None:
        folders = [self.folder / name for name in CATEGORIES if (self.folder / name).is_dir()]
        if not folders:
            raise DataError(
                f"Expected {_QUESTIONS}, or the folders {' and '.join(CATEGORIES)}, in "
                f"{self.folder}; it holds {contents(self.folder)}."
            )
        for folder in folders:
            for file in sorted(folder.glob("*.json")):
                place = RowLocation(str(file), 1)
                with self.listing_problems(place):
                    sample = _shuffled(json_object(json_file(file)), folder.name, file.stem)
                    self.add_row(place, sample, image_file([folder], file.stem, _SUFFIXES))


def _lettered(row: Mapping[str, Any], boxes: Mapping[str, Any]) -> Sample:
    """Convert a row of the hub layout: its text contains the options, and its label is a letter."""
    question, label = text_of(row, "text"), text_of(row, "label")
    options = dict(_OPTION_LINE.findall(question))
    if "".join(options) != ascii_uppercase[: len(options)] or label not in options:
        raise DataError(f"the label {label!r} is not among the options {list(options)}")
    truth = _truth(tuple(options.values()), boxes)
    category = text_of(row, "category")
    return Sample(f"vstar-{row.get('question_id')}", question, (), (label,), category, truth)


def _shuffled(row: Mapping[str, Any], category: str, name: str) -> Sample:
    """Convert a row of the folder layout, and shuffle the options, because option 0 is right."""
    identity = f"vstar-{category}/{name}"
    options = row.get("options")
    if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
        raise DataError(f"no list of options: {options!r:.200}")
    if not 2 <= len(options) <= len(ascii_uppercase):
        raise DataError(f"expected 2 to {len(ascii_uppercase)} options, got {len(options)}")
    seed = int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8])
    order = np.random.default_rng(seed).permutation(len(options))
    label = ascii_uppercase[int(np.flatnonzero(order == 0)[0])]
    shuffled = tuple([options[place] for place in order])
    question = as_choices(text_of(row, "question"), shuffled)
    return Sample(identity, question, (), (label,), category, _truth(shuffled, row))


def _truth(options: tuple[str, ...], row: Mapping[str, Any]) -> QuestionTruth:
    """Return the ground truth with the boxes of an annotation (``[x, y, width, height]``)."""
    boxes = row.get("bbox")
    if not boxes:
        return QuestionTruth(options=options)
    try:
        sides = np.array(boxes, dtype=np.float64).reshape(-1, 4)  # [boxes, 4]
    except (TypeError, ValueError) as error:
        raise DataError(f"bbox is not a list of four numbers each: {boxes!r:.200}") from error
    sides[:, 2:] += sides[:, :2]
    listed = tuple((left, top, right, bottom) for left, top, right, bottom in sides.tolist())
    left, top = sides[:, :2].min(axis=0).tolist()
    right, bottom = sides[:, 2:].max(axis=0).tolist()
    return QuestionTruth(
        options=options,
        target_objects=row.get("target_object") or (),
        target_boxes=listed,
        target_box=(left, top, right, bottom),
    )
