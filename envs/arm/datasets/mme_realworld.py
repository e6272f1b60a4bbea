"""Loads MME-RealWorld and its lite version (Zhang et al., arXiv 2408.13257): large-image choices.

Supported layouts, in the folder or in its ``data/``:

- the authors' (hub ``yifanzhang114/MME-RealWorld`` and ``-Lite``, unpacked): ``MME_RealWorld.json``
  or ``MME-RealWorld-Lite.json``, a list of ``{"Question_id", "Image", "Text", "Answer choices":
  ["(A) …", …], "Ground truth": "A", "Task", "Subtask", "Category"}``, and the images;
- that of lmms-eval (``yifanzhang114/MME-RealWorld-lmms-eval`` and ``-lite-lmms-eval``; needs the
  extra ``data``): parquet with ``index``, ``bytes`` (base64), ``question``, ``answer``,
  ``multi-choice options`` (a list), ``category`` (``Perception/…``) and ``l2-category``;
- VLMEvalKit's TSV file, which `visenv.envs.arm.datasets.vlmeval` loads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Literal

from typing_extensions import override

from visenv.data.rows import RowLocation, as_choices, id_of, text_of
from visenv.data.table_source import TableSource
from visenv.errors import DataError, UnknownNameError
from visenv.rewards.choice import choice_score
from visenv.types import QuestionTruth, Sample

VERSIONS = ("full", "lite")
_OPTION = re.compile(r"\s*\(([A-Z])\)\s*(.*)", re.DOTALL)


class MMERealWorld(TableSource):
    """Loads MME-RealWorld from a local folder.

    `Sample.answers` is the right letter. Results are reported by task (Perception, Reasoning) and
    by domain; the benchmark's score is the mean over all rows.

    Args:
        folder: The folder with the files.
        version: ``"full"`` or ``"lite"``.

    Raises:
        UnknownNameError: If there is no such version.
        DataError: If the folder has no such file, or no row can be used.
    """

    ground_truth = QuestionTruth
    image_columns = ("Image", "bytes")
    image_folders = ("", "data", "images")

    def __init__(self, folder: str | Path, version: str = "full") -> None:
        if version not in VERSIONS:
            raise UnknownNameError("version of MME-RealWorld", version, VERSIONS)
        self.version = version
        full = ("MME_RealWorld.json", "MME-RealWorld.json")
        lite = ("MME-RealWorld-Lite.json", "MME_RealWorld_Lite.json")
        names = lite if version == "lite" else full
        inside = [f"{place}{name}" for name in names for place in ("", "data/", "**/")]
        self.patterns = (*inside, "data/*.parquet", "*.parquet")
        super().__init__(folder)

    def score(self, answer: str, sample: Sample, compat: Literal["r1_vlm"] | None = None) -> float:
        """Return 1 if the answer selects the right option (`visenv.rewards.choice`), else 0."""
        (label,) = sample.answers
        return choice_score(answer, label, sample.truth_as(QuestionTruth).options)

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample:
        if "Text" in row:
            identity, question, label = (
                text_of(row, key) for key in ("Question_id", "Text", "Ground truth")
            )
            options, task, domain = row.get("Answer choices"), row.get("Task"), row.get("Subtask")
        else:
            identity, question = id_of(row, "index"), text_of(row, "question")
            label, options = text_of(row, "answer"), row.get("multi-choice options")
            task, _, domain = str(row.get("category") or "").partition("/")
        texts = _options(options)
        label = label.strip()
        if label not in ascii_uppercase[: len(texts)]:
            raise DataError(f"the answer {label!r:.80} is not among the {len(texts)} options")
        labels = {"task": str(task or ""), "domain": str(domain or "")}
        truth = QuestionTruth(options=tuple(texts), labels={k: v for k, v in labels.items() if v})
        asked = as_choices(question.strip(), texts)
        name = f"mme_realworld-{self.version}-{identity}"
        return Sample(name, asked, (), (label,), labels["task"], truth)


def _options(given: Any) -> list[str]:
    """Return the texts of options in the form ``"(A) …"``, in the order of their letters."""
    if not isinstance(given, list) or len(given) < 2:
        raise DataError(f"no list of options: {given!r:.200}")
    found = [_OPTION.fullmatch(each) if isinstance(each, str) else None for each in given]
    if "".join(each[1] if each else "?" for each in found) != ascii_uppercase[: len(found)]:
        raise DataError(f"the options are not lettered (A), (B), …: {given!r:.200}")
    return [each[2].strip() for each in found if each]
