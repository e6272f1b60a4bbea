"""Creates an unlimited number of texts, each with a constraint and the right verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from visenv.checks import DIALECTS, Dialect, check, find_check
from visenv.errors import ConfigurationError, DataError, UnknownNameError
from visenv.types import Image, Sample
from visenv.worlds.draws import pick
from visenv.worlds.scenes.styles import STYLES
from visenv.worlds.scenes.world import PLACES

from ...ground_truth import ConstraintCheck, JudgingTruth, judging_sample
from . import edges, figures, lengths, mentions
from .prose import ConstrainedText, Maker

_ABOUT: Final = (
    "Write a short text about {topic}.",
    "Describe {topic} in a few lines.",
    "Tell me something about {topic}.",
    "Make up a little story about {topic}.",
    "Write a letter to a friend in which you tell of {topic}.",
    "Write a note for a travel guide about {topic}.",
    "Draft a blog post that deals with {topic}.",
    "Write the opening of a novel that begins with {topic}.",
    "Put together a few sentences about {topic} for a school newspaper.",
    "Write what a grandmother might tell of {topic}.",
    "Compose a text about {topic} that could be read out on the radio.",
    "Note down some thoughts about {topic}.",
)

_TOPICS: Final = (
    "a day in a small town",
    "a market by the water",
    "an old railway station",
    "the people of a street",
    "a walk after work",
    "what happens before a storm",
    "a village that everybody has left",
    "the first day of spring",
    "a house at the end of a road",
    "a journey by night train",
    "the last ferry of the evening",
    "a garden behind a school",
    "a bakery early in the morning",
    "the repair of a clock",
    "a choir that lost its singers",
    "a bridge that nobody crosses",
    "an afternoon in a library",
    "two neighbours who never talk",
    "a lost suitcase",
    "the harvest in a bad year",
    "a lighthouse in fog",
    "a dog that waits at a door",
    "the oldest tree of a park",
    "a theatre before the show",
    "a street without cars",
    "a winter without snow",
    "the opening of a museum",
    "a family that moves away",
    "a fair on the edge of town",
    "a mill that turns again",
)

_OF_PICTURES: Final = (
    "Describe the picture.",
    "Write a short text that goes with this picture.",
    "Make up a little story that takes place here.",
    "Look at the picture and write what might happen next.",
    "Write a caption of several sentences for this picture.",
    "Tell somebody who cannot see the picture what it is like to be there.",
    "Write a diary entry of somebody who was here.",
    "Write a letter from the place in the picture.",
    "Use the picture as the setting of a scene.",
    "Write how this place changes through a year.",
)

_WITH_PICTURE: Final = 0.25

_SIZES: Final = ((640, 480), (480, 640), (512, 512), (800, 450))

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


def instruct(rng: np.random.Generator) -> tuple[str, tuple[Image, ...]]:
    """Return an instruction, and for one in four the picture that it is about."""
    if rng.random() >= _WITH_PICTURE:
        return pick(rng, _ABOUT).format(topic=pick(rng, _TOPICS)), ()
    width, height = pick(rng, _SIZES)
    paint = STYLES[pick(rng, PLACES)]
    picture = paint(rng, width, height, float(rng.random()))
    return pick(rng, _OF_PICTURES), (Image.from_pixels(picture),)


class ConstraintWorld:
    """Creates texts that satisfy a constraint, or narrowly violate it.

    This is a `ProceduralSource` of judging samples with one candidate
    (`visenv.envs.arm.ground_truth`); one in four instructions is about a picture. Half of the texts
    satisfy their constraint. The others have, for example, one paragraph too few, a keyword once
    too often, or one sentence of many with another beginning. Texts that satisfy the constraint may
    contain an apparent violation: a look-alike, a plural, a phrase in capitals. The verdict is that
    of the strict dialect (`visenv.checks`), and known by construction without running the check. In
    another dialect, the verdict is that of the check in this dialect. Texts are drawn until both
    agree, so that the named check and the verdict never contradict each other. ``mmif`` compares
    letter for letter: beginnings and endings are then written exactly as required, endings with
    their full stop.

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

    def __init__(self, checks: Sequence[str] | None = None, dialect: Dialect = "strict") -> None:
        names = tuple(MAKERS) if checks is None else checks
        if not names:
            raise ConfigurationError(
                f"checks must contain at least one check, got none. Known: {', '.join(MAKERS)}."
            )
        if dialect not in DIALECTS:
            raise UnknownNameError("dialect of the text checks", str(dialect), DIALECTS)
        self.checks = tuple(find_check(name).name for name in names)
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
