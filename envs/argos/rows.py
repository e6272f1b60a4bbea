"""Defines the columns of a user's own rows for the Argos environments, and their samples."""

from __future__ import annotations

from string import ascii_uppercase

from visenv.data.row import Row, RowSchema
from visenv.types import Sample

from .ground_truth import MediaTruth
from .presets import MAX_FRAMES


def media_sample(row: Row) -> Sample:
    """Return the sample of a question about images or a video; the answer is text, not a letter."""
    options = row.options()
    if options:
        answers: tuple[str, ...] = (options[ascii_uppercase.index(row.letter(options))],)
    else:
        answers = row.answers()
    truth = MediaTruth(options=options)
    return Sample(row.id, row.question(), (), answers, row.optional_text("kind"), truth)


IMAGES = RowSchema(
    "questions about images",
    ("image", "question", "answer"),
    ("options", "kind"),
    MediaTruth,
    media_sample,
)
"""Rows of images, a question and an answer, for ArgosImage."""

VIDEOS = RowSchema(
    "questions about videos",
    ("video", "question", "answer"),
    ("options", "kind"),
    MediaTruth,
    media_sample,
    most_frames=MAX_FRAMES,
)
"""Rows of a video file, a question and an answer, for ArgosVideo."""
