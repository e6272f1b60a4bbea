"""Loads HallusionBench (Guan et al., 2024): 1,129 yes-or-no questions in pairs about 346 figures.

Folder: ``HallusionBench.json``, a list of rows with ``category``, ``subcategory``, ``set_id``,
``figure_id``, ``question_id``, ``question``, ``gt_answer`` ("0" or "1"), ``visual_input`` and
``filename``, null in the 178 rows without an image.

- aAcc is the accuracy over all rows.
- fAcc is the share of figures with only right answers. A figure is a group of rows with
  ``visual_input`` other than "0" and the same category, subcategory, set and figure.
- qAcc is the share of question pairs with only right answers. A pair is a group of rows with the
  same category, subcategory, set and question.

An answer is classified as yes, no or unclear. The official script uses a language model for this;
this module uses rules, and its results are labeled "read by rules". For rows without a figure,
"unclear" is right.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Literal

from typing_extensions import override

from visenv.data.rows import RowLocation, text_of
from visenv.errors import DataError
from visenv.types import Sample

from ..ground_truth import MediaTruth
from .common import Benchmark, Scored, mean

JUDGE = "rules"
"""Name of the method that classifies the answers, which is reported with results."""

_FIRST_WORD = re.compile(r"\W*(\w+)")


class HallusionBench(Benchmark):
    """Loads HallusionBench from a local folder. `Sample.kind` is the category, VD or VS.

    Args:
        folder: The folder with the json file and the images.

    Raises:
        DataError: If the folder has no such file, or no row can be used.
    """

    patterns = ("HallusionBench.json", "data/HallusionBench.json")
    image_columns = ("filename",)
    image_folders = ("", "hallusion_bench", "images")

    @override
    def score(self, answer: str, sample: Sample) -> float:
        """Return 1 for the right word, and for an unclear answer if there is no figure."""
        said = verdict_of(answer)
        if said == "unclear":
            return float(sample.ground_truth.labels["figure"] == "none")
        return float(said == sample.answers[0])

    @override
    def summary(self, scored: Scored) -> dict[str, float]:
        """Return ``aAcc``, ``fAcc`` and ``qAcc``."""
        every: list[float] = []
        figures: defaultdict[str, list[float]] = defaultdict(list)
        pairs: defaultdict[str, list[float]] = defaultdict(list)
        for sample, score in scored:
            labels = sample.ground_truth.labels
            every.append(score)
            pairs[labels["pair"]].append(score)
            if labels["figure"] != "none":
                figures[labels["figure"]].append(score)
        return {
            "aAcc": mean(every),
            "fAcc": mean([min(scores) for scores in figures.values()]),
            "qAcc": mean([min(scores) for scores in pairs.values()]),
        }

    @override
    def check_image_count(self, count: int) -> None:
        """Accept rows without a figure."""

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample:
        question = text_of(row, "question")
        if row.get("gt_answer") not in ("0", "1", 0, 1):
            raise DataError(f'gt_answer must be "0" or "1", got {row.get("gt_answer")!r}')
        group = "/".join(str(row.get(key)) for key in ("category", "subcategory", "set_id"))
        has_figure = str(row.get("visual_input")) != "0"
        figure, asked = str(row.get("figure_id")), str(row.get("question_id"))
        labels = {
            "pair": f"{group}/{asked}",
            "figure": f"{group}/{figure}" if has_figure else "none",
            "source": "HallusionBench",
        }
        return Sample(
            id=f"hallusion_bench-{group}/{figure}/{asked}",
            question=question,
            answers=("yes" if str(row["gt_answer"]) == "1" else "no",),
            kind=str(row.get("category")),
            ground_truth=MediaTruth(labels=labels),
        )


def verdict_of(answer: str) -> Literal["yes", "no", "unclear"]:
    """Classify an answer by its first word."""
    found = _FIRST_WORD.match(answer[:200])
    word = found[1].casefold() if found else ""
    if word in ("yes", "no"):
        return "yes" if word == "yes" else "no"
    return "unclear"
