"""Loads VLMEvalKit's TSV layout (Duan et al., arXiv 2407.11691): MMMU, MathVista and others.

Each data set is one file with VLMEvalKit's name (``MMMU_DEV_VAL.tsv``, ``MathVista_MINI.tsv``,
``MathVision.tsv``, ``MathVerse_MINI_Vision_Only.tsv``, ``WeMath.tsv``, ``LogicVista.tsv``,
``MME-RealWorld-Lite.tsv``). Every file has ``index``, ``image``, ``question`` and ``answer``;
``image`` is base64, a list of such texts, or the ``index`` of the row that contains the image. The
other columns determine the kind of question, as in VLMEvalKit's data set classes:

====================================  ==========================================================
columns                               kind of question
====================================  ==========================================================
``A``, ``B``, … filled                a choice (MMMU, WeMath, MME-RealWorld), after ``hint``
``choices``, a list of two or more    a choice, ``answer_option`` or ``answer`` is the letter
                                      (MathVista, MathVision)
``A:…`` lines under ``Choices:``      a choice (MathVerse; also of ``question_for_eval``)
``skill``, an answer of letters       one or several letters (LogicVista)
``answer_type`` integer or float      a number (MathVista)
anything else                         an open question
====================================  ==========================================================

`visenv.envs.arm.datasets.vlmeval_score` scores an answer by rule. VLMEvalKit uses a language model
if the rule finds no answer: use ``judge="openai:<model>"`` (`visenv.envs.arm.answer_judge`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Literal, NamedTuple

from typing_extensions import override

from visenv.data.json_rows import written_list
from visenv.data.rows import RowLocation, as_choices, contents, lettered, text_of
from visenv.data.table_source import SharedImageSource
from visenv.errors import DataError, UnknownNameError
from visenv.types import Episode, Sample

from ..tools.crop import original_name
from .vlmeval_score import VlmEvalTruth, vlmeval_score, wemath_totals

GROUPINGS = ("category", "l2-category", "task", "skill", "problem_version")
"""Columns by which results are reported."""

_COLUMNS = ("index", "image", "question", "answer")
_IMAGE_TOKEN = re.compile(r"<image\s?(\d{1,2})>")
_LINE = re.compile(r"^\(?([A-Z])[:.)]\s*(.+)$", re.MULTILINE)
_LETTERS = re.compile(r"[A-Za-z0-9](?:[\s,;]*[A-Za-z0-9]){0,7}")
_EMPTY = ("", "nan", "None")


class VlmEval(SharedImageSource):
    """Loads a data set in VLMEvalKit's TSV layout from a local folder.

    Opening the file reads it once completely; an image is read when its row is accessed. A row
    without its image is listed in `problems`.

    Args:
        folder: The folder with the file.
        name: The name of the file without ``.tsv``; by default the only one in the folder.
        split: Only rows with this value of the column ``split``, for example ``"validation"``.

    Raises:
        UnknownNameError: If there is no such file; suggests the nearest name.
        DataError: If the folder contains no TSV file, or no row can be used.
    """

    ground_truth = VlmEvalTruth

    required_columns = _COLUMNS

    def __init__(self, folder: str | Path, name: str = "", split: str = "") -> None:
        self.name = name
        self.split = split
        super().__init__(folder)

    def score(self, answer: str, sample: Sample, compat: Literal["r1_vlm"] | None = None) -> float:
        """Return 1 if the rule of the row's kind accepts the answer, otherwise 0."""
        return vlmeval_score(answer, sample)

    def totals(self, episodes: Sequence[Episode]) -> dict[str, float]:
        """Return WeMath's strict and loose score for the WeMath file, otherwise nothing."""
        known = [(episode, self.sample_of(episode)) for episode in episodes]
        return wemath_totals([(episode, sample) for episode, sample in known if sample is not None])

    @override
    def table_files(self) -> Sequence[Path]:
        path = _file(self.folder, self.name)
        self.name = path.stem
        return [path]

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample | tuple[()]:
        if self.split not in ("", row.get("split")):
            return ()
        return _sample(row, self.name)


class _Asked(NamedTuple):
    """Holds the complete text of a row's question, its options, and the right answer."""

    question: str
    options: tuple[str, ...]
    answer: str
    kind: Literal["choice", "letters", "number", "open"]


def _sample(row: Mapping[str, str], name: str) -> Sample:
    asked = _asked(row)
    labels = {key: row[key] for key in GROUPINGS if row.get(key, "") not in _EMPTY}
    labels |= _metadata(row.get("metadata", ""))
    truth = VlmEvalTruth(
        options=asked.options,
        labels=labels,
        answer_kind=asked.kind,
        exact=asked.kind in ("letters", "number"),
        judged_question=row.get("question_for_eval", ""),
        problem=row.get("ID", ""),
        step=row.get("key", ""),
    )
    identity = f"{name}-{text_of(row, 'index')}"
    kind = next(iter(labels.values()), "")
    return Sample(identity, asked.question, (), (asked.answer,), kind, truth)


def _asked(row: Mapping[str, str]) -> _Asked:
    answer = text_of(row, "answer").strip()
    question = _IMAGE_TOKEN.sub(_image_name, text_of(row, "question")).strip()
    if row.get("hint", "") not in _EMPTY:
        question = f"{row['hint']}\n{question}"
    columns = _columns(row, answer)
    if columns:
        return _choice(as_choices(question, columns), columns, answer)
    listed = [str(each) for each in _listed(row.get("choices", ""))]
    if len(listed) > 1:
        letter = row.get("answer_option", "") or answer
        lines = {line.strip() for line in question.splitlines()}
        shown = lines.issuperset(lettered(listed))
        return _choice(question if shown else as_choices(question, listed), listed, letter)
    full = row.get("question_for_eval", "") or question
    written = dict(_LINE.findall(full.partition("Choices:")[2]))
    if len(written) > 1 and "".join(written) == ascii_uppercase[: len(written)]:
        return _choice(question, list(written.values()), answer)
    if "skill" in row and _LETTERS.fullmatch(answer):
        return _Asked(question, (), answer, "letters")
    if row.get("answer_type") in ("integer", "float"):
        return _Asked(question, (), answer, "number")
    return _Asked(question, (), answer, "open")


def _columns(row: Mapping[str, str], answer: str) -> list[str]:
    """Return the options of the columns ``A``, ``B``, …; empty if fewer than two are filled.

    The text of an option may be "None" or "nan". Such a cell is an option if a later column is
    filled, or if it is the right answer; otherwise the cell counts as empty.
    """
    filled = [
        place
        for place, letter in enumerate(ascii_uppercase)
        if row.get(letter, "") not in (("",) if letter == answer else _EMPTY)
    ]
    if len(filled) < 2:
        return []
    return [row.get(letter, "") for letter in ascii_uppercase[: filled[-1] + 1]]


def _choice(question: str, options: Sequence[str], answer: str) -> _Asked:
    letters = ascii_uppercase[: len(options)]
    if len(answer) != 1 or answer not in letters:
        places = [place for place, option in enumerate(options) if option.strip() == answer]
        if len(places) != 1:
            raise DataError(f"the answer {answer!r:.80} is not among the options {letters}")
        answer = letters[places[0]]
    return _Asked(question, tuple(options), answer, "choice")


def _image_name(token: re.Match[str]) -> str:
    """Return the environment's name for the image of a placeholder such as ``<image 2>``."""
    return f"[{original_name(max(0, int(token[1]) - 1))}]"


def _listed(cell: str) -> list[Any]:
    return [] if cell in _EMPTY else written_list(cell)


def _metadata(cell: str) -> dict[str, str]:
    """Return the columns of `GROUPINGS` from the mapping that MathVerse stores in a cell."""
    try:
        found = ast.literal_eval(cell) if cell not in _EMPTY else {}
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return {}
    named = found.items() if isinstance(found, dict) else ()
    return {key: value for key, value in named if key in GROUPINGS and isinstance(value, str)}


def _file(folder: Path, name: str) -> Path:
    found = {file.stem: file for file in sorted(folder.glob("*.tsv"))}
    if not found:
        raise DataError(f"Expected a .tsv file in {folder}; it holds {contents(folder)}.")
    if name in found:
        return found[name]
    if name or len(found) > 1:
        raise UnknownNameError(f"TSV file in {folder}", name, found)
    return next(iter(found.values()))
