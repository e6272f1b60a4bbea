"""Loads BLINK (Fu et al., 2024): 14 visual tasks as multiple choice.

Folder (``BLINK-Benchmark/BLINK``): ``<task>/val-*.parquet``, with ``idx``, ``sub_task``,
``question``, ``image_1`` to ``image_4``, ``choices`` and ``answer`` such as ``"(A)"``. The answers
of the test split are hidden (``"hidden"``), so the validation split is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from visenv.data.rows import RowLocation, id_of, text_of
from visenv.types import Sample

from ..ground_truth import MediaTruth
from .common import Benchmark, Scored, accuracies, mean, option_at, texts

TASKS = 14


class Blink(Benchmark):
    """Loads BLINK from a local folder. `Sample.kind` is the task.

    Args:
        folder: The folder with one folder for each task.

    Raises:
        DataError: If the folder has no such file, or no row can be used.
    """

    patterns = ("*/val-*.parquet", "val-*.parquet")
    image_columns = tuple(f"image_{number}" for number in range(1, 5))

    @override
    def summary(self, scored: Scored) -> dict[str, float]:
        """Return the accuracy of each task, and the mean over tasks as ``"total"``."""
        by_task = accuracies(scored)
        by_task.pop("total")
        return by_task | {"total": mean(list(by_task.values()))}

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample:
        options = texts(row.get("choices"), "choices")
        task = text_of(row, "sub_task")
        return Sample(
            id=f"blink-{id_of(row, 'idx')}",
            question=text_of(row, "question"),
            answers=(option_at(row.get("answer"), options),),
            kind=task,
            ground_truth=MediaTruth(options=options, labels={"task": task, "source": "BLINK"}),
        )
