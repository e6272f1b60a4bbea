"""The VQA score: how many people gave the same answer, after the classic normalization.

Normalization and score follow the public VQA evaluation (Antol et al., "VQA: Visual Question
Answering", 2015), which TextVQA and Groundlight's `r1_vlm` use too. Its quirks are kept, since
published numbers contain them; each is named where it happens. Unlike the official script, answers
are always normalized (that script leaves them alone when all people agree).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from visenv.errors import DataError, UnknownNameError

LONGEST_ANSWER = 10_000
"""Characters, blanks at the ends aside; a longer text answers nothing and scores 0 unread.

No person answers so (DeepEyes' public code draws the line at 1,000), and it keeps the time for a
hostile answer of a megabyte in microseconds.
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
    """Return every spelling of a contraction that lacks one apostrophe, and the right one."""
    spellings = {
        full[:place] + full[place + 1 :]: full
        for full in _CONTRACTIONS.split()
        for place, character in enumerate(full)
        if character == "'"
    }
    spellings["somebody'd"] = "somebodyd"  # the official table has this entry the wrong way round
    return spellings


_SPELLINGS = _spellings()


def normalize_answer(text: str) -> str:
    """Return the form for comparison: lower case, digits, no articles, no punctuation.

    Linear in the length of `text`. Steps, with the quirks of the public evaluation:

    1. Line feeds and tabs become blanks; blanks at the ends go.
    2. Each of 21 punctuation characters is deleted if it stands next to a blank anywhere in the
       text, or if the text holds a comma between digits anywhere; otherwise it becomes a blank.
    3. Periods not followed by a digit go, but only the first 32 of them.
    4. Lower case; ``none`` and ``zero`` to ``ten`` become digits; ``a``, ``an``, ``the`` go (so
       ``"a-b"`` gives ``"b"``); contractions get their apostrophe back.
    """
    text = _without_punctuation(text.replace("\n", " ").replace("\t", " ").strip())
    text = _PERIOD_OF_NO_NUMBER.sub("", text, count=_MOST_PERIODS_REMOVED)
    words = (_NUMBERS.get(word, word) for word in text.lower().split())
    return " ".join(_SPELLINGS.get(word, word) for word in words if word not in _ARTICLES)


def is_too_long(answer: str) -> bool:
    """Return whether a text exceeds `LONGEST_ANSWER`, so that every answer score gives it 0."""
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

    - ``"official"``: the mean, over the N ways to leave one person out, of
      ``min(1, matches among the others / 3)``. Ten references: n = 1, 2, 3 give 0.3, 0.6, 0.9, and
      4 or more give 1.
    - ``"min3"``: ``min(1, n / 3)``, as Groundlight's training and evaluation.

    Three people must agree only where three are there: with fewer references to compare with, all
    of them must. A single reference (procedural data) gives 1 for a match and 0 otherwise.

    Raises:
        DataError: If there is no reference: an unknown truth must not count as a wrong answer.
        UnknownNameError: If there is no such mode.
    """
    if mode not in ("official", "min3"):
        raise UnknownNameError("VQA score", str(mode), ["official", "min3"])
    if not references:
        raise DataError("There is no reference answer to score against.")
    if is_too_long(answer):
        return 0.0
    given = normalize_answer(answer)
    matches = sum(given == normalize_answer(reference) for reference in references)
    total = len(references)
    if mode == "min3" or total == 1:
        return _agreement(matches, total)
    left_out_match = matches * _agreement(matches - 1, total - 1)
    left_out_other = (total - matches) * _agreement(matches, total - 1)
    return (left_out_match + left_out_other) / total


def _agreement(matches: int, people: int) -> float:
    return min(1.0, matches / min(3, people))
