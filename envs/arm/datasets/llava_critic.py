"""Loads LLaVA-Critic-113k (Xiong et al., arXiv 2410.02712): judgments of GPT-4o as conversations.

Hub (``lmms-lab/llava-critic-113k``; needs the extra ``data``)::

    pairwise/train-*.parquet     40,154 rows        pointwise/train-*.parquet     72,782 rows

or ``pairwise.json`` and ``pointwise.json`` with image paths. Columns: ``id``, ``source``, ``image``
and ``conversations`` (``[{"from": "human", "value": …}, {"from": "gpt", "value": …}]``).

The question, the responses and the verdict are parsed from the text of the two turns, which has one
of four forms; a row with another form, or with a draw as verdict, is listed in ``problems``:

============  ==================================================  ================================
form          the human turn                                      the verdict
============  ==================================================  ================================
brackets      ``Question: […]``, ``The first response: […]``,     ``The better response: [first]``
              ``The second response: […]`` (also Response 1 / A)
arena         ``<|User Prompt|>``, ``<|The Start of Assistant     ``[[A>B]]``, ``[[B>>A]]``, …
              A's Answer|>`` …
two scores    ``[Question]``, ``[Assistant 1]`` … ``[End of       a first line of two scores
              Assistant 1]`` …
caption       ``Text Caption: …``, then how to score it           ``Final Score: n``, 0 to 100
============  ==================================================  ================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from typing_extensions import override

from visenv.data.rows import RowLocation, id_of, text_of
from visenv.data.table_source import TableSource
from visenv.errors import DataError, UnknownNameError
from visenv.types import Sample

from ..ground_truth import JudgingTruth, judging_sample

KINDS = ("pairwise", "pointwise")
ORDERS = ("published", "both")
TOP_SCORE = 100

_BETTER = re.compile(r"The better response: \[(\w+)\]")
_ARENA_VERDICT = re.compile(r"\[\[(A>>B|A>B|A=B|B>A|B>>A)\]\]")
_SCORES = re.compile(r"\s*(\d{1,4}(?:\.\d+)?)[\s,]+(\d{1,4}(?:\.\d+)?)\s*(?:\n|$)")
_FINAL = re.compile(r"Final Score:\s*(\d{1,4}(?:\.\d+)?)")
_ORDINALS = {"first": 1, "1": 1, "a": 1, "second": 2, "2": 2, "b": 2}


class LLaVACritic(TableSource):
    """Loads LLaVA-Critic-113k from a local folder.

    A row with two responses becomes a sample that asks which one is better. A row with a caption
    becomes a sample that asks whether it is right; it is right if its score is at least 50 of 100.
    `Sample.kind` is the form of the row.

    Args:
        folder: The folder with the files.
        kind: ``"pairwise"`` or ``"pointwise"``; the two forms with two responses occur in both.
        orders: ``"published"``, or ``"both"``: each pair occurs a second time with its responses
            swapped, as in ARM-Thinker's SFT data (arXiv 2512.05111, appendix A.2).

    Raises:
        UnknownNameError: If there is no such kind, or no such order.
        DataError: If the folder has no such file, or no row can be used.
    """

    ground_truth = JudgingTruth

    def __init__(
        self, folder: str | Path, kind: str = "pairwise", orders: str = "published"
    ) -> None:
        if kind not in KINDS:
            raise UnknownNameError("kind of LLaVA-Critic", kind, KINDS)
        if orders not in ORDERS:
            raise UnknownNameError("orders of LLaVA-Critic", orders, ORDERS)
        self.kind = kind
        self.orders = orders
        self.patterns = (f"{kind}/train-*.parquet", f"{kind}/*.parquet", f"{kind}*.json*")
        super().__init__(folder)

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> list[Sample]:
        human, verdict = _turns(row)
        form, texts = _read(human)
        judgment = form.verdict(verdict)
        candidates = tuple([texts[key] for key in ("first", "second") if key in texts])
        truth = JudgingTruth(
            candidates=candidates,
            source=row.get("source"),
            score=judgment.score,
            rating=None if judgment.score is None else (0, TOP_SCORE),
        )
        sample = judging_sample(
            id=f"llava_critic-{self.kind}-{id_of(row)}",
            instruction=texts["question"],
            truth=truth,
            verdict=judgment.verdict,
            kind=form.name,
        )
        if self.orders == "published" or len(candidates) < 2:
            return [sample]
        swapped = judging_sample(
            id=f"{sample.id}/swapped",
            instruction=sample.question,
            truth=replace(truth, candidates=candidates[::-1]),
            verdict=3 - int(judgment.verdict),
            kind=form.name,
        )
        return [sample, swapped]


class _Judgment(NamedTuple):
    verdict: bool | int
    score: float | None = None


def _better(verdict: str) -> _Judgment:
    found = _BETTER.findall(verdict)
    if not found or found[-1].lower() not in _ORDINALS:
        raise DataError(f"no better response, or a draw: …{verdict[-80:]!r}")
    return _Judgment(_ORDINALS[found[-1].lower()])


def _arena(verdict: str) -> _Judgment:
    found = _ARENA_VERDICT.findall(verdict)
    if not found or found[-1] == "A=B":
        raise DataError(f"no verdict such as [[A>B]], or a draw: …{verdict[-80:]!r}")
    return _Judgment(1 if found[-1].startswith("A") else 2)


def _two_scores(verdict: str) -> _Judgment:
    found = _SCORES.match(verdict)
    if found is None:
        raise DataError(f"the verdict does not begin with two scores: {verdict[:80]!r}")
    first, second = map(float, found.groups())
    if first == second:
        raise DataError(f"the verdict is a draw: {first:g} and {second:g}")
    return _Judgment(1 if first > second else 2)


def _caption(verdict: str) -> _Judgment:
    found = _FINAL.findall(verdict)
    score = float(found[-1]) if found else -1.0
    if not 0 <= score <= TOP_SCORE:
        raise DataError(f"no Final Score from 0 to {TOP_SCORE}: …{verdict[-80:]!r}")
    return _Judgment(score >= TOP_SCORE / 2, score)


_Read = Callable[[str], _Judgment]


class _Form(NamedTuple):
    """Describes the form of a row's text; the markers match in their order."""

    name: str
    parts: tuple[str, ...]  # the part after each marker of the human turn; `""` is ignored
    markers: tuple[str, ...]  # regular expressions; the last one ends the last part
    verdict: _Read  # parses the other turn

    def read(self, human: str) -> dict[str, str] | None:
        """Return the parts by name, or None if a marker is missing; takes linear time."""
        found: list[re.Match[str]] = []
        for marker in self.markers:
            match = re.compile(marker).search(human, found[-1].end() if found else 0)
            if match is None:
                return None
            found.append(match)
        texts = (human[one.end() : other.start()].strip() for one, other in pairwise(found))
        return {name: text for name, text in zip(self.parts, texts, strict=True) if name}


def _label(*names: str) -> str:
    return rf"\]\s*+(?:{'|'.join(names)}): \["


_FORMS = (
    _Form(
        "brackets",
        ("question", "first", "second"),
        (
            r"Question: \[",
            _label("Response 1", "Response A", "The first response"),
            _label("Response 2", "Response B", "The second response"),
            r"\][^\]]*+\Z",
        ),
        _better,
    ),
    _Form(
        "arena",
        ("question", "first", "", "second"),
        (
            r"<\|User Prompt\|>",
            r"<\|The Start of Assistant A's Answer\|>",
            r"<\|The End of Assistant A's Answer\|>",
            r"<\|The Start of Assistant B's Answer\|>",
            r"<\|The End of Assistant B's Answer\|>",
        ),
        _arena,
    ),
    _Form(
        "two scores",
        ("question", "first", "", "second"),
        (
            r"\[Question\]",
            r"\[Assistant 1\]",
            r"\[End of Assistant 1\]",
            r"\[Assistant 2\]",
            r"\[End of Assistant 2\]",
        ),
        _two_scores,
    ),
    _Form(
        "caption",
        ("first", "question"),
        (r"Text Caption:", r"\n(?=From 0 to 100,)", r"\n|\Z"),
        _caption,
    ),
)


def _read(human: str) -> tuple[_Form, dict[str, str]]:
    for form in _FORMS:
        texts = form.read(human)
        if texts is not None:
            return form, texts
    raise DataError(f"none of the forms {', '.join(each.name for each in _FORMS)}: {human[:120]!r}")


def _turns(row: Mapping[str, Any]) -> tuple[str, str]:
    turns = row.get("conversations")
    if not isinstance(turns, list) or len(turns) != 2:
        raise DataError(f"conversations must be two turns, got {turns!r:.200}")
    human, gpt = (text_of(turn, "value") for turn in turns)
    return human.replace("<image>", ""), gpt
