"""Selects rated rows for the evaluation sets, and for the 40 samples of training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

from typing_extensions import override

from visenv.curation.journal import RowOutcome, dropped, kept
from visenv.curation.lines import JsonLines, Row
from visenv.curation.step import CurationStep
from visenv.data.rows import text_of
from visenv.errors import ConfigurationError

EVALUATION_SIZES: Mapping[tuple[str, str], int] = MappingProxyType(
    {
        ("vsr", "easy"): 288,
        ("vsr", "medium"): 1000,
        ("vsr", "hard"): 46,
        ("tallyqa", "easy"): 491,
        ("tallyqa", "medium"): 500,
        ("tallyqa", "hard"): 139,
        ("gqa", "easy"): 500,
        ("gqa", "medium"): 999,
        ("gqa", "hard"): 365,
    }
)
"""Number of samples of each data set and difficulty (table 3 of the paper)."""


class DatasetQuota(NamedTuple):
    """Describes a part of the samples of one training stage.

    Attributes:
        dataset: The data set that the samples come from.
        samples: The number of samples.
        difficulty: The difficulty of the samples, or None for any difficulty.
    """

    dataset: str
    samples: int
    difficulty: str | None = None


TRAINING = {
    "stage1": (DatasetQuota("tallyqa", 10), DatasetQuota("vsr", 10)),
    "stage2": (DatasetQuota("tallyqa", 10, "hard"), DatasetQuota("gqa", 10, "hard")),
}
"""The samples of each stage (§4.1)."""


@dataclass(eq=False)
class Stratify(CurationStep):
    """Keeps the first rows of each data set and difficulty, up to the sizes of the paper."""

    name: ClassVar[str] = "stratify"
    in_order: ClassVar[bool] = True
    hidden: ClassVar[tuple[str, ...]] = ("sizes",)

    sizes: Mapping[tuple[str, str], int] = field(default_factory=lambda: EVALUATION_SIZES)
    """Maximum number of rows of each data set and difficulty."""

    def __post_init__(self) -> None:
        self._taken: Counter[tuple[str, str]] = Counter()

    @override
    def settings(self) -> Mapping[str, Any]:
        return {f"{dataset} {level}": size for (dataset, level), size in self.sizes.items()}

    @override
    def begin(self) -> None:
        self._taken.clear()

    @override
    def notes(self) -> list[str]:
        """Return a message for each set that has fewer rows than the paper's."""
        return [
            f"{dataset} {level}: only {self._taken[dataset, level]} of {size} rows were found"
            for (dataset, level), size in self.sizes.items()
            if self._taken[dataset, level] < size
        ]

    @override
    def remember(self, row: Row, outcome: RowOutcome) -> None:
        """Count a row that was kept before."""
        if outcome.status == "kept":
            self._taken[_stratum(row)] += 1

    @override
    async def decide(self, row: Row) -> RowOutcome:
        """Keep a row if its set is not full."""
        stratum = _stratum(row)
        if stratum not in self.sizes:
            return dropped("no set of this data set and difficulty")
        if self._taken[stratum] >= self.sizes[stratum]:
            return dropped("the set is full")
        self._taken[stratum] += 1
        return kept(row)


@dataclass(eq=False)
class MagsTrain(CurationStep):
    """Selects the samples of one training stage, without images of other files of rows.

    Raises:
        ConfigurationError: If there is no such stage.
    """

    name: ClassVar[str] = "mags-train"
    in_order: ClassVar[bool] = True

    stage: Literal["stage1", "stage2"]
    """The training stage."""
    without: tuple[Path, ...] = ()
    """Files of rows whose images are excluded: the evaluation set, and the other stage."""

    def __post_init__(self) -> None:
        if self.stage not in TRAINING:
            raise ConfigurationError(f"stage must be one of {[*TRAINING]}, got {self.stage!r}.")
        self._forbidden = {name for path in self.without for name in _image_names(JsonLines(path))}
        self._left: Counter[DatasetQuota] = Counter()
        self.begin()

    @override
    def settings(self) -> Mapping[str, Any]:
        """Return the stage and the excluded images."""
        return {"stage": self.stage, "forbidden": sorted(self._forbidden)}

    @override
    def begin(self) -> None:
        self._left = Counter({share: share.samples for share in TRAINING[self.stage]})

    @override
    def notes(self) -> list[str]:
        """Return a message for each data set that has fewer rows than the stage needs."""
        unchecked = "Without --without, training may use images of the evaluation set."
        missing = [
            f"{self.stage} needs {share.samples} rows of {share.dataset}, and only "
            f"{share.samples - left} were found"
            for share, left in self._left.items()
            if left
        ]
        return missing if self.without else [unchecked, *missing]

    @override
    def remember(self, row: Row, outcome: RowOutcome) -> None:
        """Count a row that was kept before."""
        share = self._share(row)
        if outcome.status == "kept" and share is not None:
            self._left[share] -= 1

    @override
    async def decide(self, row: Row) -> RowOutcome:
        """Keep a row that the stage still needs."""
        share = self._share(row)
        if share is None:
            return dropped("not of this stage")
        if not self._left[share]:
            return dropped("the stage has enough")
        if _names_of(row) & self._forbidden:
            return dropped("its image occurs in evaluation or in another stage")
        self._left[share] -= 1
        return kept(row)

    def _share(self, row: Row) -> DatasetQuota | None:
        dataset, difficulty = _stratum(row)
        for share in TRAINING[self.stage]:
            if share.dataset == dataset and share.difficulty in (None, difficulty):
                return share
        return None


def _stratum(row: Row) -> tuple[str, str]:
    """Return data set and difficulty of a rated row; a missing one raises `DataError`."""
    return text_of(row, "dataset"), text_of(row, "difficulty")


def _image_names(lines: Iterable[Any]) -> Iterable[str]:
    for line in lines:
        yield from _names_of(line.row)


def _names_of(row: Row) -> set[str]:
    """Return the names of a row's images, which ``questions`` derives from their pixels."""
    images = row.get("images")
    return {Path(each).name for each in images if isinstance(each, str)} if images else set()
