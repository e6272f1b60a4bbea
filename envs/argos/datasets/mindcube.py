"""Loads MindCube tiny (Yin et al., 2025): spatial questions about several views of one scene.

Folder (``MLL-Lab/MindCube``): ``raw/MindCube_tinybench.jsonl`` with ``id``, ``images`` (paths),
``question`` with lettered options, and ``gt_answer`` (a letter); the images are in the same folder.
The setting of a row is in its id: ``rotation``, ``among``, ``around`` or ``translation``. Rows of
"translation" do not count in the total.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from visenv.data.rows import RowLocation, id_of, text_of
from visenv.errors import DataError
from visenv.types import Sample

from ..ground_truth import MediaTruth
from .common import Benchmark, Scored, accuracies, option_at

SETTINGS = ("rotation", "among", "around", "translation")
_OPTION = re.compile(r"(?:^|\s)([A-Z])\.\s(.*?)(?=\s[A-Z]\.\s|$)", re.DOTALL)


class MindCube(Benchmark):
    """Loads MindCube tiny from a local folder. `Sample.kind` is the setting.

    Args:
        folder: The folder with ``raw/`` and the images.

    Raises:
        DataError: If the folder has no such file, or no row can be used.
    """

    patterns = ("raw/MindCube_tinybench.jsonl", "MindCube_tinybench.jsonl")
    image_columns = ("images",)
    image_folders = ("", "data", "raw")

    @override
    def summary(self, scored: Scored) -> dict[str, float]:
        """Return the accuracy of each setting, and "total", the accuracy without "translation"."""
        rows = list(scored)
        counted = [(sample, score) for sample, score in rows if sample.kind != "translation"]
        return accuracies(rows) | {"total": accuracies(counted)["total"]}

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample:
        identity, text = id_of(row), text_of(row, "question")
        found = _OPTION.findall(text)
        options = tuple(option.strip() for _, option in found)
        if "".join(letter for letter, _ in found) != "ABCDEFGH"[: len(found)] or len(found) < 2:
            raise DataError(f"the question has no options A. B. …: {text!r:.80}")
        setting = next((each for each in SETTINGS if each in identity), "")
        if not setting:
            raise DataError(f"the id {identity!r} contains none of the settings {SETTINGS}")
        return Sample(
            id=f"mindcube-{identity}",
            question=text[: _OPTION.search(text).start()].strip(),  # type: ignore[union-attr]  # found
            answers=(option_at(row.get("gt_answer"), options),),
            kind=setting,
            ground_truth=MediaTruth(options=options, labels={"setting": setting}),
        )
