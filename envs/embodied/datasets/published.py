"""Implements the parts that EmbodiedBench's data sets share: subsets, ground truth, sampling."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic.dataclasses import dataclass
from typing_extensions import override

from visenv.data.rows import RowLocation, RowSource
from visenv.decoding.files import read_regular
from visenv.errors import ConfigurationError, DataError, FileRefusedError, UnknownNameError
from visenv.types import GroundTruth, Image
from visenv.types.ground_truth import STRICT

from ..world.tasks import SUBSETS

_POINTER = b"version https://git-lfs.github.com/spec/"
RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class PublishedTruth(GroundTruth):
    """Holds the ground truth of a published task, which its own simulator checks.

    Attributes:
        benchmark: ``"eb_alfred"`` or ``"eb_habitat"``.
        subset: One of the six subsets.
        scene: The scene, ``""`` if the file does not contain it.
        task: The type of task, ``""`` if the file does not contain it.
        content: The other fields of the file's row, as JSON.
    """

    benchmark: str
    subset: str
    scene: str = ""
    task: str = ""
    content: str = "{}"


class PublishedTasks(RowSource):
    """Loads tasks without images, which a simulator renders.

    Args:
        subset: One of the six subsets, or ``"all"``.
        down_sample_ratio: The share of tasks to use, above 0 and at most 1: every
            ``round(1 / ratio)``-th, as in EmbodiedBench.

    Raises:
        UnknownNameError: If there is no such subset.
        ConfigurationError: If the ratio is not a number in its range.
    """

    ground_truth: ClassVar[type] = PublishedTruth

    def __init__(self, subset: str, down_sample_ratio: float | str) -> None:
        super().__init__()
        if subset not in ("all", *SUBSETS):
            raise UnknownNameError("subset", subset, ("all", *SUBSETS))
        self.subsets = SUBSETS if subset == "all" else (subset,)
        self._step = _step_of(down_sample_ratio)

    @override
    def open_images(self, place: RowLocation, images: Any) -> tuple[Image, ...]:
        return ()

    def down_sampled(self, rows: list[RowT]) -> list[tuple[int, RowT]]:
        """Return every n-th row with its index."""
        return [*enumerate(rows)][:: self._step]


def _step_of(ratio: float | str) -> int:
    try:
        number = float(ratio)
    except ValueError:
        number = 0.0
    if not 0 < number <= 1:
        raise ConfigurationError(f"down_sample_ratio must be above 0 and at most 1, got {ratio!r}.")
    return round(1 / number)


def read_bytes(file: Path) -> bytes:
    """Return the content of a file.

    Raises:
        DataError: If it cannot be read, or is a pointer of Git LFS to a file that was not fetched.
    """
    try:
        content = read_regular(file)
    except FileRefusedError:
        raise
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}") from error
    if content.startswith(_POINTER):
        raise DataError(
            f"{file} is a Git LFS pointer, not the file. Fetch it in its repository: git lfs pull"
        )
    return content
