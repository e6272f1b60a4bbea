"""Defines the ground truth of a procedural scene or video: things, events and entailments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Strict
from pydantic.dataclasses import dataclass

from visenv.grammar.points import read_references, without_tags
from visenv.types.ground_truth import STRICT, GroundTruth, Number, Texts
from visenv.verifier.teachers import Box

from .world.asked import Asked
from .world.conclusions import entailed
from .world.events import Events, WorldEvent, happens, supports
from .world.things import FrameSize, Things, boxes, names, normal_words, owners

_MOST_VALUES = 2**26
"""Maximum number of values of the masks of all things of a frame."""


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class MediaTruth(GroundTruth):
    """Holds the ground truth of a question of a published data set.

    Attributes:
        options: All options, if there is a choice.
        times: Seconds of each frame; none for images.
        group: Name of a group of questions that are scored together (`visenv.envs.argos.datasets`).
    """

    options: Texts = ()
    times: Annotated[tuple[Number, ...], Strict(False)] = ()
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Entailment:
    """Maps a statement to the answer that it entails, in episodes of version 1 of the world."""

    statement: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class GroundedTruth(MediaTruth):
    """Holds the ground truth of a procedural scene. It is a `visenv.verifier.WorldTruth`.

    Attributes:
        width: Width of a frame, native pixels.
        height: Height of a frame, native pixels.
        frames: The things of each frame from back to front; a thing has the same index in all.
        targets: The labels that a grounded reasoning points to.
        events: The events of a video; first those that a grounded reasoning cites.
        key_events: The number of events that a grounded reasoning cites.
        asked: The relation that the question asks about; None in episodes of version 1 of the
            world.
        entailments: The statements that entailed answers in version 1 of the world.
        counted: The label whose points are counted by the reasoning; ``""`` if nothing is counted.
        shortcut: Whether the tint of the background was chosen to match the answer.
    """

    width: int
    height: int
    frames: Annotated[tuple[Things, ...], Strict(False)]
    targets: Texts = ()
    events: Events = ()
    key_events: int = 0
    asked: Asked | None = None
    entailments: Annotated[tuple[Entailment, ...], Strict(False)] = ()
    counted: str = ""
    shortcut: bool = False

    def __post_init__(self) -> None:
        """Limit the memory of the masks, because a saved episode may contain any numbers.

        Raises:
            ValueError: If the masks of a frame would be too large.
        """
        values = self.width * self.height * max(map(len, self.frames), default=1)
        if min(self.width, self.height) < 1 or values > _MOST_VALUES:
            raise ValueError(
                f"a frame of {self.width}x{self.height} pixels with masks of {values:,} values, at "
                f"most {_MOST_VALUES:,}"
            )

    @property
    def step(self) -> float:
        """Return the seconds from frame to frame, 0 for an image."""
        return self.times[1] - self.times[0] if len(self.times) > 1 else 0.0

    def owners(self, frame: int) -> NDArray[np.int8]:
        """Return the index of the thing that each pixel shows, -1 for none."""
        return owners(self.frames[frame], FrameSize(self.width, self.height))

    def visible(self, frame: int) -> Sequence[int]:
        """Return the indices of the things with at least one visible pixel."""
        return list(boxes(self.frames[frame], FrameSize(self.width, self.height)))

    def named(self, frame: int, label: str) -> Sequence[int]:
        """Return the indices of the visible things that match a label."""
        things = self.frames[frame]
        return [number for number in self.visible(frame) if names(label, things[number])]

    def box(self, frame: int, number: int) -> Box:
        """Return the box around the visible pixels of a thing."""
        return boxes(self.frames[frame], FrameSize(self.width, self.height))[number]

    def shows(self, frame: int, label: str, x: float, y: float) -> bool:
        """Return whether a pixel belongs to a thing that matches the label."""
        if not (0 <= x < self.width and 0 <= y < self.height):
            return False
        owner = int(self.owners(frame)[math.floor(y), math.floor(x)])
        return owner >= 0 and names(label, self.frames[frame][owner])

    def supports(self, first: int, last: int, description: str) -> bool:
        """Return whether the frames from `first` to `last` show the described event."""
        return supports(self.events, first, last, description)

    def happens(self, frame: int, description: str) -> bool:
        """Return whether the described event happens in a frame."""
        return happens(self.events, frame, description)

    def intervals(self) -> Sequence[tuple[int, int, str]]:
        """Return the first and last frame of each event, from 0, and its description."""
        return [(event.first, event.last, event.sentence) for event in self.events]

    def event_named(self, description: str) -> WorldEvent | None:
        """Return the event that a description matches, if it matches exactly one."""
        found = [event for event in self.events if event.is_named(normal_words(description))]
        return found[0] if len(found) == 1 else None

    def entailed(self, reasoning: str) -> str | None:
        """Return the answer that a reasoning entails, or None.

        The last sentence that decides the question counts (`conclusions.entailed`). If there is
        none and the question is about a count, the number of points with the counted label is the
        answer.
        """
        if self.asked is not None:
            found = entailed(without_tags(reasoning), self.asked, self.options, self.step)
            if found is not None:
                return found
        if not self.counted:
            return None
        points = read_references(reasoning).points
        wanted = set(normal_words(self.counted))
        count = sum(wanted <= set(normal_words(point.label)) for point in points)
        return str(count) if count else None
