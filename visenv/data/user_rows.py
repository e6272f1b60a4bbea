"""Loads the rows of a user: ``rows:my.jsonl?image=picture&question=q&answer=a``."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from typing_extensions import override

from visenv.data.box_units import UNITS, check_scale, in_pixels, read_boxes
from visenv.data.cells import find_file, short_text
from visenv.data.columns import ALIASES, find_columns
from visenv.data.row import QUESTIONS, Row, RowSchema, box_fields
from visenv.data.row_documents import RowDocuments
from visenv.data.rows import RowLocation, RowSource
from visenv.data.table_files import SplitChoice, TableFile, find_tables
from visenv.data.table_source import EncodedImages, TableSource
from visenv.data.tables import DataTable, open_table
from visenv.data.video_file import open_video
from visenv.errors import DataError
from visenv.garbage import collector_paused
from visenv.presets import check_choice
from visenv.terminal import printable
from visenv.types import Image, QuestionTruth, Sample
from visenv.types.ground_truth import Box

_logger = logging.getLogger(__name__)
_noted: set[str] = set()
_MOST_SHOWN = 10


class Rows(TableSource):
    """Loads rows with a column for each of image, question, answer and so on.

    The columns depend on the environment, which passes a `RowSchema`. A column is found by its
    usual names (`visenv.data.columns.USUAL_NAMES`), or by an option such as ``image=picture``; what
    was found is printed. When the rows are opened, columns, types and the existence of files are
    checked; a row that cannot be used is left out, and the reason is printed. The content of an
    image is checked when its row is read.

    Args:
        place: A file (JSONL, JSON, CSV, TSV or Parquet), a folder, or a pattern.
        schema: The columns of the environment, and the samples that are made of them.
        split: Only rows of this split: the value of the column ``split``, the split in the name of
            the file, or else ``"train"`` or ``"test"``, which are then chosen by a hash of the id.
            By default all rows.
        holdout: Share of the rows in ``"test"`` if the rows have no split, above 0 and below 1.
        config: The configuration of a folder with several of them.
        folder: The folder of images, videos and documents; by default that of the file of rows.
        boxes: ``"xyxy"``, or ``"xywh"`` for left, top, width and height.
        scale: The unit of boxes: ``"pixels"`` of the upright image, ``"0-1"`` or ``"0-1000"``.
        split_column: The column with the split.
        **columns: Names of columns, for example ``image="picture"``; several images or options are
            separated by commas.

    Attributes:
        library: The documents of the rows, for rows about documents.
        columns: The columns that were found.

    Raises:
        ConfigurationError: If an option is invalid.
        UnknownNameError: If there is no such column or split; suggests the nearest.
        DataError: If there is no such file, a column is missing, or no row can be used.
    """

    ground_truth = QuestionTruth  # of the default schema; an instance has that of its schema
    training_split = "train"
    splits = ("train", "test")

    def __init__(
        self,
        place: str | Path,
        schema: RowSchema = QUESTIONS,
        *,
        split: str = "",
        holdout: str | float = 0.05,
        config: str = "",
        folder: str = "",
        boxes: str = "xyxy",
        scale: str = "pixels",
        split_column: str = "",
        **columns: str,
    ) -> None:
        RowSource.__init__(self)  # the files depend on options
        check_choice("boxes", boxes, ("xyxy", "xywh"))
        check_choice("scale", scale, ("pixels", *UNITS))
        self.schema = schema
        self.ground_truth = schema.ground_truth  # type: ignore[misc, assignment]  # depends on the schema
        if schema.score is not None:
            self.score = schema.score
        self._is_xywh, self._scale = boxes == "xywh", scale
        self._boxes: dict[str, tuple[Box, ...]] = {}
        self._splits: dict[str, str] = {}
        self._file_split = ""
        self._has_index = False
        files = find_tables(str(place), config)
        self._split = SplitChoice(split, holdout, files)
        files = [file for file in files if self._split.may_have(file)]
        self._tables = [open_table(file.path) for file in files]
        self._folders = _folders(folder, self._tables)
        self.library = RowDocuments(self._folders)
        given = {ALIASES.get(name, name): value for name, value in columns.items()}
        if split_column:
            given["split"] = split_column
        present = {table.path: table.columns for table in self._tables}
        self.columns = find_columns(schema.reads, schema.needs, given, present)
        self.image_columns = self.columns["image"]
        with collector_paused():
            self._load_rows(files)
        if self._has_index:
            self.note(f"{place}: answers that are whole numbers are indices of options, from 0.")
        self._require_some(str(place), present)
        self._report(str(place))

    @staticmethod
    def note(text: str) -> None:
        """Print a sentence about rows, for example a reward term that is left out.

        A process prints each sentence once; worker processes print none.
        """
        if text not in _noted and multiprocessing.parent_process() is None:
            _logger.warning("%s", printable(text))
        _noted.add(text)

    # ------------------------------------------------------------------ opening

    def _load_rows(self, files: Sequence[TableFile]) -> None:
        """Keep the rows of all tables, then those of the split."""
        for file, table in zip(files, self._tables, strict=True):
            self._file_split = file.split
            self.load_table(table)
        ids = self.ids
        splits = [self._splits.get(identity, "") for identity in ids]
        self.select_rows(self._split.choose(ids, splits))

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample:
        identity = self._identity(place, row)
        boxes: tuple[Box, ...] = ()
        for column in self.columns["box"]:
            boxes = read_boxes(row.get(column), is_xywh=self._is_xywh)
        if boxes:
            check_scale(boxes, self._scale)
            self._boxes[identity] = boxes
        read = Row(place, identity, row, self.columns, boxes, self.library.add)
        sample = self.schema.sample(read)
        self._has_index = self._has_index or read.answer_is_index
        split = self._file_split or read.optional_text("split")
        if split:
            self._splits[identity] = split
        return sample

    def _identity(self, place: RowLocation, row: Mapping[str, Any]) -> str:
        identity = f"{Path(place.file).name}:{place.row}"
        for column in self.columns["id"]:
            if row.get(column) is not None:
                identity = short_text(row[column], "id")
        # Ids are often unique only within a split.
        return f"{self._file_split}/{identity}" if self._file_split else identity

    @override
    def row_images(self, row: Mapping[str, Any], encoded: EncodedImages) -> Any:
        """Return the path of the video, or the images."""
        for column in self.columns["video"]:
            return find_file(short_text(row.get(column), "video"), self._folders)
        return super().row_images(row, encoded)

    @override
    def image_path(self, name: str) -> str:
        return find_file(name, self._folders)

    @override
    def check_image_count(self, count: int) -> None:
        most = self.schema.most_images
        if not count and "image" in self.schema.needs:
            raise DataError(f"no image under {' or '.join(self.image_columns)}")
        if most is not None and count > most:
            raise DataError(f"the row has {count} images; this environment shows {most}")

    def _require_some(self, place: str, present: Mapping[Path, Sequence[str]]) -> None:
        self.left_out = len(self.problems)
        if len(self):
            return
        reasons = "; ".join(str(problem) for problem in self.problems[:3])
        names = list(dict.fromkeys(name for columns in present.values() for name in columns))
        raise DataError(
            f"No row of {place} can be used as {self.schema.name}. The columns are "
            f"{', '.join(names)}. {self.columns} {reasons or 'There is no row.'}"
        )

    def _report(self, place: str) -> None:
        """Print the columns, the first problems, and the number of rows that cannot be used."""
        lines = [f"{place}: {_count(len(self))}. {self.columns}"]
        lines += [str(problem) for problem in self.problems[:_MOST_SHOWN]]
        if self.left_out:
            more = f", {_MOST_SHOWN} are listed" if self.left_out > _MOST_SHOWN else ""
            lines.append(f"{place}: {_count(self.left_out)} cannot be used{more}.")
        for line in lines:
            self.note(line)

    # ------------------------------------------------------------------ reading

    @override
    def open_images(self, place: RowLocation, images: Any) -> tuple[Image, ...]:
        if isinstance(images, str):
            return open_video(images, self.schema.most_frames)[0]
        return super().open_images(place, images)

    @override
    def attach_images(self, sample: Sample, files: Any, images: tuple[Image, ...]) -> Sample:
        known: dict[str, Any] = {}
        if isinstance(files, str):
            known["times"] = open_video(files, self.schema.most_frames)[1]
        else:
            for image in images:
                _ = image.pixels  # raises if the image is broken; the episode shows it anyway
        boxes = self._boxes.get(sample.id)
        names = {field.name for field in fields(self.ground_truth)}
        if boxes and images and "target_box" in names:
            known |= box_fields([in_pixels(box, self._scale, images[0].size) for box in boxes])
        if known:
            sample = replace(sample, ground_truth=replace(sample.ground_truth, **known))
        return super().attach_images(sample, files, images)


def _count(rows: int) -> str:
    return f"{rows:,} row{'s' * (rows != 1)}"


def _folders(folder: str, tables: Sequence[DataTable]) -> list[str]:
    """Return the folders in which files are looked up."""
    if folder:
        path = Path(folder).expanduser()
        if not path.is_dir():
            raise DataError(f"There is no folder {folder!r} (the option 'folder').")
        return [str(path)]
    parents = dict.fromkeys(str(table.path.parent) for table in tables)
    inner = [str(Path(parent) / "images") for parent in parents]
    return [*parents, *(name for name in inner if Path(name).is_dir())]
