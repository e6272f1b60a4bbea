"""Defines the actors of a video: things that move, enter, leave, hide and change color."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from .events import WorldEvent
from .things import Thing

Path = NDArray[np.float64]
"""The center of a thing in each frame, native pixels, float64 ``[frames, 2]``."""


@dataclass
class Actor:
    """Describes one thing over time.

    Attributes:
        thing: The thing, with its first color.
        path: The center of the thing in each frame, native pixels.
        colors: The color in each frame; if empty, the color of `thing` in all frames.
        behind: The frames in which it is behind the wall.
    """

    thing: Thing
    path: Path
    colors: tuple[str, ...] = ()
    behind: frozenset[int] = field(default_factory=frozenset)

    def at(self, frame: int) -> Thing:
        """Return the thing in a frame; it may be outside the picture."""
        x, y = self.path[frame]
        color = self.colors[frame] if self.colors else self.thing.color
        return replace(self.thing, x=round(float(x)), y=round(float(y)), color=color)

    def turns(self) -> list[WorldEvent]:
        """Return the changes of color, ordered by time."""
        pairs = zip(self.colors, self.colors[1:], strict=False)
        return [
            WorldEvent(
                kind="turns",
                names=(f"{before} {self.thing.shape}",),
                first=frame,
                last=frame + 1,
                color=after,
            )
            for frame, (before, after) in enumerate(pairs)
            if before != after
        ]


def line(stops: list[tuple[int, tuple[float, float]]], frames: int) -> Path:
    """Return a path through places at given frames, straight and uniform between them.

    Args:
        stops: The frame and the place of each stop, by increasing frame.
        frames: The number of frames.
    """
    times = [time for time, _ in stops]
    path = [np.interp(range(frames), times, [place[axis] for _, place in stops]) for axis in (0, 1)]
    return np.stack(path, axis=1)


def passages(inside: NDArray[np.float64], name: str) -> list[WorldEvent]:
    """Return the events of entering and leaving.

    Args:
        inside: How far the thing is inside the picture in each frame, 0 (outside) to 1.
        name: The name of the thing.
    """
    found: list[WorldEvent] = []
    begin: int | None = None
    steps = np.sign(np.diff(inside))
    for frame in range(len(steps) + 1):
        step = steps[frame] if frame < len(steps) else 0
        if begin is None and step:
            begin = frame
        elif begin is not None and step != steps[begin]:
            enters = steps[begin] > 0
            found.append(
                WorldEvent(
                    kind="enters" if enters else "leaves",
                    names=(name,),
                    first=begin + 1 if enters else begin,
                    last=frame if enters else frame - 1,
                )
            )
            begin = frame if step else None
    return found
