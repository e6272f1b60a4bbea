"""Defines the columns of a user's own rows for ArftSearch, and their samples."""

from __future__ import annotations

from visenv.data.row import Row, RowSchema, question_of
from visenv.types import Sample

from .ground_truth import SearchTruth


def search_sample(row: Row) -> Sample:
    """Return the sample of a question that needs searches; the queries are not known."""
    question, options, answers = question_of(row)
    kind = row.optional_text("kind")
    return Sample(row.id, question, (), answers, kind, SearchTruth(options=options))


SEARCHED = RowSchema(
    "questions to search for",
    ("question", "answer"),
    ("image", "options", "kind"),
    SearchTruth,
    search_sample,
)
"""Rows of a question and an answer, with or without images."""
