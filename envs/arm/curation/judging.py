"""Creates judging items: responses in a seeded order, and the leaks that make an item useless.

Texts are compared by their words; case, punctuation, articles and the notation of numbers
("three", "3", "3.0", "1,000") are ignored.

An item is ``{"idx", "rm_tag", "question", "preds", "gt", "images", …}``, where ``gt`` is the number
of the right response, from 1, or ``"True"``/``"False"`` for a single one. Environments use the
items with ``data="armbench:<folder>"`` (`visenv.envs.arm.datasets.armbench`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from visenv.curation.journal import RowOutcome, kept
from visenv.curation.lines import Row, copy_image
from visenv.curation.step import CurationStep, seed_of
from visenv.data.json_rows import written_list
from visenv.errors import DataError, UnknownNameError
from visenv.types import Image

from ..datasets.armbench import TRACKS
from .rows import images_of, short_text, without

_WORD = re.compile(r"[^\W_]+(?:[.'’-][^\W_]+)*")

_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")

_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,15})?")

_ARTICLES = frozenset(("a", "an", "the"))

# fmt: off
_NUMERALS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
    "twenty",
)

_SIMPLE = frozenset((
    "yes", "no", "true", "false", "y", "n", "t", "f", "maybe", "none", "unknown", "not sure",
    "unanswerable", "not answerable", "cannot be determined",
))

_CUES = re.compile(
    r"\b(?:in)?correct(?:ly|ness)?\b|\b(?:wrong|mistaken|erroneous|inaccurate)(?:ly)?\b"
    r"|\bmistakes?\b|\bmislead(?:s|ing|ingly)?\b|\bflawed\b|\bplausibl[ey]\b|\bhallucinat\w*"
    r"|\bdistractors?\b|\bground[ -]truth\b|\bresponse[ _]?\d\b"
    r"|\b(?:given|provided|reference|original|actual|true|real) (?:answer|solution|response)\b",
    re.IGNORECASE,
)

# fmt: on


def words(text: str) -> str:
    """Return the relevant words of a text, with one blank before each and one at the end."""
    plain = _THOUSANDS.sub("", unicodedata.normalize("NFKC", text).casefold())
    found = [_word(word) for word in _WORD.findall(plain)]
    return " ".join(["", *(word for word in found if word not in _ARTICLES), ""])


def _word(word: str) -> str:
    word = re.sub(r"['’]s$", "", word)
    if _NUMBER.fullmatch(word):
        return f"{float(word):.15g}"
    return str(_NUMERALS.index(word)) if word in _NUMERALS else word


def states(text: str, answer: str) -> bool:
    """Return whether a text states an answer: its words in a row, or each item of a list.

    Raises:
        DataError: If the answer has no relevant word.
    """
    said = words(text)
    return all(fact in said for fact in _facts(answer))


def _facts(answer: str) -> list[str]:
    items = [answer]
    if answer.strip().startswith("["):
        try:
            items = [str(item) for item in written_list(answer)]
        except DataError:
            items = [answer]
    facts = [fact for fact in map(words, items) if fact.strip()]
    if not facts:
        raise DataError(f"the answer {answer!r:.80} has no word to search for")
    return facts


def is_too_simple(answer: str) -> bool:
    """Return whether an answer can be guessed, such as a bare yes or no."""
    said = words(answer).strip()
    return said in _SIMPLE or said == ""


def correctness_cue(text: str, *about: str) -> str | None:
    """Return the first word of a text about correctness that does not occur in `about`.

    For example, a sign can read "WRONG WAY": words of the question or the answer are not a cue.
    """
    allowed = {cue.casefold() for each in about for cue in _CUES.findall(each)}
    found = (match.group() for match in _CUES.finditer(text))
    return next((cue for cue in found if cue.casefold() not in allowed), None)


def arranged(right: str, wrong: Sequence[str], seed: int) -> tuple[list[str], int]:
    """Return all responses in an order drawn with `seed`, and the right one's number, from 1."""
    order = np.random.default_rng(seed).permutation(1 + len(wrong))
    responses = [right, *wrong]
    return [responses[place] for place in order], int(np.argmin(order)) + 1


def judging_row(row: Row, tag: str, preds: Sequence[str], gt: int | str, folder: Path) -> Row:
    """Return one item; other fields of `row` are copied to it.

    Args:
        row: A row with ``id``, ``question`` and ``images``.
        tag: The ``rm_tag``.
        preds: The responses.
        gt: The right response, or the verdict.
        folder: The output folder. The images are copied to ``images/`` in it, because all files of
            a benchmark must be in its folder.

    Raises:
        DataError: If an image cannot be read.
    """
    return {
        **row,
        "idx": row["id"],
        "rm_tag": tag,
        "preds": list(preds),
        "gt": gt,
        "images": [_copied(Path(path), folder) for path in images_of(row)],
    }


def check_track(track: str) -> str:
    """Return the name of a track, after checking that it exists.

    Raises:
        UnknownNameError: If there is no such track.
    """
    if track not in TRACKS:
        raise UnknownNameError("track of ARMBench-VL", track, TRACKS)
    return track


@dataclass(eq=False)
class MakePairs(CurationStep):
    """Creates judging items from preference pairs without a writer, to train a judge."""

    name: ClassVar[str] = "arrange"

    folder: Path
    both_orders: bool = False
    """Write each pair in both orders, as the paper does with LLaVA-Critic's pairs, instead of in
    one random order.
    """
    seed: int = 0
    """Seed of the order."""

    @override
    def settings(self) -> dict[str, Any]:
        return {"both_orders": self.both_orders, "seed": self.seed}

    @override
    async def decide(self, row: Row) -> RowOutcome:
        short_text(row, "question")
        pair = [short_text(row, "chosen"), short_text(row, "rejected")]
        plain = without(row, "chosen", "rejected")
        if not self.both_orders:
            seed = seed_of("arrange", self.seed, row["id"])
            preds, gt = arranged(pair[0], pair[1:], seed)
            return kept(judging_row(plain, "pair_rm", preds, gt, self.folder))
        return kept(
            *(
                judging_row(
                    {**plain, "id": f"{row['id']}/{gt}"}, "pair_rm", pair[::step], gt, self.folder
                )
                for gt, step in ((1, 1), (2, -1))
            )
        )


def _copied(path: Path, folder: Path) -> str:
    """Copy an image file into `folder`, once, and return the copy; broken files raise an error."""
    _ = Image.from_file(path).size  # reads the header
    return str(copy_image(path, folder))
