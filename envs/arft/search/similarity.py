"""Compares a search query with the gold query (arXiv 2505.14246, R_sem of equation 4).

In a sentence encoder, "who won in 2020" and "who won in 2021" have a cosine near 1, and so do two
different names. A score is therefore 0 if a number or a name differs from the gold query
(`same_facts`), except with ``"published"``.

=====================  =============================================================  ============
name                   score                                                          facts
=====================  =============================================================  ============
``"words"``            F1 of the queries' words; needs no model                       must agree
``"meaning"``          cosine by all-MiniLM-L6-v2, or by ``"meaning:<model>"``        must agree
``"published"``        the same, as in the paper's code                               not checked
=====================  =============================================================  ============

A score below `FLOOR` is 0, as in the public code.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from visenv.errors import ConfigurationError, UnknownNameError
from visenv.search.corpus import LONGEST_QUERY

FLOOR = 0.5
"""Smallest similarity that counts."""

SIMILARITIES = ("words", "meaning", "published")

_WORD = re.compile(r"\w+(?:[.,]\d+)*")
# fmt: off
_FILLERS = frozenset((
    "a", "an", "the", "of", "in", "on", "at", "by", "to", "for", "from", "with", "as", "and", "or",
    "is", "was", "are", "were", "be", "been", "do", "does", "did", "has", "have", "had", "who",
    "whom", "whose", "what", "when", "where", "which", "why", "how", "that", "this", "it", "its",
    "i", "s",
))
_OPENERS = _FILLERS | frozenset((
    "actor", "age", "author", "birthplace", "book", "capital", "city", "company", "country",
    "date", "director", "father", "film", "find", "first", "founder", "headquarters", "height",
    "husband", "last", "length", "list", "location", "mayor", "mother", "name", "nationality",
    "occupation", "population", "president", "river", "size", "song", "team", "wife", "year",
))
# fmt: on
"""Capitalized words at the beginning of a query that are not names."""


class QuerySimilarity(Protocol):
    """Compares queries. Instances can be pickled."""

    def __call__(self, query: str, wanted: str, names: Sequence[str] = ()) -> float:
        """Return 0 (unrelated) to 1 (the same).

        Args:
            query: The query of the policy.
            wanted: The gold query.
            names: The words of `wanted` that an equivalent query must contain, if they are known;
                otherwise they are recognized by their capitals.
        """
        ...


def word_similarity(query: str, wanted: str, names: Sequence[str] = ()) -> float:
    """Return the token F1 of the queries without words such as "the"; see `QuerySimilarity`."""
    if not same_facts(query, wanted, names):
        return 0.0
    given, right = (Counter(_telling(text)) for text in (query, wanted))
    if not given or not right:
        return float(_words(query) == _words(wanted))
    return _floored(2 * (given & right).total() / (given.total() + right.total()))


class SentenceSimilarity:
    """Computes the cosine of the queries' sentence vectors; all instances share the encoder.

    Args:
        model: See `visenv.retrieval.vectors.Encoder`; None selects all-MiniLM-L6-v2.
        guarded: Whether numbers and names must agree.

    Raises:
        ConfigurationError: If the package with the default model is not installed.
    """

    def __init__(self, model: str | None = None, *, guarded: bool = True) -> None:
        from visenv.retrieval.vectors import Encoder
        from visenv.scorers.backends.encoder import PACKAGED_MODEL

        # The reward is bitwise reproducible, independent of concurrent queries of other episodes.
        self._encoder = Encoder(model or PACKAGED_MODEL, deterministic=True)
        self.guarded = guarded
        if model is None:
            _require_model()

    def __call__(self, query: str, wanted: str, names: Sequence[str] = ()) -> float:
        """Return 0 to 1; see `QuerySimilarity`.

        Raises:
            ConfigurationError: If the model cannot be loaded.
        """
        if self.guarded and not same_facts(query, wanted, names):
            return 0.0
        return _floored(min(self._encoder.similarity(query, wanted), 1.0))


def open_similarity(text: str) -> QuerySimilarity:
    """Return a similarity by name, see the module.

    Raises:
        UnknownNameError: If there is no such name.
        ConfigurationError: If the default model is needed but not installed.
    """
    kind, _, model = text.partition(":")
    if kind not in SIMILARITIES or (kind == "words" and model):
        raise UnknownNameError("similarity", text, SIMILARITIES)
    if kind == "words":
        return word_similarity
    return SentenceSimilarity(model or None, guarded=kind == "meaning")


def same_facts(query: str, wanted: str, names: Sequence[str] = ()) -> bool:
    """Return whether a query has the numbers and names of the gold query, and no others.

    Numbers must be the same. Each of `names` must occur; if `names` is empty, each capitalized
    word of `wanted` must occur, except a word that only opens the query. A capitalized word of
    `query` that is not in `wanted` counts as another name, unless all words are capitalized.
    """
    given, right = _words(query), _words(wanted)
    if _numbers(given) != _numbers(right):
        return False
    needed = {word for name in names for word in _words(name)} or _capitalized(wanted)
    return needed <= set(given) and _told_names(query) <= set(right)


def _telling(text: str) -> list[str]:
    return [word for word in _words(text) if word not in _FILLERS]


def _words(text: str) -> list[str]:
    """Return the words in lower case, without accents and thousands separators."""
    return [
        word.replace(",", "") if word[0].isdigit() else word
        for word in map(str.casefold, _cased_words(text))
    ]


def _cased_words(text: str) -> list[str]:
    """Return the words without accents, in the part of the text that search engines read."""
    plain = text[:LONGEST_QUERY]
    if not plain.isascii():
        # Characters such as the radical U+2F00 are letters only after compatibility normalization.
        plain = "".join(
            each for each in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(each)
        )
    return _WORD.findall(plain)


def _numbers(words: Sequence[str]) -> set[str]:
    return {word for word in words if any(map(str.isdigit, word))}


def _capitalized(text: str) -> set[str]:
    """Return the capitalized words, without a question word at the beginning."""
    found = _cased_words(text)
    names = [word for word in found if word[0].isupper()]
    if names and names[0] is found[0] and names[0].casefold() in _OPENERS:
        del names[0]
    return {word for name in names for word in _words(name)} - _FILLERS


def _told_names(query: str) -> set[str]:
    """Return the capitalized words except the first one; none if all words are capitalized."""
    found = _cased_words(query)
    if all(word[0].isupper() for word in found if not word[0].isdigit()):
        return set()
    names = [word for word in found[1:] if word[0].isupper()]
    return {word for name in names for word in _words(name)} - _FILLERS


def _floored(score: float) -> float:
    return score if score >= FLOOR else 0.0


def _require_model() -> None:
    from visenv.scorers.backends.encoder import packaged_model

    try:
        packaged_model()
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{error} Or compare queries by similarity='words', which needs no model."
        ) from error
