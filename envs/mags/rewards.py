"""Computes the reward of Mags-RL (appendix B), as named terms over the event log.

Words are the lower-case matches of ``[A-Za-z]+``, either in the thought without its zoom block or
in the second thought. N is the number of different words, and d is their share of all words. n is
the number of written boxes, and k the number of valid ones. Z is 1 if a closed thought contains
exactly one zoom block with at least one box; S = Z·(0.1 + 0.9·[N ≥ 5]·[d ≥ 0.4]). a* is the true
count.

==================  ======  ======================================================================
term                weight  value
==================  ======  ======================================================================
``answer_format``   0.1     1 for an answer in round 2
``think_format``    0.1     0.25 for each tag in order
``rethink_format``  0.1     0.25 for each tag in order
``zoom_format``     0.5     Z·[N ≥ 5]·(0.1 if d < 0.4, else 0.5 + 0.5·min(1, ln(N + 1) / ln 20))
``answer``          2       answer_format · max(exact, 0.5·[judge ≥ 0.7])
``zoom``            1       stage 1: Z·[N ≥ 5]·(0.1 if d < 0.4, else 1)·k/n
                            stage 2, counting: S·max(0, min(1, k/a*) - 0.05·(n - k) - extra)
                            stage 2, other questions: S·k/n
``rethink``         0.5     (0.5 + 0.5·answer_format)·[N ≥ 5]·min(1, 0.2·√N)
==================  ======  ======================================================================

``extra`` is 0.05 for each valid box beyond max(a*, 1).

In procedural scenes, where the signs that decide the answer are known, stage 2 pays for the signs
that the boxes have shown (``zoom_rule="evidence"``, `visenv.envs.mags.evidence`): ``zoom`` is
S·G·F, and ``zoom_format`` is the value above times G·F. G = max(0, c - 0.05·m), where c is the
share of these signs that a crop contained and m the number of boxes that showed none. F is 1 for an
exact answer, otherwise -1/(K - 1), where K is the number of possible answers. A policy that guesses
therefore gains nothing by zooming, wherever it looks. ``zoom_rule="valid"`` pays the formulas of
the table.

``compat="paper"`` pays the formulas as
printed: without ``extra``, with both cases of ``zoom_format`` and ``zoom`` at d = 0.4, and with
duplicates as valid boxes, also if the environment rejected them (a saved episode that is rescored).
"""

from __future__ import annotations

import math
import re
from functools import partial
from typing import Literal, NamedTuple

from visenv.grammar.zoom_in_think import scan
from visenv.rewards import RewardTerm, of_log
from visenv.types import EventLog, Sample

from .evidence import MISS, ZoomRule, knows_evidence, over_chance, shown_evidence
from .judge import answer_term

Compat = Literal["paper"] | None
Stage = Literal["stage1", "stage2"]

COUNTING = "counting"
"""The `Sample.kind` of counting questions."""

_WORD = re.compile(r"[A-Za-z]+")
_LEAST_WORDS = 5
_LEAST_DIVERSITY = 0.4

_MOST_DIGITS = 9
"""Maximum length of the answer of a counting question; a longer one is not read as a number."""


class RewardSettings(NamedTuple):
    """Sets the options of the reward.

    Attributes:
        stage: The stage whose zoom term is paid.
        judge: ``"rules"``, or a scorer with a language model such as ``"openai:gpt-4o-mini"``.
        rethink: Whether the optional rethink term is paid.
        compat: ``"paper"`` pays the formulas as printed.
        zoom_rule: ``"evidence"`` pays for shown evidence in stage 2, if it is known.
    """

    stage: Stage
    judge: str = "rules"
    rethink: bool = True
    compat: Compat = None
    zoom_rule: ZoomRule = "valid"


class WordDiversity(NamedTuple):
    """Holds the word statistics of a text.

    Attributes:
        different: N, the number of different words.
        diversity: d, their share of all words; 0 if there is none.
    """

    different: int
    diversity: float


class FirstRound(NamedTuple):
    """Describes the turn of round 1.

    Attributes:
        formed: Z, whether a closed thought contains exactly one zoom block with a box.
        words: The words of the thought.
        written: n, the number of boxes written.
        valid: k, the number of valid boxes.
    """

    formed: bool
    words: WordDiversity
    written: int
    valid: int


def reward_terms(settings: RewardSettings) -> list[RewardTerm]:
    """Return the terms with the paper's weights."""
    compat = settings.compat
    by_evidence = settings.stage == "stage2" and settings.zoom_rule == "evidence" and not compat
    zoom = partial(_zoom, stage=settings.stage, compat=compat, by_evidence=by_evidence)
    terms = [
        RewardTerm(
            "answer_format",
            0.1,
            of_log(answer_format),
            "1 if round 2 contains one answer, else 0.",
        ),
        RewardTerm(
            "think_format",
            0.1,
            of_log(partial(_tags, turn=0, name="think")),
            "0.25 for `<think>` in round 1, and 0.25 for `</think>` after it.",
        ),
        RewardTerm(
            "rethink_format",
            0.1,
            of_log(partial(_tags, turn=1, name="rethink")),
            "0.25 for `<rethink>` in round 2, and 0.25 for `</rethink>` after it.",
        ),
        RewardTerm(
            "zoom_format",
            0.5,
            of_log(partial(_zoom_format, compat=compat, by_evidence=by_evidence)),
            "Value of the first thought if it contains one zoom block with a box, 0 to 1; it grows "
            "with the number of different words, and is 0.1 if the thought is repetitive. With the "
            "rule `evidence` times the shown share of the signs to look at, and below 0 if the "
            "answer is wrong.",
        ),
        RewardTerm(
            "answer",
            2.0,
            answer_term(settings.judge),
            "1 if the answer is exact, 0.5 if only the judge accepts it, else 0.",
        ),
        RewardTerm(
            "zoom",
            1.0,
            of_log(zoom),
            "Quality of the boxes, 0 to 1: the share of valid boxes, or for a counting question of "
            "stage 2 the share of the counted objects that they can show minus a penalty for "
            "invalid boxes; less for a short or repetitive thought. With the rule `evidence`, the "
            "share of the signs to look at that the crops contain minus a penalty for other boxes, "
            "and below 0 if the answer is wrong.",
        ),
    ]
    if settings.rethink:
        terms.append(
            RewardTerm(
                "rethink",
                0.5,
                of_log(_rethink),
                "Value of the second thought, 0 to 1; it grows with the number of different words, "
                "and is halved without an answer.",
            )
        )
    return terms


def top_reward(rethink: bool) -> float:
    """Return the maximum reward: 4.2, or 3.7 without the rethink term."""
    return 4.2 if rethink else 3.7


# ------------------------------------------------------------------ inputs of the terms


def count_words(text: str | None) -> int:
    """Return the number of words of a text, with repeated words."""
    return len(_words_of(text))


def words(text: str | None) -> WordDiversity:
    """Return the word statistics of a text."""
    found = _words_of(text)
    return WordDiversity(len({*found}), len({*found}) / len(found) if found else 0.0)


def _words_of(text: str | None) -> list[str]:
    """Return the words of a text in lower case."""
    return [word.lower() for word in _WORD.findall(text or "")]


def first_thought(log: EventLog) -> str | None:
    """Return the thought of round 1 without its zoom block, None if it is not closed."""
    return scan(log.turns[0].text).thought if log.turns else None


def zooming(log: EventLog, compat: Compat) -> FirstRound:
    """Return the facts of round 1, from the event of its zoom call and its thought."""
    calls = [call for call in log.tool_calls if call.turn == 0 and "written" in call.detail]
    thought = first_thought(log)
    if not calls or thought is None:
        return FirstRound(False, words(thought), 0, 0)
    detail = calls[0].detail
    valid = detail["valid"] + (detail["duplicates"] if compat else 0)
    return FirstRound(detail["written"] >= 1, words(thought), detail["written"], valid)


def true_count(sample: Sample) -> int | None:
    """Return a* of a counting question, None for other questions."""
    if sample.kind != COUNTING or not sample.answers:
        return None
    answer = sample.answers[0]
    return int(answer) if answer.isdecimal() and len(answer) <= _MOST_DIGITS else None


# ------------------------------------------------------------------ terms


def answer_format(log: EventLog, sample: Sample) -> float:
    """Return 1 if round 2 contained one answer, otherwise 0."""
    return float(log.answer is not None)


def _tags(log: EventLog, sample: Sample, turn: int, name: str) -> float:
    """Return 0.25 for the opening tag, and 0.25 more for a closing tag after it."""
    if len(log.turns) <= turn:
        return 0.0
    _, opening, rest = log.turns[turn].text.partition(f"<{name}>")
    return 0.25 * bool(opening) + 0.25 * (f"</{name}>" in rest)


def _zoom_format(log: EventLog, sample: Sample, compat: Compat, by_evidence: bool) -> float:
    formed, (different, diversity), _, _ = zooming(log, compat)
    if not formed or different < _LEAST_WORDS:
        return 0.0
    length = 0.5 + 0.5 * min(1.0, math.log(different + 1) / math.log(20))
    value = _by_diversity(diversity, length, compat)
    return value * _shown(log, sample) if by_evidence and knows_evidence(sample) else value


def _shown(log: EventLog, sample: Sample) -> float:
    """Return the grounding of the boxes, corrected for chance: G·F."""
    return shown_evidence(log, sample).grounding * over_chance(log, sample)


def _zoom(log: EventLog, sample: Sample, stage: Stage, compat: Compat, by_evidence: bool) -> float:
    zoomed = zooming(log, compat)
    if not zoomed.formed:
        return 0.0
    different, diversity = zoomed.words
    enough = different >= _LEAST_WORDS
    precision = zoomed.valid / zoomed.written
    if stage == "stage1":
        return enough * _by_diversity(diversity, 1.0, compat) * precision
    grounded = 0.1 + 0.9 * (enough and diversity >= _LEAST_DIVERSITY)
    if by_evidence and knows_evidence(sample):
        return grounded * _shown(log, sample)
    count = true_count(sample)
    if count is None:
        return grounded * precision
    return grounded * _recall(zoomed, count, compat)


def _recall(zoomed: FirstRound, count: int, compat: Compat) -> float:
    """Return the share of counted objects that the boxes may show, minus a penalty for misses."""
    recall = min(1.0, zoomed.valid / count) if count else 1.0
    missed = zoomed.written - zoomed.valid
    extra = 0 if compat else max(0, zoomed.valid - max(count, 1))
    return max(0.0, recall - MISS * (missed + extra))


def _by_diversity(diversity: float, value: float, compat: Compat) -> float:
    """Return 0.1 for a repetitive thought, otherwise the value.

    With ``compat="paper"``, a thought exactly at the threshold gets the sum of both, at most 1.
    """
    if compat and diversity == _LEAST_DIVERSITY:
        return min(1.0, 0.1 + value)
    return 0.1 if diversity < _LEAST_DIVERSITY else value


def _rethink(log: EventLog, sample: Sample) -> float:
    if len(log.turns) < 2:
        return 0.0
    different = words(scan(log.turns[1].text).rethought).different
    if different < _LEAST_WORDS:
        return 0.0
    return (0.5 + 0.5 * answer_format(log, sample)) * min(1.0, 0.2 * math.sqrt(different))
