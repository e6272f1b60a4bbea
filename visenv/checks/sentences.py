"""Sentences of a text, split by NLTK's Punkt.

Kiss and Strunk, "Unsupervised Multilingual Sentence Boundary Detection", 2006. With NLTK's trained
English parameters where they are installed, otherwise with ours; `sentence_splitter` tells which.

NLTK takes seconds to import, so it is imported when the first text is split.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from visenv.checks.english import ABBREVIATIONS, COLLOCATIONS, STARTERS
from visenv.errors import DataError

if TYPE_CHECKING:
    from nltk.data import PathPointer
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

MOST_MARKS: Final = 10_000
"""Full stops, question and exclamation marks of a text that is split; prose has one in 100 letters.

Each costs NLTK up to 0.1 ms, and it gives up after seconds of wall clock. A number refuses the same
texts on every machine.
"""


class SentenceSplitter(NamedTuple):
    """Says which parameters split sentences in this process.

    Attributes:
        name: ``"punkt_tab"``, NLTK's trained set, or ``"built-in"``, ours. Scores to be compared
            with published ones need ``"punkt_tab"``.
        folder: Where the trained set was read, or None.
        abbreviations: How many it knows; NLTK's English set has 156. Some folders that go by its
            name are made up and hold a dozen.
    """

    name: Literal["punkt_tab", "built-in"]
    folder: Path | None
    abbreviations: int


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, in order, without the blanks between; linear in its length.

    Raises:
        DataError: If the text holds more than `MOST_MARKS` marks that may end a sentence, if NLTK
            gives up on it, or if a trained set is installed but cannot be read.
    """
    marks = sum(map(text.count, ".?!"))
    if marks > MOST_MARKS:
        raise DataError(
            f"a text with {marks} full stops, question and exclamation marks cannot be split into "
            f"sentences in time; at most {MOST_MARKS}"
        )
    try:
        sentences: list[str] = _loaded()[0].tokenize(text)
    except TimeoutError as error:
        raise DataError(
            f"a text of {len(text)} characters could not be split into sentences in time"
        ) from error
    return sentences


def sentence_splitter() -> SentenceSplitter:
    """Return which parameters `split_sentences` uses; they are looked up once per process.

    Raises:
        DataError: If a trained set is installed but cannot be read.
    """
    return _loaded()[1]


class _Orthography(dict[str, int]):
    """Says how words were seen written, 0 for a word never seen.

    NLTK's own is a defaultdict, which keeps every word that is asked for.
    """

    def __missing__(self, word: str) -> int:
        return 0


@cache
def _loaded() -> tuple[PunktSentenceTokenizer, SentenceSplitter]:
    from nltk.data import find
    from nltk.tokenize.punkt import PunktSentenceTokenizer

    try:
        folder = find("tokenizers/punkt_tab/english/")
    except LookupError:
        parameters = _built_in()
        splitter = SentenceSplitter("built-in", None, len(ABBREVIATIONS))
    else:
        parameters = _trained(folder)
        known = len(parameters.abbrev_types)
        splitter = SentenceSplitter("punkt_tab", Path(str(folder)), known)
    parameters.ortho_context = _Orthography(parameters.ortho_context)
    return PunktSentenceTokenizer(parameters), splitter


def _trained(folder: PathPointer) -> PunktParameters:
    from nltk.tokenize.punkt import load_punkt_params

    try:
        return load_punkt_params(folder)
    except (LookupError, OSError, ValueError) as error:
        raise DataError(
            f"{folder} is not a whole punkt_tab: {error}. Install it again with "
            "`python -m nltk.downloader punkt_tab`, or remove it."
        ) from error


def _built_in() -> PunktParameters:
    from nltk.tokenize.punkt import PunktParameters

    parameters = PunktParameters()
    parameters.abbrev_types = set(ABBREVIATIONS)
    parameters.collocations = set(COLLOCATIONS)
    parameters.sent_starters = set(STARTERS)
    return parameters
