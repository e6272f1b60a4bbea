"""Loads VL-RewardBench (Li et al., arXiv 2411.17451): human preferences between two responses.

Hub (``MMInstruction/VL-RewardBench``; needs the extra ``data``)::

    data/test-00000-of-00001.parquet

or a copy as ``*.jsonl`` with image paths. Columns used: ``id``, ``query``, ``response`` (two
texts), ``human_ranking`` (``[0, 1]`` if the first is preferred, ``[1, 0]`` if the second is),
``image`` and ``query_source``.

The benchmark is published with the responses in a fixed order, and requires a new order that does
not favor a judge with a bias for the first position. Here the order depends only on the row's id:
the responses are swapped if the first byte of its SHA-256 is odd. ``compat="lmms_eval"`` uses that
harness's rule: the responses are swapped if the sum of their lengths in characters is odd.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from visenv.data.rows import RowLocation, text_of
from visenv.data.table_source import TableSource
from visenv.errors import DataError, UnknownNameError
from visenv.types import Sample

from ..ground_truth import JudgingTruth, judging_sample

GROUPS: Mapping[str, str] = {
    "wildvision": "general",
    "vlfeedback": "general",
    "hallucination": "hallucination",
    "rlhf": "hallucination",
    "rlaif": "hallucination",
    "mathverse": "reasoning",
    "mmmu": "reasoning",
}
"""The benchmark's three groups, by the first word of an id; any other word is general."""


class VLRewardBench(TableSource):
    """Loads VL-RewardBench from a local folder.

    `Sample.kind` is the group, one of the three of `GROUPS`. The benchmark reports the mean over
    all rows ("overall") and the mean of the groups' means ("macro").

    Args:
        folder: The folder with the files.
        compat: ``"lmms_eval"`` orders the two responses as lmms-eval does; ``""`` by the id.

    Raises:
        UnknownNameError: If there is no such compat mode.
        DataError: If the folder has no such file, or no row can be used.
    """

    ground_truth = JudgingTruth
    patterns = ("data/test-*.parquet", "test-*.parquet", "data/train-*.parquet", "*.jsonl")

    def __init__(self, folder: str | Path, compat: str = "") -> None:
        if compat not in ("", "lmms_eval"):
            raise UnknownNameError("compat mode", compat, ["lmms_eval"])
        self.compat = compat
        super().__init__(folder)

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample:
        identity = text_of(row, "id")
        responses = _responses(row)
        best = _ranking(row).index(0)
        if self._swaps(identity, responses):
            responses, best = responses[::-1], 1 - best
        return judging_sample(
            id=f"vl_rewardbench-{identity}",
            instruction=text_of(row, "query"),
            truth=JudgingTruth(candidates=tuple(responses), source=row.get("query_source")),
            verdict=best + 1,
            kind=group_of(identity),
        )

    def _swaps(self, identity: str, responses: list[str]) -> bool:
        if self.compat:
            return sum(map(len, responses)) % 2 == 1
        return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).digest()[0] % 2 == 1


def group_of(identity: str) -> str:
    """Return the group of a row by its id: ``"mmmu_pro-17"`` is ``"reasoning"``."""
    return GROUPS.get(re.split("[-_]", identity, maxsplit=1)[0].lower(), "general")


def _responses(row: Mapping[str, Any]) -> list[str]:
    given = row.get("response")
    texts = isinstance(given, list) and all(isinstance(each, str) for each in given)
    if not isinstance(given, list) or not texts or len(given) != 2:
        raise DataError(f"response must be two texts, got {given!r:.200}")
    return given


def _ranking(row: Mapping[str, Any]) -> list[int]:
    given = row.get("human_ranking")
    if given not in ([0, 1], [1, 0]):
        raise DataError(f"human_ranking must be [0, 1] or [1, 0], got {given!r:.80}")
    return list(given)
