"""Loads DeepEyes-47k (Zheng et al., arXiv 2505.14362), training data of DeepEyes and ARM-Thinker.

Hub (``ChenShawn/DeepEyes-Datasets-47k``; needs the extra ``data``): parquet files in verl's layout,
in the folder or its ``data/``, for example ``data_0.1.2_visual_toolbox_v2.parquet``. Columns used:
``images``, ``prompt`` (chat messages), ``data_source``, ``ability``, ``env_name``, ``reward_model``
(``{"ground_truth", "style"}``) and ``extra_info`` (``{"question", "answer", "index", "split"}``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic.dataclasses import dataclass
from typing_extensions import override

from visenv.data.rows import RowLocation, text_of
from visenv.data.table_source import TableSource
from visenv.errors import DataError
from visenv.rewards.vqa import is_too_long
from visenv.text.normalize import comparison_tokens, same_answer
from visenv.types import QuestionTruth, Sample
from visenv.types.ground_truth import STRICT

_IMAGE_TOKEN = re.compile(r"<image>\n?")


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class DeepEyesTruth(QuestionTruth):
    """Holds the ground truth of a row of DeepEyes-47k.

    Attributes:
        ability: The ability that the question needs, as published.
        env_name: The name of the DeepEyes environment of the row.
        style: The method by which the published reward checks the answer.
    """

    ability: str | None = None
    env_name: str | None = None
    style: str | None = None


class DeepEyes(TableSource):
    """Loads DeepEyes-47k from a local folder, as plain questions.

    `Sample.kind` is ``data_source``. The question is that of ``extra_info``, or else the last user
    message, which may explain the tools of DeepEyes too.

    Args:
        folder: The folder with the files.

    Raises:
        DataError: If the folder has no such file, or no row can be used.
    """

    ground_truth = DeepEyesTruth
    patterns = ("*.parquet", "data/*.parquet")
    image_columns = ("images",)

    def score(self, answer: str, sample: Sample, compat: Literal["r1_vlm"] | None = None) -> float:
        """Return 1 if the answer equals the reference, otherwise 0.

        They are compared by `visenv.text.normalize.same_answer`. DeepEyes uses a language model
        instead, which accepts other wordings.
        """
        return float(not is_too_long(answer) and same_answer(answer, sample.answers[0]))

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample:
        extra, reward = _mapping(row, "extra_info"), _mapping(row, "reward_model")
        answer = reward.get("ground_truth", extra.get("answer"))
        if not isinstance(answer, str) or not comparison_tokens(answer):
            raise DataError(f"no ground_truth: {answer!r:.200}")
        source = text_of(row, "data_source")
        number = extra.get("index", place.row - 1)
        identity = f"deepeyes-{Path(place.file).stem}-{number}"
        truth = DeepEyesTruth(
            ability=row.get("ability"), env_name=row.get("env_name"), style=reward.get("style")
        )
        return Sample(identity, _question(row, extra), (), (answer,), source, truth)


def _question(row: Mapping[str, Any], extra: Mapping[str, Any]) -> str:
    asked = extra.get("question")
    if not isinstance(asked, str) or not asked.strip():
        turns = row.get("prompt")
        users = [
            turn
            for turn in (turns if isinstance(turns, list) else [])
            if isinstance(turn, Mapping) and turn.get("role") == "user"
        ]
        if not users:
            raise DataError("the row has neither extra_info.question nor a user message in prompt")
        asked = text_of(dict(users[-1]), "content")
    return _IMAGE_TOKEN.sub("", asked).strip()


def _mapping(row: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    given = row.get(key)
    if not isinstance(given, Mapping):
        raise DataError(f"no {key}: {given!r:.200}")
    return given
