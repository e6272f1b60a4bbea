"""Loads TextVQA (Singh et al., "Towards VQA Models That Can Read", 2019), in both layouts.

Official release::

    TextVQA_0.5.1_train.json   TextVQA_0.5.1_val.json   TextVQA_0.5.1_test.json
    train_images/<image_id>.jpg     of train and val; train_val_images/train_images/ as zipped
    test_images/<image_id>.jpg

The JSON files may also be in ``annotations/`` and the image folders in ``images/``. Hub
(``lmms-lab/textvqa``; needs the extra ``data``)::

    data/train-00000-of-00020.parquet …     data/validation-*.parquet     data/test-*.parquet

The test split has no answers: its rows are loaded, and scoring one raises a `DataError`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic.dataclasses import dataclass
from typing_extensions import override

from visenv.data.rows import RowLocation, contents, image_file, text_of
from visenv.data.table_source import TableSource
from visenv.errors import DataError, UnknownNameError
from visenv.rewards.vqa import normalize_answer, vqa_score
from visenv.types import QuestionTruth, Sample
from visenv.types.ground_truth import STRICT, Texts

SPLITS = ("train", "val", "test")
_HUB_NAMES = {"val": "validation"}
_SUFFIXES = (".jpg", ".jpeg", ".png")


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class TextVQATruth(QuestionTruth):
    """Holds the ground truth of a row of TextVQA.

    Attributes:
        image_id: The name of the image in OpenImages.
        image_classes: The classes of the objects in the image.
    """

    image_id: str | None = None
    image_classes: Texts = ()


class TextVQA(TableSource):
    """Loads one split of TextVQA from a local folder.

    `Sample.kind` is VQA's kind of the most common answer, ``"yes/no"``, ``"number"`` or
    ``"other"``, and ``""`` in the test split.

    Args:
        folder: A folder in one of the two layouts.
        split: ``"train"``, ``"val"`` or ``"test"``.

    Raises:
        UnknownNameError: If there is no such split.
        DataError: If the folder has neither layout, or no row can be used.
    """

    ground_truth = TextVQATruth
    splits = SPLITS

    def __init__(self, folder: str | Path, split: str = "train") -> None:
        if split not in SPLITS:
            raise UnknownNameError("split of TextVQA", split, SPLITS)
        self.split = split
        super().__init__(folder)

    def score(self, answer: str, sample: Sample, compat: Literal["r1_vlm"] | None = None) -> float:
        """Return the official VQA score; under ``compat="r1_vlm"`` its ``min(1, n / 3)``.

        Raises:
            DataError: If the sample has no answers, as in the test split.
        """
        if not sample.answers:
            raise DataError(
                f"{sample.id} has no published answers: TextVQA's test split is scored by its "
                "evaluation server. Use split=val to score here."
            )
        return vqa_score(answer, sample.answers, mode="min3" if compat else "official")

    @override
    def table_files(self) -> Sequence[Path]:
        """Return the newest file of the release, or else the shards of the hub."""
        for place in (self.folder, self.folder / "annotations"):
            found = sorted(place.glob(f"TextVQA_*_{self.split}.json"))
            if found:
                self.image_columns, self.image_folders = ("image_id",), self._image_folders()
                return found[-1:]
        name = _HUB_NAMES.get(self.split, self.split)
        shards = sorted((self.folder / "data").glob(f"{name}-*.parquet"))
        if not shards:
            raise DataError(
                f"Expected TextVQA_0.5.1_{self.split}.json or data/{name}-*.parquet in "
                f"{self.folder}; it holds {contents(self.folder)}."
            )
        return shards

    def _image_folders(self) -> Sequence[str]:
        name = "test_images" if self.split == "test" else "train_images"
        zipped = "test_images" if self.split == "test" else "train_val_images"
        tried = [name, f"{zipped}/{name}", f"images/{name}"]
        found = [folder for folder in tried if (self.folder / folder).is_dir()]
        if not found:
            raise DataError(
                f"Expected the images of split {self.split!r} in {self.folder / name}; "
                f"{self.folder} holds {contents(self.folder)}."
            )
        return found

    @override
    def image_path(self, name: str) -> Path:
        """Return the image of an id, or of a path in a shard."""
        return image_file([self.folder / folder for folder in self.image_folders], name, _SUFFIXES)

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample:
        question = text_of(row, "question")
        number = row.get("question_id")
        if isinstance(number, bool) or not isinstance(number, int | str):
            raise DataError(f"no question_id: {number!r}")
        answers = () if self.split == "test" else _answers(row)
        truth = TextVQATruth(
            image_id=row.get("image_id"), image_classes=row.get("image_classes") or ()
        )
        name = f"textvqa-{self.split}-{number}"
        return Sample(name, question, (), answers, _kind(answers), truth)


def _answers(row: Mapping[str, Any]) -> tuple[str, ...]:
    answers = row.get("answers")
    if not isinstance(answers, list) or not answers:
        raise DataError(f"answers must be a list with at least one text, got {answers!r:.200}")
    if not all(isinstance(answer, str) for answer in answers):
        raise DataError(f"an answer is not text: {answers!r:.200}")
    return tuple(answers)


def _kind(answers: tuple[str, ...]) -> str:
    if not answers:
        return ""
    commonest = Counter(map(normalize_answer, answers)).most_common(1)[0][0]
    if commonest in ("yes", "no"):
        return "yes/no"
    return "number" if commonest.replace(".", "", 1).isdecimal() else "other"
