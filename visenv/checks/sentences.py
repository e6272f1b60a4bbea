"""Sentences of a text, split by Punkt.

With NLTK's trained English parameters where they are installed, otherwise with ours;
`sentence_splitter` tells which.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from visenv.checks.english import ENGLISH
from visenv.checks.punkt import Punkt, PunktParameters
from visenv.errors import DataError

_PLACE = Path("tokenizers", "punkt_tab", "english")
_SYSTEM = (
    *(Path(sys.prefix, folder) for folder in ("nltk_data", "share/nltk_data", "lib/nltk_data")),
    *(Path("/usr", folder) for folder in ("share/nltk_data", "local/share/nltk_data")),
    *(Path("/usr", folder) for folder in ("lib/nltk_data", "local/lib/nltk_data")),
)


class SentenceSplitter(NamedTuple):
    """Which parameters split sentences in this process.

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
    """The sentences of a text, in order, without the blanks between them; linear in its length."""
    return _loaded()[0].split(text)


def sentence_splitter() -> SentenceSplitter:
    """Which parameters `split_sentences` uses; they are looked for once per process.

    Raises:
        DataError: If a trained set is installed but cannot be read.
    """
    return _loaded()[1]


@cache
def _loaded() -> tuple[Punkt, SentenceSplitter]:
    folder = next((data / _PLACE for data in _nltk_data() if (data / _PLACE).is_dir()), None)
    parameters = read_punkt_tab(folder) if folder else ENGLISH
    known = len(parameters.abbreviations)
    return Punkt(parameters), SentenceSplitter("punkt_tab" if folder else "built-in", folder, known)


def _nltk_data() -> Iterator[Path]:
    """The folders NLTK looks for its data in, in its order."""
    yield from map(Path, filter(None, os.environ.get("NLTK_DATA", "").split(os.pathsep)))
    if home := os.environ.get("HOME"):
        yield Path(home, "nltk_data")
    yield from _SYSTEM


def read_punkt_tab(folder: Path) -> PunktParameters:
    """Trained parameters from a folder of NLTK's ``punkt_tab``.

    Raises:
        DataError: If a file is missing or does not have the layout.
    """
    try:
        return PunktParameters(
            frozenset(_lines(folder / "abbrev_types.txt")),
            frozenset(_pairs(folder / "collocations.tab")),
            frozenset(_lines(folder / "sent_starters.txt")),
            {word: int(bits) for word, bits in _pairs(folder / "ortho_context.tab")},
        )
    except (OSError, ValueError) as error:
        raise DataError(
            f"{folder} is not a whole punkt_tab: {error}. Install it again with "
            "`python -m nltk.downloader punkt_tab`, or remove the folder."
        ) from error


def _lines(file: Path) -> list[str]:
    return [line for line in file.read_text(encoding="utf-8").split("\n") if line]


def _pairs(file: Path) -> Iterator[tuple[str, str]]:
    for line in _lines(file):
        first, second = line.split("\t")
        yield first, second
