"""Loads CV-Bench (Tong et al., 2024): 2,638 questions about 2D and 3D relations.

Folder (``nyu-visionx/CV-Bench``): ``test_2d.parquet`` and ``test_3d.parquet`` with ``idx``,
``type``, ``task``, ``image``, ``question``, ``choices``, ``answer`` such as ``"(A)"`` and
``source``. The 2D accuracy is the mean of the accuracies on ADE20K and COCO, the 3D accuracy is
that on Omni3D, and the total is the mean of the 2D and 3D accuracies, not the mean over rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from visenv.data.rows import RowLocation, id_of, text_of
from visenv.types import Sample

from ..ground_truth import MediaTruth
from .common import Benchmark, Scored, mean, option_at, texts


class CVBench(Benchmark):
    """Loads CV-Bench from a local folder. `Sample.kind` is the task.

    Args:
        folder: The folder with the two files.

    Raises:
        DataError: If the folder has no such file, or no row can be used.
    """

    patterns = ("test_[23]d.parquet", "*/test-*.parquet", "test-*.parquet")

    @override
    def summary(self, scored: Scored) -> dict[str, float]:
        """Return ``ADE20K``, ``COCO``, ``2D``, ``3D`` and ``total``."""
        rows = [(sample.ground_truth.labels, score) for sample, score in scored]
        sources = {
            source: mean([score for labels, score in rows if labels["source"] == source])
            for source in ("ADE20K", "COCO")
        }
        flat = mean(list(sources.values()))
        deep = mean([score for labels, score in rows if labels["type"] == "3D"])
        return sources | {"2D": flat, "3D": deep, "total": (flat + deep) / 2}

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample:
        options = texts(row.get("choices"), "choices")
        labels = {key: text_of(row, key) for key in ("type", "task", "source")}
        return Sample(
            id=f"cv_bench-{labels['type']}-{id_of(row, 'idx')}",
            question=text_of(row, "question"),
            answers=(option_at(row.get("answer"), options),),
            kind=labels["task"],
            ground_truth=MediaTruth(options=options, labels=labels),
        )
