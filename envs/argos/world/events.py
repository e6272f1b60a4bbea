"""Defines the events of a video, with exact frame intervals, and matches them to descriptions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import Strict
from pydantic.dataclasses import dataclass

from visenv.types.ground_truth import STRICT, Texts

from .things import COLORS, SHAPES, normal_words

VERBS: dict[str, frozenset[str]] = {
    "enters": frozenset(
        ("enters", "enter", "appears", "appear", "arrives", "comes", "entering", "shows", "moves")
    ),
    "leaves": frozenset(("leaves", "leave", "disappears", "exits", "goes", "leaving")),
    "meets": frozenset(("meets", "meet", "touches", "touch", "meeting", "touching")),
    "turns": frozenset(("turns", "turn", "changes", "becomes", "turning")),
    "hides": frozenset(("hides", "hide", "vanishes", "behind", "hidden")),
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
        if self.kind == "hides":
            return f"the {self.names[0]} hides behind the wall"
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
        fits = kinds == {self.kind} and named == needed and not said & NEGATIONS
        return fits and (self.kind != "turns" or _new_color(words) == self.color)

    def overlap(self, first: int, last: int) -> float:
        """Return the intersection over union with the frames from `first` to `last`."""
        shared = min(self.last, last) - max(self.first, first) + 1
        if shared <= 0:
            return 0.0
        return shared / (max(self.last, last) - min(self.first, first) + 1)


def _new_color(words: Sequence[str]) -> str:
    """Return the last color of a description that is not the one after "from"."""
    colors = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if word in COLORS and before != "from"
    ]
    return colors[-1] if colors else ""


Events = Annotated[tuple[WorldEvent, ...], Strict(False)]


_JOINED = re.compile(r",|;|\band\b|\bwhile\b|\bbefore\b|\bafter\b|\bthen\b|\bas\b")


def named_events(events: Sequence[WorldEvent], description: str) -> list[WorldEvent]:
    """Return the events that a description names; none if a part of it names no event.

    "The red ball enters and the blue cube leaves" has two parts. A description that as a whole
    names one event, such as "the ball and the cube meet", has one part.
    """
    whole = [event for event in events if event.is_named(normal_words(description))]
    if whole:
        return whole
    found: list[WorldEvent] = []
    for part in _JOINED.split(description):
        words = normal_words(part)
        matching = [event for event in events if event.is_named(words)]
        if words and not matching:
            return []
        found += matching
    return found


def supports(events: Sequence[WorldEvent], first: int, last: int, description: str) -> bool:
    """Return whether a span has an IoU of at least 0.5 with one of the events described."""
    named = named_events(events, description)
    return any(event.overlap(first, last) >= LEAST_OVERLAP for event in named)


def happens(events: Sequence[WorldEvent], frame: int, description: str) -> bool:
    """Return whether a frame is in the interval of an event that the description matches.

    An event of the kind ``"stays"`` never counts, because one frame cannot show that something
    stays, and a guess would often be right.
    """
    return any(
        event.kind != "stays" and event.first <= frame <= event.last
        for event in named_events(events, description)
    )
