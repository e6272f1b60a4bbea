"""Loads MM-IFEval (MM-IFEngine, arXiv 2504.07957): instructions with checkable constraints.

Files: ``MM-IFEval.tsv`` as VLMEvalKit stores it, or ``*.jsonl`` (as ``ChrisDing1105/MMIF-23k``)
with image paths, in the folder or in ``images/``. Columns: ``id`` (or ``index``), ``image``,
``instruction`` (or ``question``), ``tag`` (``C-Level``: constraints; ``P-Level``: a question with
an answer), ``constraints``, ``answer`` and ``infer_type``. A constraint is::

    {"key": …, "value": the constraint as text,
     "judge": {"method": "rule_based" | "direct_gpt" | "cmp_gpt",
               "verify_funcs": [{"func": …, "params": [...]}]}}

Rows with the ``infer_type`` ``aux_cmp_gpt`` are skipped, because they are not tasks: they request
the response with which a ``cmp_gpt`` judge compares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from typing_extensions import override

from visenv.data.json_rows import json_object, written_list
from visenv.data.rows import RowLocation, first_files, text_of
from visenv.data.shared_images import SharedImageSource
from visenv.decoding.json_text import read_json
from visenv.errors import DataError
from visenv.types import Sample

from ..ground_truth import Constraint, InstructionTruth
from .rule_functions import checks_of

_AUXILIARY = "aux_cmp_gpt"
_METHODS = ("rule_based", "direct_gpt", "cmp_gpt")


class MMIFEval(SharedImageSource):
    """Loads MM-IFEval from a local folder, as instructions with their constraints.

    `Sample.kind` is the ``tag``. `Sample.ground_truth` is an `InstructionTruth`, whose checks have
    the names of `visenv.checks`.

    Args:
        folder: The folder with the files.

    Raises:
        DataError: If the folder has no such file, or no row can be used.
    """

    ground_truth = InstructionTruth
    patterns = ("MM-IFEval*.tsv", "*.jsonl")

    @override
    def table_files(self) -> Sequence[Path]:
        """Return the first TSV file, or else all JSONL files."""
        files = first_files(self.folder, self.patterns)
        return files[:1] if files[0].suffix == ".tsv" else files

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample | tuple[()]:
        if row.get("infer_type") == _AUXILIARY:
            return ()
        identity = row.get("id") if row.get("id") not in (None, "") else row.get("index")
        if isinstance(identity, bool) or not isinstance(identity, int | str):
            raise DataError(f"the row has neither id nor index: {identity!r:.80}")
        tag = text_of(row, "tag")
        constraints = tuple([_constraint(each) for each in _listed(row.get("constraints"))])
        if tag == "C-Level" and not constraints:
            raise DataError(
                "a row with the tag C-Level must have constraints, got "
                f"{row.get('constraints')!r:.80}"
            )
        answer = row.get("answer")
        answers = (answer,) if tag == "P-Level" and isinstance(answer, str) and answer else ()
        if tag == "P-Level" and not answers:
            raise DataError(f"a P-Level row must have an answer, got {answer!r:.80}")
        asked = "instruction" if row.get("instruction") else "question"
        truth = InstructionTruth(constraints=constraints)
        return Sample(f"mm_ifeval-{identity}", text_of(row, asked), (), answers, tag, truth)


def _constraint(given: Any) -> Constraint:
    row = json_object(given)
    judge = row.get("judge")
    method = judge.get("method") if isinstance(judge, Mapping) else None
    if method not in _METHODS:
        raise DataError(f"judge.method must be one of {', '.join(_METHODS)}, got {method!r:.80}")
    return Constraint(
        key=str(row.get("key") or ""),
        text=text_of(row, "value"),
        method=method,
        checks=tuple(checks_of(row)),
    )


def _listed(value: Any) -> list[Any]:
    """Return a list that is given as a list, as JSON or, in some copies, as Python text."""
    if value is None or value == "":
        return []
    if isinstance(value, str):
        with suppress(DataError):
            value = read_json(value)
    return written_list(value)
