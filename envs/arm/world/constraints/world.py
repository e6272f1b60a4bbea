"""Creates an unlimited number of texts, each with a constraint and the right verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from visenv.checks import DIALECTS, Dialect, check, find_check
from visenv.errors import ConfigurationError, DataError, UnknownNameError
from visenv.types import Sample
from visenv.worlds.draws import pick

from ...ground_truth import ConstraintCheck, JudgingTruth, judging_sample
from . import edges, figures, lengths, mentions
from .instructions import instruct
from .prose import ConstrainedText, Maker

MAKERS: Final[Mapping[str, Maker]] = {
    "check_whether_response_paragraph_number_in_range": lengths.paragraph_number,
    "check_whether_response_sentence_number_in_range": lengths.sentence_number,
    "check_whether_each_paragraph_sentence_number_in_range": (
        lengths.each_paragraph_sentence_number
    ),
    "check_whether_each_paragraph_sentence_number_in_range_list": (
        lengths.each_paragraph_sentence_number_list
    ),
    "check_whether_response_word_count_in_range": lengths.word_count,
    "check_whether_each_paragraph_word_count_in_range": lengths.each_paragraph_word_count,
    "check_whether_whole_response_not_contain_certain_substrings": mentions.contains_none,
    "check_whether_whole_response_not_contain_certain_substring": mentions.does_not_contain,
    "check_whether_each_sentence_begin_with_certain_substring": edges.each_sentence_begins,
    "check_whether_each_paragraph_begin_with_certain_substring": edges.each_paragraph_begins,
    "check_whether_each_paragraph_end_with_certain_substring": edges.each_paragraph_ends,
    "check_whether_each_sentence_end_with_certain_substring": edges.each_sentence_ends,
    "check_whether_whole_response_begin_with_certain_substring": edges.response_begins,
    "check_whether_whole_response_end_with_certain_substring": edges.response_ends,
    "check_whether_each_keyword_in_list_mentioned_in_range": mentions.each_keyword,
    "check_whether_total_keyword_in_list_mentioned_in_range": mentions.total_keywords,
    "check_percentage_number_precision_in_response": figures.percentage_precision,
    "check_number_precision_in_response": figures.number_precision,
    "check_whether_has_no_arabic_number_in_response": figures.has_no_number,
}
"""Makers of texts by the name of the check."""

_MOST_TRIES = 1000
"""Maximum number of drawn texts; for the rarest kind, the verdict agrees in 1 of 9 (``arm``)."""


class ConstraintWorld:
    """Creates texts that satisfy a constraint, or narrowly violate it.

    This is a `ProceduralSource` of judging samples (`visenv.envs.arm.ground_truth`) with one candidate;
    one in four instructions is about a picture. Half of the texts satisfy their constraint. The
    others have, for example, one paragraph too few, a keyword once too often, or one sentence of
    many with another beginning. Texts that satisfy the constraint may contain an apparent
    violation: a look-alike, a plural, a phrase in capitals. The verdict is that of the strict
    dialect (`visenv.checks`), and known by construction without running the check. In another
    dialect, the verdict is that of the check in this dialect. Texts are drawn until both agree, so
    that the named check and the verdict never contradict each other. ``mmif`` compares letter for
    letter: beginnings and endings are then written exactly as required, endings with their full
    stop.

    `Sample.kind` is the name of the check. The `JudgingTruth` contains ``constraint``, ``check``
    and ``case``.

    Args:
        checks: Names of the checks to draw from; all 19 by default.
        dialect: How the check that decides parses a text, see `visenv.checks`.

    Raises:
        ConfigurationError: If the list is empty.
        UnknownNameError: If there is no such check or dialect; suggests the nearest.
    """

    ground_truth = JudgingTruth

    def __init__(self, checks: Sequence[str] = tuple(MAKERS), dialect: Dialect = "strict") -> None:
        if not checks:
            raise ConfigurationError(
                f"checks must contain at least one check, got none. Known: {', '.join(MAKERS)}."
            )
        if dialect not in DIALECTS:
            raise UnknownNameError("dialect of the text checks", str(dialect), DIALECTS)
        self.checks = tuple(find_check(name).name for name in checks)
        self.dialect = dialect
        self._makers = {**MAKERS, **edges.LITERAL} if dialect == "mmif" else MAKERS

    def sample(self, rng: np.random.Generator) -> Sample:
        """Create a text and its constraint, which depend only on the state of the generator."""
        identity = f"constraint-{int(rng.integers(2**63)):016x}"
        name, keeps = pick(rng, self.checks), bool(rng.integers(2))
        made = self._made(rng, name, keeps)
        instruction, images = instruct(rng)
        return judging_sample(
            id=identity,
            instruction=instruction,
            truth=JudgingTruth(
                candidates=(made.response,),
                constraint=made.constraint,
                check=ConstraintCheck(name=name, arguments=dict(made.arguments)),
                case=made.case,
            ),
            verdict=keeps,
            images=images,
            kind=name,
        )

    def _made(self, rng: np.random.Generator, name: str, keeps: bool) -> ConstrainedText:
        """Return a text that satisfies or violates its constraint, in the dialect of this world."""
        for _ in range(_MOST_TRIES):
            made = self._makers[name](rng, keeps)
            if self.dialect == "strict":
                return made
            if check(name, made.response, made.arguments, self.dialect) == keeps:
                return made
        raise DataError(
            f"Found no text for which {name} returns {keeps} in the dialect {self.dialect}."
        )
