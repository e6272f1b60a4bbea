"""Computes the VQA score: agreement with the answers of several people, after normalization.

Normalization and score follow the public VQA evaluation (Antol et al., "VQA: Visual Question
Answering", 2015), which TextVQA and Groundlight's `r1_vlm` also use. Its quirks are kept, because
published numbers depend on them; comments describe each of them. Unlike in the official script,
answers are always normalized (that script does not normalize them if all people agree), and texts
are compared in NFC.

A published quirk pays empty answers: normalization removes articles, so that "", "the" and "a" are
equal. `vqa_score` compares a text that becomes empty as it is instead, and a blank answer never
matches. Only the mode ``"min3"``, Groundlight's published score, keeps the quirk.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from heapq import nlargest
from typing import Literal

from visenv.errors import DataError, UnknownNameError
from visenv.text.normalize import composed

LONGEST_ANSWER = 10_000
"""Maximum number of characters without blanks at the ends; a longer text scores 0 without parsing.

No person gives such an answer (DeepEyes' public code has a limit of 1,000), and the limit keeps the
time for a hostile answer of a megabyte in microseconds.
"""

_PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
_DIGIT_COMMA_DIGIT = re.compile(r"\d,\d")
_PERIOD_OF_NO_NUMBER = re.compile(r"\.(?!\d)")
_MOST_PERIODS_REMOVED = 32
_ARTICLES = frozenset({"a", "an", "the"})
_NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_NUMBERS = {
    **{word: str(value) for value, word in enumerate((*_NUMBER_WORDS, "ten"))},
    "none": "0",
}

_CONTRACTIONS = """
    ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't hadn't've hasn't
    haven't he'd he'd've he's how'd how'll how's isn't it'd it'd've it'll ma'am might've mightn't
    mightn't've must've mustn't needn't not've o'clock oughtn't 'ow's'at shan't she'd've should've
    shouldn't shouldn't've somebody'd've somebody'll somebody's someone'd someone'd've someone'll
    someone's something'd something'd've something'll that's there'd there'd've there're there's
    they'd they'd've they'll they're they've 'twas wasn't we'd've we've weren't what'll what're
    what's what've when's where'd where's where've who'd who'd've who'll who's who've why'll why're
    why's won't would've wouldn't wouldn't've y'all y'all'll y'all'd've you'd you'd've you'll you're
    you've
"""


def _spellings() -> dict[str, str]:
    """Map every spelling of a contraction that lacks one apostrophe to the right spelling."""
    spellings = {
        full[:place] + full[place + 1 :]: full
        for full in _CONTRACTIONS.split()
        for place, character in enumerate(full)
        if character == "'"
    }
    spellings["somebody'd"] = "somebodyd"  # the official table has this entry reversed
    return spellings


_SPELLINGS = _spellings()


def normalize_answer(text: str) -> str:
    """Return the normalized form: lower case, digits, no articles, no punctuation.

    The time is linear in the length of `text`. These are the steps, with the quirks of the public
    evaluation:

    1. The text is composed (NFC). Line feeds and tabs become blanks; blanks at the ends are
       removed.
    2. Each of 21 punctuation characters is removed if it occurs next to a blank anywhere in the
       text, or if the text contains a comma between digits anywhere; otherwise it becomes a blank.
    3. Periods that are not followed by a digit are removed, but only the first 32 of them.
    4. The text is converted to lower case; ``none`` and ``zero`` to ``ten`` become digits; ``a``,
       ``an``, ``the`` are removed (so ``"a-b"`` gives ``"b"``); the apostrophes of contractions are
       restored.
    """
    text = _without_punctuation(composed(text).replace("\n", " ").replace("\t", " ").strip())
    text = _PERIOD_OF_NO_NUMBER.sub("", text, count=_MOST_PERIODS_REMOVED)
    words = (_NUMBERS.get(word, word) for word in text.lower().split())
    return " ".join(_SPELLINGS.get(word, word) for word in words if word not in _ARTICLES)


def comparable_answer(text: str) -> str:
    """Return the normalized form; if it is empty (``the``, ``A``), the text in lower case.

    The result is empty only for a blank text, which equals no text.
    """
    return normalize_answer(text) or composed(text).strip().casefold()


def is_too_long(answer: str) -> bool:
    """Return whether a text exceeds `LONGEST_ANSWER`; all answer scores then return 0."""
    return len(answer) > LONGEST_ANSWER and len(answer.strip()) > LONGEST_ANSWER


def _without_punctuation(text: str) -> str:
    has_long_number = _DIGIT_COMMA_DIGIT.search(text) is not None
    becomes: dict[str, str | int | None] = {}
    for character in _PUNCTUATION:
        if character in text:
            by_blank = f"{character} " in text or f" {character}" in text
            becomes[character] = "" if has_long_number or by_blank else " "
    return text.translate(str.maketrans(becomes)) if becomes else text


def vqa_score(
    answer: str, references: Sequence[str], mode: Literal["official", "min3"] = "official"
) -> float:
    """Return how well `answer` agrees with people's answers, 0 to 1.

    With n of N references equal to the answer:

    - ``"official"``: the mean, over the N ways to leave one person out, of ``min(1, matches among
      the others / 3)``. With ten references, n = 1, 2, 3 give 0.3, 0.6, 0.9, and 4 or more give 1.
    - ``"min3"``: ``min(1, n / 3)``, as in Groundlight's training and evaluation, in which two texts
      that are empty after normalization are equal.

    If fewer than three references are compared, the 3 in these formulas is replaced by their
    number. A single reference (procedural data) gives 1 for a match and 0 otherwise.

    Raises:
        DataError: If there is no reference, because an unknown truth must not count as a wrong
            answer.
        UnknownNameError: If there is no such mode.
    """
    if mode not in ("official", "min3"):
        raise UnknownNameError("VQA score", str(mode), ["official", "min3"])
    if not references:
        raise DataError("An answer is scored against reference answers, and the sample has none.")
    if is_too_long(answer):
        return 0.0
    form = normalize_answer if mode == "min3" else comparable_answer
    given = form(answer)
    matches = sum(given == form(reference) for reference in references)
    if mode == "official" and not given:
        return 0.0
    total = len(references)
    if mode == "min3" or total == 1:
        return _agreement(matches, total)
    left_out_match = matches * _agreement(matches - 1, total - 1)
    left_out_other = (total - matches) * _agreement(matches, total - 1)
    return (left_out_match + left_out_other) / total


def _agreement(matches: int, people: int) -> float:
    return min(1.0, matches / min(3, people))


def edit_similarity(first: str, second: str) -> float:
    """Return ``1 - Levenshtein(first, second) / max(len(first), len(second))``, 0 to 1.

    Lengths are in code points, and the texts are not normalized. Equal texts give 1, also if they
    are empty.
    """
    from rapidfuzz.distance import Levenshtein

    return Levenshtein.normalized_similarity(first, second)


def require_references(references: Sequence[str]) -> None:
    """Raise `DataError` if an answer has no reference to be compared with."""
    if not references:
        raise DataError("An answer is compared with reference answers, and the sample has none.")


def soft_score(
    answer: str,
    references: Sequence[str],
    best: int = 3,
    compat: Literal["r1_vlm"] | None = None,
) -> float:
    """Return R_e of Groundlight's paper: mean edit similarity to the `best` references, 0 to 1.

    The answer and the references are first normalized as for the VQA score
    (`visenv.rewards.vqa.comparable_answer`), so that the two scores never contradict each other.
    With fewer than `best` references, the mean is over all of them. An answer longer than
    `visenv.rewards.vqa.LONGEST_ANSWER` scores 0.

    Args:
        answer: The answer of the policy.
        references: The accepted answers; TextVQA has ten.
        best: The number of most similar references to average over.
        compat: ``"r1_vlm"`` normalizes as the public code: articles alone become empty
            (`visenv.rewards.vqa.normalize_answer`). An empty text has a similarity of 0 to every
            text in both cases.

    Raises:
        DataError: If there is no reference.
    """
    require_references(references)
    if is_too_long(answer):
        return 0.0
    form = normalize_answer if compat else comparable_answer
    given = form(answer)
    similarities = [
        edit_similarity(given, reference) if given or reference else 0.0
        for reference in map(form, references)
    ]
    closest = nlargest(best, similarities)
    return sum(closest) / len(closest)
