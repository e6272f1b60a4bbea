"""Opens search engines by name, for `gym.make` and the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from visenv.errors import ConfigurationError, UnknownNameError
from visenv.retrieval.vectors import read_place
from visenv.search.corpus import Searcher
from visenv.search.recorded import RecordedSearch
from visenv.search.serper import SerperSearch
from visenv.search.words import WordSearch


def open_searcher(text: str) -> Searcher:
    """Return an engine by name.

    Args:
        text: ``"words:<index>"`` or ``"meaning:<index>"``, with the folder that ``visenv search
            build`` made (``"meaning:<index>?model=<model>"`` if it was built with ``--model``);
            ``"serper"`` (the web), or ``"serper:<file>"``, which saves every answer
            in the file and never asks twice; ``"recorded:<file>"``, which only answers from such a
            file.

    Raises:
        UnknownNameError: If there is no such engine; the message suggests the nearest name.
        ConfigurationError: If a required folder, file or key is missing.
        DataError: If the folder contains no complete index, or the file cannot be read.
    """
    kind, _, place = text.partition(":")
    if kind == "serper":
        web = SerperSearch()
        return RecordedSearch(Path(place), web) if place else web
    if kind not in _OPENERS:
        raise UnknownNameError("search engine", kind, (*_OPENERS, "serper"))
    if not place:
        raise ConfigurationError(f"Name the place of the index, {kind}:<place>; got {text!r}.")
    return _OPENERS[kind](place)


def _meaning(place: str) -> Searcher:
    from visenv.search.meaning import MeaningSearch

    folder, model = read_place(place, "meaning:<index>")
    return MeaningSearch(folder, model=model)


def _recorded(place: str) -> Searcher:
    return RecordedSearch(Path(place))


_OPENERS: dict[str, Callable[[str], Searcher]] = {
    "words": WordSearch,
    "meaning": _meaning,
    "recorded": _recorded,
}
