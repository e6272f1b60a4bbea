"""Defines `Row`, the values of one row by the columns of a task, and `RowSchema`, its use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from visenv.data.cells import answer_texts, right_letter, short_text, texts
from visenv.data.columns import Columns
from visenv.data.rows import RowLocation, as_choices
from visenv.errors import DataError
from visenv.rewards.choice import choice_score
from visenv.rewards.vqa import vqa_score
from visenv.types import QuestionTruth, Sample
from visenv.types.ground_truth import Box

_IMAGE_MARKERS = ("<image>", "<video>", "<audio>")


class Row:
    """Holds the values of one row by the columns that a task reads.

    Args:
        place: Its location.
        identity: Its id.
        fields: Its values by column of the table, without large cells.
        columns: The columns of the table by the column of the task.
        boxes: The boxes of the row, in the unit of the table.
        documents: Returns the name of a document for the path in a cell.

    Attributes:
        boxes: The boxes of the row, in the unit of the table; `visenv.data.user_rows` converts
            those of the ground truth to pixels when the image is read.
        answer_is_index: Whether `letter` has read the answer as the index of an option.
    """

    __slots__ = ("_columns", "_documents", "_fields", "answer_is_index", "boxes", "id", "place")

    def __init__(
        self,
        place: RowLocation,
        identity: str,
        fields: Mapping[str, Any],
        columns: Columns,
        boxes: tuple[Box, ...],
        documents: Callable[[str], str],
    ) -> None:
        self.place = place
        self.id = identity
        self.boxes = boxes
        self.answer_is_index = False
        self._fields = fields
        self._columns = columns.found
        self._documents = documents

    def value(self, name: str) -> Any:
        """Return the value of a column of the task, None if there is none."""
        for column in self._columns.get(name, ()):
            value = self._fields.get(column)
            if value is not None:
                return value
        return None

    def text(self, name: str) -> str:
        """Return the text of a column; a number becomes a text.

        Raises:
            DataError: If it is missing or blank.
        """
        return short_text(self.value(name), name)

    def optional_text(self, name: str) -> str:
        """Return the text of a column, or ``""`` if the cell is empty."""
        value = self.value(name)
        return "" if value is None or value == "" else short_text(value, name)

    def question(self) -> str:
        """Return the question without the markers of other trainers for images.

        Raises:
            DataError: If there is none.
        """
        text = self.text("question")
        for marker in _IMAGE_MARKERS:
            if marker in text:
                text = text.replace(f"{marker}\n", "").replace(marker, "").strip()
        if not text:
            raise DataError(
                "the question must have text beside its image markers, got "
                f"{self.text('question')!r:.80}"
            )
        return text

    def options(self) -> tuple[str, ...]:
        """Return the options, empty for an open question.

        Raises:
            DataError: If they are not a list of at least two different texts.
        """
        columns = self._columns.get("options", ())
        if len(columns) > 1:
            cells = [self._fields.get(column) for column in columns]
            given: Any = [cell for cell in cells if cell is not None and cell != ""]
        else:
            given = self.value("options")
        if given is None or given in ("", []):
            return ()
        options = texts(given, "options")
        if len(options) < 2 or len({*options}) < len(options) or len(options) > 26:
            raise DataError(f"options must be 2 to 26 different texts, got {list(options)!r:.120}")
        return options

    def answers(self) -> tuple[str, ...]:
        """Return the accepted answers.

        Raises:
            DataError: If there are none.
        """
        return answer_texts(self.value("answer"))

    def letter(self, options: Sequence[str]) -> str:
        """Return the letter of the right option; see `right_letter`."""
        answer = self.value("answer")
        self.answer_is_index = type(answer) is int and str(answer) not in options
        return right_letter(answer, options)

    def document(self) -> str:
        """Return the name of the document in the library of the rows.

        Raises:
            DataError: If there is none.
        """
        return self._documents(self.text("document"))


@dataclass(frozen=True)
class RowSchema:
    """Describes how an environment makes samples from rows.

    Attributes:
        name: The name in messages, for example ``"questions about images"``.
        needs: The columns that must exist.
        may_have: Further columns that are read.
        ground_truth: The type of `Sample.ground_truth`.
        sample: Makes the sample of a row, without images. It raises a `DataError` for a row that
            cannot be used.
        score: Computes the score of an answer, 0 to 1; None if the environment has its own.
        most_images: Maximum number of images of a row; None allows any number.
        most_frames: Maximum number of frames of a video.
    """

    name: str
    needs: tuple[str, ...]
    may_have: tuple[str, ...]
    ground_truth: type
    sample: Callable[[Row], Sample]
    score: Callable[..., float] | None = None
    most_images: int | None = None
    most_frames: int = 0

    @property
    def reads(self) -> tuple[str, ...]:
        """Return all columns; the needed ones first."""
        return ("id", "split", *self.needs, *self.may_have)


def question_of(row: Row) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the question as shown, its options, and its answers.

    With options, the question lists them with letters, and the answer is the letter of one.
    """
    question, options = row.question(), row.options()
    if not options:
        return question, (), row.answers()
    return as_choices(question, options), options, (row.letter(options),)


def question_sample(row: Row) -> Sample:
    """Return the sample of a question about images."""
    question, options, answers = question_of(row)
    truth = QuestionTruth(options=options, **box_fields(row.boxes))
    return Sample(row.id, question, (), answers, row.optional_text("kind"), truth)


def box_fields(boxes: Sequence[Box]) -> dict[str, Any]:
    """Return the fields of a `QuestionTruth` for the boxes of a row."""
    if not boxes:
        return {}
    if len(boxes) == 1:
        return {"target_box": boxes[0]}
    left, top = (min(box[edge] for box in boxes) for edge in (0, 1))
    right, bottom = (max(box[edge] for box in boxes) for edge in (2, 3))
    return {"target_boxes": tuple(boxes), "target_box": (left, top, right, bottom)}


def answer_score(answer: str, sample: Sample, compat: Literal["r1_vlm"] | None = None) -> float:
    """Return 1 if the answer selects the right option, or equals an accepted answer, otherwise 0.

    Answers are compared after the normalization of the VQA score. Each accepted answer is enough;
    they are not the votes of several people.

    Args:
        answer: The answer of the policy, without its tags.
        sample: The sample.
        compat: See `visenv.rewards.choice.choice_score`.
    """
    options = getattr(sample.ground_truth, "options", ())
    if options:
        return choice_score(answer, sample.answers[0], options, compat)
    return max(vqa_score(answer, [accepted]) for accepted in sample.answers)


QUESTIONS = RowSchema(
    "questions about images",
    ("image", "question", "answer"),
    ("options", "kind", "box"),
    QuestionTruth,
    question_sample,
    answer_score,
)
"""Rows of one or several images, a question and an answer."""

ONE_IMAGE = replace(QUESTIONS, name="questions about one image", most_images=1)
"""Rows of one image, a question and an answer."""
