"""Creates the plots of videos; each first draws the answer, then motions that have it.

In each plot, the state of any single frame has the same distribution for all answers, or nearly so:
colors before and after a change are drawn alike, entrances have mirror images that leave and
return, and what decides happens at a random time among motions that look the same.
`benchmarks/argos_frames.py` measures this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from visenv.worlds.draws import pick, shuffled

from .asked import Asked
from .common import Placer, other
from .events import WorldEvent
from .motions import (
    Actor,
    bounce,
    draw_angle,
    draw_height,
    draw_passers,
    draw_sign,
    draw_things,
    passages,
    visit,
    wander,
)
from .presets import WorldPreset
from .things import Thing


class Plot(NamedTuple):
    """Describes a question about a video, and the motions and events of the video.

    Attributes:
        answer: The right answer.
        options: All answers that the wording allows, equally likely.
        actors: The things over time, from back to front; actors behind the wall are behind it.
        key_events: The events that a grounded reasoning cites.
        events: All events.
        targets: The labels that a grounded reasoning points to.
        asked: The relation that the question asks about.
        wall: The wall, which hides things behind it, or None.
    """

    question: str
    answer: str
    options: tuple[str, ...]
    actors: tuple[Actor, ...]
    key_events: tuple[WorldEvent, ...]
    events: tuple[WorldEvent, ...]
    targets: tuple[str, ...]
    asked: Asked
    wall: Thing | None = None


def order(rng: np.random.Generator, preset: WorldPreset, frames: int) -> Plot:
    """Ask which of two things moves into view first.

    One comes a frame after the other, at any time, and both leave at times that say nothing about
    their order. One frame of the video shows which came first; in later ones, the distribution of
    their places is the same.
    """
    pair = draw_things(rng, preset, 2)
    options = tuple(thing.name for thing in pair)
    answer = pick(rng, options)
    early = int(rng.integers(1, frames - 1))
    leaving = 2 * frames  # never
    if early + 4 < frames - 1 and rng.random() < 0.7:
        leaving = int(rng.integers(early + 4, frames - 1))
    stays = shuffled(rng, (False, True))
    actors: list[Actor] = []
    events: list[WorldEvent] = []
    for thing, longer in zip(pair, stays, strict=True):
        is_first = thing.name == answer
        path = visit(rng, preset, thing, (early + 1, leaving - 1), (is_first, longer), frames)
        actors.append(Actor(thing, path.centers))
        events += passages(path.inside, thing.name)
    first = {event.names[0]: event for event in events if event.kind == "enters"}
    return Plot(
        f"Which moves into view first, the {options[0]} or the {options[1]}?",
        answer,
        options,
        (*draw_passers(rng, preset, frames, pair), *shuffled(rng, actors)),
        tuple(first[name] for name in options),
        tuple(events),
        options,
        Asked(relation="order", conclusion=f"the {answer} is first"),
    )


def duration(rng: np.random.Generator, preset: WorldPreset, frames: int) -> Plot:
    """Ask for how many frames a thing has another color, before it changes back."""
    options = ("3", "4", "5", "6")
    answer = pick(rng, options)
    (thing,) = draw_things(rng, preset, 1)
    start = int(rng.integers(1, frames - int(answer)))
    new = other(rng, preset.colors, thing.color)
    colors = [thing.color] * frames
    colors[start : start + int(answer)] = [new] * int(answer)
    actor = Actor(thing, wander(rng, preset, frames, thing), tuple(colors))
    turns = tuple(actor.turns())
    return Plot(
        f"For how many frames does the {thing.shape} have another color, before it changes back?",
        answer,
        options,
        (*draw_passers(rng, preset, frames, [thing]), actor),
        turns,
        turns,
        (thing.shape,),
        Asked(
            relation="duration", subject=thing.shape, conclusion=f"the change lasts {answer} frames"
        ),
    )


def count(rng: np.random.Generator, preset: WorldPreset, frames: int) -> Plot:
    """Ask how many things change their color; some of them change back."""
    options = ("1", "2", "3")
    answer = pick(rng, options)
    things = draw_things(rng, preset, min(5, len(preset.shapes)))
    actors: list[Actor] = []
    for number, thing in enumerate(things):
        colors = [thing.color] * frames
        if number < int(answer):
            start = int(rng.integers(1, frames))
            end = int(rng.integers(start + 1, frames + 1)) if rng.random() < 0.5 else frames
            colors[start:end] = [other(rng, preset.colors, thing.color)] * (end - start)
        actors.append(Actor(thing, wander(rng, preset, frames, thing), tuple(colors)))
    events = [event for actor in actors for event in actor.turns()]
    changed = tuple(thing.shape for thing in things[: int(answer)])
    key = tuple(actor.turns()[0] for actor in actors[: int(answer)])
    return Plot(
        "How many things change their color?",
        answer,
        options,
        tuple(shuffled(rng, actors)),
        key,
        tuple(events),
        changed,
        Asked(
            relation="number of changes",
            conclusion=f"the number of things that change is {answer}",
            facts=changed,
        ),
    )


def meeting(rng: np.random.Generator, preset: WorldPreset, frames: int) -> Plot:
    """Ask which of two things stands still when they meet; the other comes, stops and goes.

    The things bounce between the sides, which is a rotation of a circle that is seen from its side.
    The first place is uniform on the circle and the direction is random. Exchanging the places of
    both things in a frame then gives a pair of places with the same probability.
    """
    pair = draw_things(rng, preset, 2)
    options = tuple(thing.name for thing in pair)
    answer = pick(rng, options)
    still, mover = pair if pair[0].name == answer else pair[::-1]
    time = int(rng.integers(4, frames - 5))
    since = np.arange(frames) - time  # the mover stops at 0 and 1
    away = np.where(since > 1, since - 1, np.minimum(since, 0))
    come, go, early, late = rng.uniform(0.04, 0.07, 4) * preset.width
    if rng.random() < 0.5:
        go = -go
    ways: tuple[NDArray[np.float64], ...] = (
        np.minimum(since + 4, 0) * early + np.maximum(since - 5, 0) * late,
        away * np.where(away < 0, come, go),
    )
    begin, sign = draw_angle(rng, preset, still), draw_sign(rng)
    upper = draw_height(rng, preset, still, below=still.half_height + mover.half_height)
    heights = shuffled(rng, (upper, upper + still.half_height + mover.half_height))
    actors = [
        Actor(thing, bounce(preset, thing, begin + sign * way, height))
        for thing, way, height in zip((still, mover), ways, heights, strict=True)
    ]
    apart = np.abs(actors[0].path[:, 0] - actors[1].path[:, 0]) > still.half_width
    first = time - int(np.argmax(np.append(apart[time - 2 : time + 1][::-1], True))) + 1
    last = time + int(np.argmax(np.append(apart[time : time + 4], True))) - 1
    event = WorldEvent(kind="meets", names=(mover.name, still.name), first=first, last=last)
    return Plot(
        f"Which stands still when they meet, the {options[0]} or the {options[1]}?",
        answer,
        options,
        (*draw_passers(rng, preset, frames, pair), *shuffled(rng, actors)),
        (event,),
        (event,),
        options,
        Asked(relation="stillness", conclusion=f"the {answer} stands still"),
    )


def change(rng: np.random.Generator, preset: WorldPreset, frames: int) -> Plot:
    """Ask which color a thing turns after a given one; three colors form a cycle."""
    shape = pick(rng, preset.shapes)
    given, *options = shuffled(rng, preset.colors)[:3]
    answer = pick(rng, options)
    cycle = (given, answer, other(rng, options, answer))
    phase = int(rng.integers(3))
    cuts = sorted(rng.choice(np.arange(1, frames), 3, replace=False).tolist())
    colors = [cycle[(phase + sum(frame >= cut for cut in cuts)) % 3] for frame in range(frames)]
    thing = Placer(rng, preset).add(shape=shape, color=colors[0], size="large")
    actor = Actor(thing, wander(rng, preset, frames, thing), tuple(colors))
    turns = actor.turns()
    key = tuple(
        event for event in turns if event.color == answer and event.names[0].startswith(given)
    )
    return Plot(
        f"After {given}, does the {shape} turn {options[0]} or {options[1]}?",
        answer,
        tuple(options),
        (*draw_passers(rng, preset, frames, [thing]), actor),
        key,
        tuple(turns),
        (shape,),
        Asked(
            relation="next color",
            subject=shape,
            given=given,
            conclusion=f"the {given} {shape} turns {answer}",
        ),
    )


def speed(rng: np.random.Generator, preset: WorldPreset, frames: int) -> Plot:
    """Ask which of two things that go to and fro is faster; all places are equally likely."""
    pair = draw_things(rng, preset, 2)
    options = tuple(thing.name for thing in pair)
    answer = pick(rng, options)
    slow = preset.width * float(rng.uniform(0.03, 0.05))
    fast = slow * float(rng.uniform(1.9, 2.6))
    lanes = shuffled(rng, (0.3, 0.7))
    actors: list[Actor] = []
    for thing, lane in zip(pair, lanes, strict=True):
        pace = fast if thing.name == answer else slow
        way = draw_angle(rng, preset, thing) + pace * np.arange(frames, dtype=np.float64)
        actors.append(Actor(thing, bounce(preset, thing, way, lane * preset.height)))
    return Plot(
        f"Which is faster, the {options[0]} or the {options[1]}?",
        answer,
        options,
        tuple(actors),
        (),
        (),
        options,
        Asked(relation="speed", conclusion=f"the {answer} is faster"),
    )


def hidden(rng: np.random.Generator, preset: WorldPreset, frames: int) -> Plot:
    """Ask on which side of a wall a thing was before it went behind the wall.

    Before, it passes in front of the wall, from side to side. In its last stay it is on the side of
    the answer, in the stay before on the other side, and earlier on a random one. Later times of
    hiding are less likely, so that both stays are about equally likely in each frame.
    """
    options = ("left", "right")
    answer = pick(rng, options)
    (thing,) = draw_things(rng, preset, 1)
    radius = thing.half_width
    middle, height = preset.width // 2, draw_height(rng, preset, thing)
    wall = Thing("gray", "plain", "wall", "large", middle, round(height), radius + 2, radius + 10)
    near = wall.half_width + radius + 1
    times = np.arange(1, frames - 2)
    weights = (frames - 2 - times).astype(float)
    start = int(rng.choice(times, p=weights / weights.sum()))
    sign = -1 if answer == "left" else 1
    across = np.full(frames, float(middle))
    for stay in range(frames // 3 + 1):  # from the last one: two frames at a side, one in front
        side = (sign, -sign)[stay] if stay < 2 else draw_sign(rng)
        for frame in (start - 3 * stay - 1, start - 3 * stay - 2):
            if frame >= 0:
                across[frame] = middle + side * (near + int(rng.integers(radius)))
    out = frames
    if rng.random() < 0.5:
        out = min(start + 2 + int(rng.integers(4)), frames)
        across[out:] = middle + draw_sign(rng) * (near + int(rng.integers(radius)))
    behind = frozenset(range(start, out))
    actor = Actor(thing, np.stack([across, np.full(frames, height)], axis=1), behind=behind)
    event = WorldEvent(kind="hides", names=(thing.name,), first=start - 1, last=start)
    return Plot(
        f"Where was the {thing.name} before it was hidden, to the left or the right of the wall?",
        answer,
        options,
        (*draw_passers(rng, preset, frames, [thing]), actor),
        (event,),
        (event,),
        (thing.name,),
        Asked(
            relation="side before hiding",
            subject=thing.name,
            other="wall",
            conclusion=f"the {thing.name} was to the {answer} of the wall",
        ),
        wall,
    )


PLOTS: dict[str, Callable[[np.random.Generator, WorldPreset, int], Plot]] = {
    "order": order,
    "duration": duration,
    "count": count,
    "meeting": meeting,
    "change": change,
    "speed": speed,
    "hidden": hidden,
}
