"""Loads and scores RewardBench 2 (Malik et al., arXiv 2506.01937): text, the best of four, Ties.

Each prompt occurs twice: as a reference (``ref:7``) with one right answer, and tied (``tied:7``)
with several that are equally right. A good judge rates every right answer above every wrong one,
and the ratings of right answers are closer to each other than to those of wrong ones. With, for one
prompt,

- ``spread`` = best - worst rating of the right answers,
- ``gap`` = worst rating of the right answers - best rating of the wrong ones,

the score is the weighted sum of five means, as in the benchmark's own code:

=========  ======  ==================================================  =========================
part       weight  value of a prompt                                   mean over
=========  ======  ==================================================  =========================
ref        0.30    1 if ``gap > 0``                                    references
tied       0.30    1 if ``gap > 0``                                    tied prompts
margin     0.20    1 if the tied ``gap > spread``                      prompts in both forms
hard       0.20    1 if the smaller ``gap`` of the two ``> spread``    prompts in both forms
fine       0.01    ``tanh(smaller gap / spread - 1)``                  prompts in both forms
=========  ======  ==================================================  =========================

It is between -0.01 and 1.01. If the spread is 0, ``fine`` is the gap's sign.

Hub (``allenai/reward-bench-2``; needs the extra ``data``)::

    data/test-00000-of-00001.parquet

or a copy as ``*.jsonl``. Columns used: ``id``, ``prompt``, ``chosen`` and ``rejected`` (lists of
texts), ``num_correct`` and ``subset``.

Outside Ties a row has one chosen and three rejected responses. The chosen one is swapped with the
response at a position from 1 to 4, which is drawn by ``numpy.random.default_rng`` from the MD5 of
the id modulo 2**32, as in ARM-Thinker's code.

A Ties row has many responses, several of them right, and each is rated separately from 1 to 10.
Each response therefore becomes a sample; `RewardBench2.totals` combines the ratings.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import override

from visenv.data.rows import RowLocation, id_of, text_of
from visenv.data.table_source import TableSource
from visenv.errors import DataError, UnknownNameError
from visenv.types import Episode, EventLog, Sample

from ..ground_truth import JudgingTruth, Tie, judging_sample

SUBSETS = ("Factuality", "Focus", "Math", "Precise IF", "Safety", "Ties")

SCALE = (1, 10)

UNRATED = -1
"""The rating of a response without rating, below all others, as in the public code."""

_WHOLE_NUMBER = re.compile(r"(?<!\w)(?:0|[1-9][0-9]{0,2})(?!\w)")

_TIE = re.compile(r"(?:ref|tied):[0-9]{1,9}")

_TAG = re.compile(r"<[^<>]{0,100}>")


class RatedPrompt(NamedTuple):
    """Holds the ratings of a prompt's answers.

    Attributes:
        id: ``"ref:<n>"`` or ``"tied:<n>"``.
        ratings: One for each answer; the right answers come first.
        correct: The number of right answers.
    """

    id: str
    ratings: Sequence[float]
    correct: int


class TiesScore(NamedTuple):
    """Holds the five parts, each a mean; see the module."""

    ref: float
    tied: float
    margin: float
    hard: float
    fine: float

    @property
    def total(self) -> float:
        """Return 0.3 ref + 0.3 tied + 0.2 margin + 0.2 hard + 0.01 fine, -0.01 to 1.01."""
        right = 0.3 * self.ref + 0.3 * self.tied
        return right + 0.2 * self.margin + 0.2 * self.hard + 0.01 * self.fine


class _Spans(NamedTuple):
    spread: float
    gap: float


def ties_score(prompts: Iterable[RatedPrompt]) -> TiesScore:
    """Compute the score from the ratings of the whole subset.

    Raises:
        DataError: If an id has another form or occurs twice, a prompt lacks right or wrong
            answers, or no prompt occurs in both forms.
    """
    forms: dict[str, dict[int, _Spans]] = {"ref": {}, "tied": {}}
    for prompt in prompts:
        form, number = _identity(prompt.id)
        if number in forms[form]:
            raise DataError(f"{prompt.id} was rated twice.")
        forms[form][number] = _spans(prompt)
    ref, tied = forms["ref"], forms["tied"]
    both = [
        (tied[number].spread, tied[number].gap, ref[number].gap) for number in tied.keys() & ref
    ]
    if not both:
        raise DataError(
            "The margin compares prompts with the same number in both forms, ref:N and tied:N, and "
            "no number occurs in both: rate the whole subset Ties."
        )
    return TiesScore(
        ref=_mean([each.gap > 0 for each in ref.values()]),
        tied=_mean([each.gap > 0 for each in tied.values()]),
        margin=_mean([gap > spread for spread, gap, _ in both]),
        hard=_mean([min(gap, other) > spread for spread, gap, other in both]),
        fine=_mean([_fine(min(gap, other), spread) for spread, gap, other in both]),
    )


def _identity(text: str) -> tuple[str, int]:
    form, _, number = text.partition(":")
    if form not in ("ref", "tied") or not number.isdecimal():
        raise DataError(f"The id must be ref:<n> or tied:<n>, got {text!r}.")
    return form, int(number)


def _spans(prompt: RatedPrompt) -> _Spans:
    right, wrong = prompt.ratings[: prompt.correct], prompt.ratings[prompt.correct :]
    if prompt.correct < 1 or not right or not wrong:
        raise DataError(
            f"{prompt.id} needs right and wrong answers, got {prompt.correct} right ones of "
            f"{len(prompt.ratings)}."
        )
    return _Spans(max(right) - min(right), min(right) - max(wrong))


def _fine(gap: float, spread: float) -> float:
    if spread == 0:
        return math.copysign(1.0, gap) if gap else 0.0
    return math.tanh(gap / spread - 1)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


class RewardBench2(TableSource):
    """Loads RewardBench 2 from a local folder.

    `Sample.kind` is the subset. In Ties, a sample asks about one response: the verdict says whether
    it is right, and the response is rated from 1 to 10.

    Args:
        folder: The folder with the files.
        subset: ``"best-of-4"`` (all but Ties) or one of `SUBSETS`.

    Raises:
        UnknownNameError: If there is no such subset.
        DataError: If the folder has no such file, or no row can be used.
    """

    ground_truth = JudgingTruth
    patterns = ("data/test-*.parquet", "test-*.parquet", "*.jsonl")
    image_columns = ()

    def __init__(self, folder: str | Path, subset: str = "best-of-4") -> None:
        if subset not in ("best-of-4", *SUBSETS):
            raise UnknownNameError("subset of RewardBench 2", subset, ["best-of-4", *SUBSETS])
        self.subset = subset
        super().__init__(folder)

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> list[Sample]:
        subset = text_of(row, "subset")
        if subset not in SUBSETS:
            raise DataError(str(UnknownNameError("subset", subset, SUBSETS)))
        wanted = [each for each in SUBSETS if each != "Ties"]
        if subset not in (wanted if self.subset == "best-of-4" else [self.subset]):
            return []
        return _ties(row) if subset == "Ties" else [_best_of_4(row, subset)]

    def totals(self, episodes: Sequence[Episode]) -> dict[str, float]:
        """Return the Ties score over rows of which every response was played, if there are any.

        Args:
            episodes: All episodes; a rating is an answer's last whole number from 1 to 10. An
                aborted episode counts against the judge: a right response has no rating, and a
                wrong one the highest.
        """
        rated: dict[str, dict[int, float]] = defaultdict(dict)
        rows: dict[str, Tie] = {}
        for episode in episodes:
            sample = self.sample_of(episode)
            tie = None if sample is None else sample.truth_as(JudgingTruth).tie
            if tie is not None:
                rows[tie.row] = tie
                rating = rating_of(EventLog(episode.events).answer)
                if episode.status == "aborted" and tie.place >= tie.right:
                    rating = SCALE[1]
                rated[tie.row][tie.place] = rating
        prompts = [
            RatedPrompt(row, [ratings[place] for place in sorted(ratings)], rows[row].right)
            for row, ratings in rated.items()
            if len(ratings) == rows[row].responses
        ]
        try:
            score = ties_score(prompts)
        except DataError:
            return {}
        parts = {f"Ties {name}": value for name, value in score._asdict().items()}
        return {"Ties": score.total, **parts}


def rating_of(answer: str | None, scale: Sequence[int] = SCALE) -> int:
    """Return the last whole number on the scale in an answer, or `UNRATED`."""
    low, high = scale
    numbers = map(int, _WHOLE_NUMBER.findall(_TAG.sub("", answer or "")))
    return next((each for each in reversed([*numbers]) if low <= each <= high), UNRATED)


def place_of_chosen(identity: str) -> int:
    """Return the position, 0 to 3, of the chosen response of a row."""
    digest = hashlib.md5(identity.encode("utf-8", "surrogatepass"), usedforsecurity=False)
    seed = int.from_bytes(digest.digest()) % 2**32
    return int(np.random.default_rng(seed).integers(0, 4))


def _best_of_4(row: Mapping[str, Any], subset: str) -> Sample:
    identity = id_of(row)
    chosen, rejected = _texts(row, "chosen"), _texts(row, "rejected")
    if (len(chosen), len(rejected)) != (1, 3):
        raise DataError(
            f"{len(chosen)} chosen and {len(rejected)} rejected responses, expected 1 and 3"
        )
    candidates = [*chosen, *rejected]
    place = place_of_chosen(identity)
    candidates[0], candidates[place] = candidates[place], candidates[0]
    return judging_sample(
        id=f"rewardbench2-{subset}-{identity}",
        instruction=text_of(row, "prompt"),
        truth=JudgingTruth(candidates=tuple(candidates)),
        verdict=place + 1,
        kind=subset,
    )


def _ties(row: Mapping[str, Any]) -> list[Sample]:
    identity = id_of(row)
    if not _TIE.fullmatch(identity):
        raise DataError(f"the id of a tie must be ref:<n> or tied:<n>, got {identity!r:.80}")
    chosen, rejected = _texts(row, "chosen"), _texts(row, "rejected")
    if row.get("num_correct", len(chosen)) != len(chosen):
        raise DataError(
            f"num_correct is {row['num_correct']!r}, but {len(chosen)} responses are chosen"
        )
    responses = [*chosen, *rejected]
    return [
        judging_sample(
            id=f"rewardbench2-Ties-{identity}-{place}",
            instruction=text_of(row, "prompt"),
            truth=JudgingTruth(
                candidates=(response,),
                rating=SCALE,
                tie=Tie(row=identity, place=place, right=len(chosen), responses=len(responses)),
            ),
            verdict=place < len(chosen),
            kind="Ties",
        )
        for place, response in enumerate(responses)
    ]


def _texts(row: Mapping[str, Any], key: str) -> list[str]:
    given = row.get(key)
    if not isinstance(given, list) or not given or not all(isinstance(each, str) for each in given):
        raise DataError(f"{key} must be a list of texts, got {given!r:.200}")
    return given
