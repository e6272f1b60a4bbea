"""Splits a text into sentences with NLTK's Punkt.

Source: Kiss and Strunk, "Unsupervised Multilingual Sentence Boundary Detection", 2006. NLTK's
trained English parameters are used if they are installed, otherwise those of visenv;
`sentence_splitter` returns which are used.

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
"""Maximum number of full stops, question and exclamation marks in a text; prose has about one in
100 letters.

NLTK takes up to 0.1 ms for each mark, and stops after a time limit of some seconds. Because of this
maximum, the same texts are refused on every machine.
"""


class SentenceSplitter(NamedTuple):
    """Describes the parameters that split sentences in this process.

    Attributes:
        name: ``"punkt_tab"``, NLTK's trained set, or ``"built-in"``, the set of visenv. Scores for
            comparison with published ones need ``"punkt_tab"``.
        folder: The folder of the trained set, or None.
        abbreviations: Number of abbreviations in the set; NLTK's English set has 156. Some folders
            with the same name are not NLTK's and contain only about a dozen.
    """

    name: Literal["punkt_tab", "built-in"]
    folder: Path | None
    abbreviations: int


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, in order, without the blanks between them, in linear time.

    Raises:
        DataError: If the text has more than `MOST_MARKS` marks that may end a sentence, if NLTK
            exceeds its time limit, or if a trained set is installed but cannot be read.
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
    """Return the parameters that `split_sentences` uses; they are searched once per process.

    Raises:
        DataError: If a trained set is installed but cannot be read.
    """
    return _loaded()[1]


class _Orthography(dict[str, int]):
    """Holds the spellings of words that were seen, 0 for a word that was not.

    NLTK's own class is a defaultdict, which stores every word that is looked up.
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
            f"{folder} is not a complete punkt_tab: {error}. Install it again with "
            "`python -m nltk.downloader punkt_tab`, or remove it."
        ) from error


def _built_in() -> PunktParameters:
    from nltk.tokenize.punkt import PunktParameters

    parameters = PunktParameters()
    parameters.abbrev_types = set(ABBREVIATIONS)
    parameters.collocations = set(COLLOCATIONS)
    parameters.sent_starters = set(STARTERS)
    return parameters
