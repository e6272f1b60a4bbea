"""Defines the events of a video, with exact frame intervals, and matches them to descriptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Strict
from pydantic.dataclasses import dataclass

from visenv.types.ground_truth import STRICT, Texts

from .labels import normal_words
from .things import COLORS, SHAPES

VERBS: dict[str, frozenset[str]] = {
    "enters": frozenset(("enters", "enter", "appears", "appear", "arrives", "comes", "entering")),
    "leaves": frozenset(("leaves", "leave", "disappears", "exits", "goes", "leaving")),
    "meets": frozenset(("meets", "meet", "touches", "touch", "meeting", "touching")),
    "turns": frozenset(("turns", "turn", "changes", "becomes", "turning")),
    "stays": frozenset(("stays", "stay", "visible", "present", "seen")),
}
"""The words that describe each kind of event."""

NEGATIONS = frozenset(
    (
        *("no", "not", "never", "nothing", "neither", "nor", "cannot", "without", "fails"),
        *("isn", "doesn", "didn", "don", "hasn", "aren", "wasn"),  # "isn't" is "isn" and "t"
    )
)
"""Words with which a description negates an event."""

_KIND_OF = {word: kind for kind, words in VERBS.items() for word in words}
LEAST_OVERLAP = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class WorldEvent:
    """Describes an event with one or two things, from frame `first` to `last`, from 0.

    Attributes:
        kind: A key of `VERBS`.
        names: The name of each thing, color and shape.
        first: The first frame.
        last: The last frame.
        color: The new color, for ``"turns"``.
    """

    kind: str
    names: Texts
    first: int
    last: int
    color: str = ""

    @property
    def sentence(self) -> str:
        """Return a sentence that describes the event."""
        if self.kind == "meets":
            return f"the {self.names[0]} meets the {self.names[1]}"
        if self.kind == "turns":
            return f"the {self.names[0]} turns {self.color}"
        if self.kind == "stays":
            return f"the {self.names[0]} stays visible"
        return f"the {self.names[0]} {self.kind}"

    def is_named(self, words: Sequence[str]) -> bool:
        """Return whether words match this event: its kind and its things, and no others.

        Words do not match if they contain the shape or the color of another thing, another kind of
        event, or a negation.
        """
        said = set(words)
        kinds = {_KIND_OF[word] for word in said if word in _KIND_OF}
        needed = ({word for name in self.names for word in name.split()} | {self.color}) - {""}
        named = said & (set(COLORS) | set(SHAPES))
        return kinds == {self.kind} and named == needed and not said & NEGATIONS

    def overlap(self, first: int, last: int) -> float:
        """Return the intersection over union with the frames from `first` to `last`."""
        shared = min(self.last, last) - max(self.first, first) + 1
        if shared <= 0:
            return 0.0
        return shared / (max(self.last, last) - min(self.first, first) + 1)


Events = Annotated[tuple[WorldEvent, ...], Strict(False)]


def supports(events: Sequence[WorldEvent], first: int, last: int, description: str) -> bool:
    """Return whether a span has an IoU of at least 0.5 with the event that is described."""
    words = normal_words(description)
    return any(
        event.is_named(words) and event.overlap(first, last) >= LEAST_OVERLAP for event in events
    )


def happens(events: Sequence[WorldEvent], frame: int, description: str) -> bool:
    """Return whether a frame is in the interval of an event that the description matches.

    An event of the kind ``"stays"`` never counts, because one frame cannot show that something
    stays, and a guess would often be right.
    """
    words = normal_words(description)
    return any(
        event.kind != "stays" and event.first <= frame <= event.last and event.is_named(words)
        for event in events
    )
