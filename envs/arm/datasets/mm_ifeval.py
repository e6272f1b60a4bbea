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

from pydantic import ValidationError
from typing_extensions import override

from visenv.checks import find_check
from visenv.data.json_rows import json_object, written_list
from visenv.data.rows import RowLocation, first_files, text_of
from visenv.data.table_source import SharedImageSource
from visenv.decoding.json_text import read_json
from visenv.errors import DataError, UnknownNameError
from visenv.tools.base import complaint
from visenv.types import Sample

from ..ground_truth import Constraint, ConstraintCheck, InstructionTruth

_AUXILIARY = "aux_cmp_gpt"

_METHODS = ("rule_based", "direct_gpt", "cmp_gpt")


def check_of(function: Any) -> ConstraintCheck:
    """Return the check for an entry of ``verify_funcs``.

    Args:
        function: ``{"func": name, "params": [...]}``; the name may contain the misspelling
            ``…_metioned_…`` of MM-IFEngine, and the parameters may be given by name.

    Raises:
        DataError: If there is no such check, or the parameters do not match it.
    """
    if not isinstance(function, Mapping):
        raise DataError(f"a rule function must be an object, got {function!r:.200}")
    try:
        check = find_check(str(function.get("func")))
    except UnknownNameError as error:
        raise DataError(f"unknown rule function: {error}") from error
    names, given = list(check.arguments.model_fields), function.get("params") or []
    if isinstance(given, list):
        if len(given) != len(names):
            raise DataError(
                f"{check.name} takes {', '.join(names) or 'nothing'}, got {given!r:.200}"
            )
        given = dict(zip(names, given, strict=True))
    try:
        arguments = check.arguments.model_validate(given)
    except ValidationError as error:
        raise DataError(complaint(check.name, check.arguments, error)) from error
    return ConstraintCheck(name=check.name, arguments=arguments.model_dump())


def checks_of(constraint: Mapping[str, Any]) -> list[ConstraintCheck]:
    """Return the checks that decide a constraint.

    The list is empty if a language model judges it (``judge.method`` is not ``"rule_based"``).

    Raises:
        DataError: If a rule function is unknown or its parameters do not match.
    """
    judge = constraint.get("judge")
    if not isinstance(judge, Mapping) or judge.get("method") != "rule_based":
        return []
    functions = judge.get("verify_funcs")
    if not isinstance(functions, list) or not functions:
        raise DataError(f"rule_based without verify_funcs: {functions!r:.200}")
    return [check_of(function) for function in functions]


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
