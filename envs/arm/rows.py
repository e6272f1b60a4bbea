"""Defines the columns of a user's own rows for the ARM environments, and their samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from visenv.checks.table import find_check
from visenv.data.cells import texts
from visenv.data.json_rows import json_object, written_list
from visenv.data.row import Row, RowSchema, answer_score, box_fields, question_of
from visenv.errors import DataError, VisenvError
from visenv.types import Sample

from .ground_truth import ConstraintCheck, DocumentTruth, JudgingTruth, judging_sample

_TRUTH: Mapping[str, bool] = {"true": True, "yes": True, "false": False, "no": False}


def _best(row: Row, responses: tuple[str, ...]) -> bool | int:
    """Return the verdict: whether the single response is right, or the number of the best one."""
    given = row.value("best")
    if len(responses) == 1:
        return _truth(given, "best")
    if isinstance(given, str) and given.strip() in responses:
        return responses.index(given.strip()) + 1
    number = int(given) if isinstance(given, str) and given.strip().isdecimal() else given
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number <= len(responses):
        raise DataError(
            f"best must be the text of a response or its number, 1 to {len(responses)}, got "
            f"{given!r:.80}"
        )
    return number


def _truth(given: Any, name: str) -> bool:
    verdict = given if isinstance(given, bool) else _TRUTH.get(str(given).strip().casefold())
    if verdict is None:
        raise DataError(f"{name} of one response must be true or false, got {given!r:.80}")
    return verdict


def _judged(row: Row, document: str) -> Sample:
    responses = texts(row.value("responses"), "responses")
    return judging_sample(
        id=row.id,
        instruction=row.question(),
        truth=JudgingTruth(candidates=responses, document=document, **box_fields(row.boxes)),
        verdict=_best(row, responses),
        kind=row.optional_text("kind"),
    )


def judged_sample(row: Row) -> Sample:
    """Return the sample of responses about images to judge."""
    return _judged(row, "")


def judged_document_sample(row: Row) -> Sample:
    """Return the sample of responses about a document to judge."""
    return _judged(row, row.document())


def document_sample(row: Row) -> Sample:
    """Return the sample of a question about a document."""
    question, options, answers = question_of(row)
    truth = DocumentTruth(document=row.document(), options=options)
    return Sample(row.id, question, (), answers, row.optional_text("kind"), truth)


def instruction_sample(row: Row) -> Sample:
    """Return the sample of a response whose constraint is to be judged."""
    checks = _checks(row.value("checks"))
    constraint = row.optional_text("constraint") or "; ".join(map(_described, checks))
    if not constraint:
        raise DataError("a row needs one of the columns constraint and checks, and both are empty")
    return judging_sample(
        id=row.id,
        instruction=row.text("prompt"),
        truth=JudgingTruth(
            candidates=(row.text("response"),),
            constraint=constraint,
            check=checks[0] if len(checks) == 1 else None,
        ),
        verdict=_truth(row.value("verdict"), "verdict"),
        kind=row.optional_text("kind"),
    )


def _checks(given: Any) -> list[ConstraintCheck]:
    """Return the text checks of a row: ``{"name": …, "arguments": {…}}``, or a list of these."""
    if given is None or given == "":
        return []
    if isinstance(given, str):
        given = json_object(given) if given.lstrip().startswith("{") else written_list(given)
    checks: list[ConstraintCheck] = []
    for item in given if isinstance(given, list) else [given]:
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise DataError(f'a check must be {{"name": …, "arguments": {{…}}}}, got {item!r:.80}')
        arguments = item.get("arguments") or {}
        try:
            find_check(item["name"]).arguments_of("strict").model_validate(arguments)
        except (VisenvError, ValueError) as error:
            raise DataError(f"the check {item['name']!r} cannot be used: {error}") from error
        checks.append(ConstraintCheck(name=item["name"], arguments=arguments))
    return checks


def _described(check: ConstraintCheck) -> str:
    arguments = ", ".join(f"{name} {value}" for name, value in check.arguments.items())
    words = check.name.removeprefix("check_whether_").replace("_", " ")
    return f"{words} ({arguments})" if arguments else words


JUDGED_IMAGES = RowSchema(
    "responses about images",
    ("image", "question", "responses", "best"),
    ("kind", "box"),
    JudgingTruth,
    judged_sample,
)
"""Rows of images, a question, responses and the best one, for ArmZoom."""

PREFERENCES = RowSchema(
    "preferred responses",
    ("question", "responses", "best"),
    ("image", "kind", "box"),
    JudgingTruth,
    judged_sample,
)
"""Rows of a question, responses and the best one, with or without images, for ArmPreference."""

JUDGED_DOCUMENTS = RowSchema(
    "responses about documents",
    ("document", "question", "responses", "best"),
    ("kind",),
    JudgingTruth,
    judged_document_sample,
)
"""Rows of a document, a question, responses and the best one, for ArmDoc."""

INSTRUCTIONS = RowSchema(
    "responses to instructions",
    ("prompt", "response", "verdict"),
    ("constraint", "checks", "image", "kind"),
    JudgingTruth,
    instruction_sample,
)
"""Rows of a prompt, a response, a constraint or checks, and the verdict, for ArmIF."""

DOCUMENT_QUESTIONS = RowSchema(
    "questions about documents",
    ("document", "question", "answer"),
    ("options", "kind"),
    DocumentTruth,
    document_sample,
    answer_score,
)
"""Rows of a document, a question and an answer, for ArmDocVQA."""
