"""Defines the actors of a video, and how they move: wandering, bouncing, coming and leaving."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from visenv.worlds.draws import shuffled

from .common import Placer, other
from .events import WorldEvent
from .presets import WorldPreset
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


def draw_things(rng: np.random.Generator, preset: WorldPreset, number: int) -> list[Thing]:
    """Return things that differ in color and in shape, with space between them."""
    placer = Placer(rng, preset)
    colors, shapes = shuffled(rng, preset.colors), shuffled(rng, preset.shapes)
    return [
        placer.add(color=colors[place], shape=shapes[place], size="small")
        for place in range(number)
    ]


def draw_passers(
    rng: np.random.Generator, preset: WorldPreset, frames: int, taken: Sequence[Thing]
) -> list[Actor]:
    """Return things that cross the picture behind the others, with other colors and shapes."""
    low, high = preset.distractors
    actors: list[Actor] = []
    shapes = [each for each in preset.shapes if each not in {thing.shape for thing in taken}]
    for shape in shuffled(rng, shapes)[: int(rng.integers(low, high + 1))]:
        color = other(rng, preset.colors, *(thing.color for thing in taken))
        thing = Placer(rng, preset).add(shape=shape, color=color, size="small")
        actors.append(Actor(thing, wander(rng, preset, frames, thing)))
    return actors


def wander(rng: np.random.Generator, preset: WorldPreset, frames: int, thing: Thing) -> Path:
    """Return a path through a few random places, with a stop."""
    times = sorted({0, frames - 1, *rng.integers(1, frames - 1, 3).tolist()})
    stops = [(time, _spot(rng, preset, thing)) for time in times]
    if len(stops) > 2:
        stops[2] = (stops[2][0], stops[1][1])
    return line(stops, frames)


def _spot(rng: np.random.Generator, preset: WorldPreset, thing: Thing) -> tuple[float, float]:
    """Return a random place at which the whole thing is inside the picture."""
    low, high = thing.half_width + 1, preset.width - thing.half_width - 1
    return float(rng.integers(low, high)), draw_height(rng, preset, thing)


def draw_height(
    rng: np.random.Generator, preset: WorldPreset, thing: Thing, below: int = 0
) -> float:
    """Return a random height at which a thing fits, with a free space of `below` under it."""
    margin = thing.half_height + (11 if preset.height > 100 else 1)
    return float(rng.integers(margin, preset.height - margin - below))


class Visit(NamedTuple):
    """Holds the path of a thing that comes into view and leaves.

    Attributes:
        centers: The path.
        inside: How far the thing has come in, native pixels, 0 outside, float64 ``[frames]``.
    """

    centers: Path
    inside: NDArray[np.float64]


def visit(
    rng: np.random.Generator,
    preset: WorldPreset,
    thing: Thing,
    between: tuple[int, int],
    longer: tuple[bool, bool],
    frames: int,
) -> Visit:
    """Return a visit from a side edge to the place of the thing, and back.

    From the first to the last frame of `between`, the path does not depend on `longer`: things that
    come a frame earlier are not farther inside.

    Args:
        rng: The generator.
        preset: The size of the frame.
        thing: The thing, at the place that it goes to.
        between: The first and the last frame in which the thing is inside in any case.
        longer: Whether the thing is also inside in the frame before, and in the frame after.
        frames: The number of frames.
    """
    radius = thing.half_width
    from_left = thing.x < preset.width / 2
    most = thing.x + radius if from_left else preset.width - 1 - thing.x + radius
    times = np.arange(frames)
    parts = []
    for since in (times - between[0], between[1] - times):
        pace = rng.uniform(0.03, 0.06) * preset.width
        parts.append(pace * (since + 1) + rng.uniform(2, 2 + radius))
    inside = np.minimum(np.minimum(*parts), most)
    inside[(times < between[0] - longer[0]) | (times > between[1] + longer[1])] = 0
    across = inside - radius - 1 if from_left else preset.width + radius - inside
    return Visit(np.stack([across, np.full(frames, float(thing.y))], axis=1), inside)


def bounce(preset: WorldPreset, thing: Thing, angles: NDArray[np.float64], height: float) -> Path:
    """Return a path that bounces between the sides.

    Args:
        preset: The size of the frame.
        thing: The thing, whose width is left free at the sides.
        angles: How far the thing has gone in each frame, native pixels, float64 ``[frames]``.
        height: The height of the path in the picture, native pixels.
    """
    way = preset.width - 1 - 2 * thing.half_width
    across = thing.half_width + np.abs(angles % (2 * way) - way)
    return np.stack([across, np.full(len(angles), height)], axis=1)


def draw_angle(rng: np.random.Generator, preset: WorldPreset, thing: Thing) -> float:
    """Return a random place on the way to and fro of `bounce`, native pixels."""
    return float(rng.uniform(0, 2 * (preset.width - 1 - 2 * thing.half_width)))


def draw_sign(rng: np.random.Generator) -> int:
    """Return -1 or 1."""
    return 1 if rng.random() < 0.5 else -1
