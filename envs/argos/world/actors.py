"""Defines the actors of a video: things that enter, leave, meet and change, frame by frame."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .events import WorldEvent
from .presets import WorldPreset
from .things import Thing


@dataclass
class Actor:
    """Describes one thing over time.

    Attributes:
        thing: The thing at its home position, with its first color.
        first: The first frame in which it is visible, from 0.
        last: The last frame in which it is visible.
        turns_at: The first frame with its new color, or None.
        new_color: The new color.
        partner: The actor that it meets, or None.
        meets: The first and the last frame of the meeting.
    """

    thing: Thing
    first: int
    last: int
    turns_at: int | None = None
    new_color: str = ""
    partner: Actor | None = None
    meets: tuple[int, int] = (0, 0)

    def at(self, frame: int, frames: int, preset: WorldPreset) -> Thing | None:
        """Return the thing in a frame, or None if it is not visible."""
        if not self.first <= frame <= self.last:
            return None
        thing = self.thing
        if self.turns_at is not None and frame >= self.turns_at:
            thing = replace(thing, color=self.new_color)
        if self.partner is not None and self.meets[0] <= frame <= self.meets[1]:
            other = self.partner.thing
            side = -1 if thing.x < other.x else 1
            x = other.x + side * (other.half_width + thing.half_width)
            return replace(thing, x=x, y=other.y)
        enters = frame == self.first and self.first > 0
        leaves = frame == self.last and self.last < frames - 1
        if enters or leaves:  # half of it is beyond the edge
            return replace(thing, x=0 if thing.x < preset.width / 2 else preset.width - 1)
        return thing

    def events(self, frames: int) -> list[WorldEvent]:
        """Return the events of the actor, ordered by time."""
        name = self.thing.name
        found = [WorldEvent(kind="stays", names=(name,), first=self.first, last=self.last)]
        if self.first > 0:
            end = min(self.first + 1, self.last)
            found.append(WorldEvent(kind="enters", names=(name,), first=self.first, last=end))
        if self.last < frames - 1:
            start = max(self.last - 1, self.first)
            found.append(WorldEvent(kind="leaves", names=(name,), first=start, last=self.last))
        if self.turns_at is not None:
            found.append(
                WorldEvent(
                    kind="turns",
                    names=(name,),
                    first=self.turns_at - 1,
                    last=self.turns_at,
                    color=self.new_color,
                )
            )
        if self.partner is not None:
            names = (name, self.partner.thing.name)
            found.append(
                WorldEvent(kind="meets", names=names, first=self.meets[0], last=self.meets[1])
            )
        return found
