"""Creates judging items from questions with short answers (section 4.2, figures 8 and 9).

A row ``{"id", "question", "images", "response"}``, with ``doc_id`` if it is about a document,
becomes one item of ARMBench-VL:

1. A row whose answer could be guessed (yes, no, …) is dropped.
2. The form is drawn: the number of responses, and long responses or descriptions.
3. A writer expands the right answer, and creates wrong ones of similar style and length.
4. The row is dropped if a wrong response contains the right answer or mentions correctness.
5. The order of the responses is drawn.

Every draw is seeded only by the row's id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from typing_extensions import override

from visenv.curation.journal import RowOutcome, dropped, kept
from visenv.curation.lines import Row
from visenv.curation.step import seed_of
from visenv.curation.writer import UnusableReplyError, Writer, WritingStep, read_text, read_texts
from visenv.errors import ConfigurationError, UnknownNameError

from .judging import arranged, check_track, correctness_cue, is_too_simple, judging_row, states
from .prompts import descriptions, long_responses
from .rows import QuestionRow, question_of, without


class ItemForm(NamedTuple):
    """Describes the form of an item.

    Attributes:
        style: ``"long"`` responses to the question, or ``"description"`` of a part of the image.
        responses: Number of responses; a single one is right in half of the items.
        share: Relative frequency of the form.
    """

    style: Literal["long", "description"]
    responses: int
    share: int


FORMS: Mapping[str, Mapping[str, ItemForm]] = {
    "fine_grained_perception": {
        "pair_rm": ItemForm("description", 2, 295),
        "2-way-pair_rm": ItemForm("long", 2, 163),
        "4-way-pair_rm": ItemForm("long", 4, 92),
    },
    "multimodal_long_document": {
        "single_rm": ItemForm("long", 1, 173),
        "pair_rm": ItemForm("long", 2, 287),
    },
}
"""Forms by track and ``rm_tag``. The shares are the published numbers of items. The style of each
tag is not published, so it is our choice."""


class WrittenItem(NamedTuple):
    """Holds the output of a writer for a row: the question (possibly new) and the responses."""

    question: str
    right: str
    wrong: list[str]


@dataclass(eq=False)
class ArmBenchItems(WritingStep):
    """Creates judging items from questions with short answers, as for ARMBench-VL.

    The name of the output file, ``<folder>/<track>.jsonl``, is the track of the items.

    The writer is asked again if its right response does not state the right answer, or if the
    responses differ too much in length; a leak drops the row, as in the paper.

    Raises:
        UnknownNameError: If there is no such track or tag.
        ConfigurationError: If `length_ratio` is not above 1.
    """

    name: ClassVar[str] = "armbench"

    writer: Writer
    out: Path
    tags: tuple[str, ...] = ()
    """The forms of the track to choose from; by default all."""
    length_ratio: float = 2.0
    """Maximum ratio between the lengths of a response and of the right response, in both
    directions.
    """
    seed: int = 0
    """Seed of form and order."""

    def __post_init__(self) -> None:
        self._track = track = self.out.stem
        if check_track(track) not in FORMS:
            raise ConfigurationError(f"Items of {track} are made by checks, not by a writer.")
        for tag in self.tags:
            if tag not in FORMS[track]:
                raise UnknownNameError(f"form of {track}", tag, FORMS[track])
        if not self.length_ratio > 1:
            raise ConfigurationError(f"length_ratio must be above 1, got {self.length_ratio}.")
        self._tags = sorted(set(self.tags)) or sorted(FORMS[track])

    @override
    def settings(self) -> dict[str, Any]:
        return {
            **self.writer.settings(),
            "track": self._track,
            "tags": self._tags,
            "length_ratio": self.length_ratio,
            "seed": self.seed,
        }

    @override
    async def compose(self, row: Row) -> RowOutcome:
        question = question_of(row)
        if is_too_simple(question.response):
            return dropped("answer too simple")
        tag, form = self._form(row["id"])
        written = await self._write(question, form, row["id"])
        problem = leak(written, question)
        if problem:
            return dropped(problem, tag=tag, **written._asdict())
        preds, gt = self._arranged(written, form, row["id"])
        item = {
            **without(row, "response"),
            "question": written.question,
            "answer": question.response,
            "style": form.style,
        }
        return kept(judging_row(item, tag, preds, gt, self.out.parent), tag=tag)

    def _form(self, name: str) -> tuple[str, ItemForm]:
        forms = FORMS[self._track]
        shares = np.array([forms[tag].share for tag in self._tags], float)
        rng = np.random.default_rng(seed_of("form", self.seed, name))
        tag = self._tags[int(rng.choice(len(shares), p=shares / shares.sum()))]
        return tag, forms[tag]

    async def _write(self, question: QuestionRow, form: ItemForm, name: str) -> WrittenItem:
        count = max(1, form.responses - 1)
        describing = form.style == "description"
        prompt = (
            descriptions(question.text, question.response)
            if describing
            else long_responses(question.text, question.response, count)
        )

        def read(reply: Row) -> WrittenItem:
            if describing:
                wrong = [read_text(reply, "wrong")]
                written = WrittenItem(_request(reply), read_text(reply, "right"), wrong)
            else:
                wrong = read_texts(reply, "wrong", count)
                written = WrittenItem(question.text, read_text(reply, "right"), wrong)
            self._check(written, question)
            return written

        seed = seed_of("armbench", self.seed, name)
        return await self.writer.write(prompt, question.images, read, seed)

    def _check(self, written: WrittenItem, question: QuestionRow) -> None:
        if not states(written.right, question.response):
            complaint = f"The right response must say {question.response!r:.200}, in these words."
            raise UnusableReplyError("answer not stated", complaint)
        if len({written.right, *written.wrong}) <= len(written.wrong):
            raise UnusableReplyError(
                "same response", "All responses must differ, but two are equal."
            )
        for wrong in written.wrong:
            ratio = len(wrong) / len(written.right)
            if not 1 / self.length_ratio <= ratio <= self.length_ratio:
                complaint = "All responses must be about equally long."
                raise UnusableReplyError("unequal length", complaint)

    def _arranged(
        self, written: WrittenItem, form: ItemForm, name: str
    ) -> tuple[list[str], int | str]:
        seed = seed_of("order", self.seed, name)
        preds, gt = arranged(written.right, written.wrong, seed)
        return (preds[:1], str(gt == 1)) if form.responses == 1 else (preds, gt)


def leak(written: WrittenItem, question: QuestionRow) -> str:
    """Return the cue that reveals the right response of an item, ``""`` if there is none."""
    if any(states(wrong, question.response) for wrong in written.wrong):
        return "leak: a wrong response contains the right answer"
    about = (question.text, question.response)
    if any(correctness_cue(text, *about) for text in (written.right, *written.wrong)):
        return "leak: a response talks of correctness"
    return ""


def _request(reply: Row) -> str:
    """Return the request for a description that a reply contains."""
    text = read_text(reply, "question")
    if "describe" not in text.casefold() or "in detail" not in text.casefold():
        complaint = (
            "The new question must contain “describe” and “in detail”, in any case. It was "
            f"{text!r:.200}."
        )
        raise UnusableReplyError("no describing question", complaint)
    return text
