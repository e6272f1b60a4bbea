"""Creates the plots of videos; each first draws the answer, then the events."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from visenv.worlds.draws import pick, shuffled

from ..ground_truth import Entailment
from .actors import Actor
from .common import Placer, entail, other
from .events import WorldEvent
from .presets import WorldPreset
from .things import COLORS, SHAPES, Thing

_COLORS = tuple(COLORS)


class Plot(NamedTuple):
    """Describes a question about a video, and the events of the video.

    Attributes:
        question: The question.
        answer: The right answer.
        options: All answers that the wording allows, equally likely.
        actors: The things over time.
        key_events: The events that a grounded reasoning cites.
        entailments: The statements that entail answers.
    """

    question: str
    answer: str
    options: tuple[str, ...]
    actors: tuple[Actor, ...]
    key_events: tuple[WorldEvent, ...]
    entailments: tuple[Entailment, ...]


def order(rng: np.random.Generator, preset: WorldPreset, frames: int) -> Plot:
    """Ask which of two things enters first."""
    things = _things(rng, preset, 2)
    options = tuple(thing.name for thing in things)
    answer = pick(rng, options)
    early = int(rng.integers(1, frames // 2 - 1))
    late = int(rng.integers(early + 2, frames - 1))
    actors = tuple(
        Actor(thing, early if thing.name == answer else late, frames - 1) for thing in things
    )
    key = [_event(actor, frames, "enters") for actor in actors]
    return Plot(
        f"Which enters first, the {options[0]} or the {options[1]}?",
        answer,
        options,
        actors,
        tuple(key),
        entail("the {answer} is first", options),
    )


def duration(rng: np.random.Generator, preset: WorldPreset, frames: int) -> Plot:
    """Ask for how many frames a thing is visible."""
    options = ("3", "4", "5", "6")
    answer = pick(rng, options)
    things = _things(rng, preset, 2)
    first = int(rng.integers(1, frames - int(answer)))
    asked = Actor(things[0], first, first + int(answer) - 1)
    key = _event(asked, frames, "stays")
    return Plot(
        f"For how many frames is the {things[0].name} visible?",
        answer,
        options,
        (asked, Actor(things[1], 0, frames - 1)),
        (key,),
        entail("it lasts {answer} frames", options),
    )


def count(rng: np.random.Generator, preset: WorldPreset, frames: int) -> Plot:
    """Ask how many things enter."""
    options = ("1", "2", "3")
    answer = pick(rng, options)
    things = _things(rng, preset, 4)
    starts = [int(each) for each in rng.integers(1, frames - 2, int(answer))]
    actors = tuple(
        Actor(thing, starts[place] if place < len(starts) else 0, frames - 1)
        for place, thing in enumerate(things)
    )
    key = tuple(_event(actor, frames, "enters") for actor in actors[: int(answer)])
    return Plot(
        "How many things enter?",
        answer,
        options,
        actors,
        key,
        entail("the number is {answer}", options),
    )


def meeting(rng: np.random.Generator, preset: WorldPreset, frames: int) -> Plot:
    """Ask which of two things a third one meets."""
    things = _things(rng, preset, 3)
    options = (things[1].name, things[2].name)
    answer = pick(rng, options)
    others = [Actor(thing, 0, frames - 1) for thing in things[1:]]
    partner = next(each for each in others if each.thing.name == answer)
    start = int(rng.integers(1, frames - 4))
    actor = Actor(
        things[0],
        0,
        frames - 1,
        partner=partner,
        meets=(start, start + int(rng.integers(1, 4))),
    )
    return Plot(
        f"Which does the {things[0].name} meet, the {options[0]} or the {options[1]}?",
        answer,
        options,
        (*others, actor),
        (_event(actor, frames, "meets"),),
        entail("it is the {answer}", options),
    )


def change(rng: np.random.Generator, preset: WorldPreset, frames: int) -> Plot:
    """Ask which color a thing turns."""
    shape = pick(rng, SHAPES)
    answer = pick(rng, _COLORS)
    placer = Placer(rng, preset)
    thing = placer.add(shape=shape, color=other(rng, _COLORS, answer))
    low, high = preset.distractors
    rest = [
        placer.add(shape=other(rng, SHAPES, shape)) for _ in range(int(rng.integers(low, high + 1)))
    ]
    actor = Actor(thing, 0, frames - 1, turns_at=int(rng.integers(2, frames - 1)), new_color=answer)
    return Plot(
        f"Which color does the {shape} turn?",
        answer,
        _COLORS,
        (*(Actor(each, 0, frames - 1) for each in rest), actor),
        (_event(actor, frames, "turns"),),
        entail(f"the {shape} is {{answer}} now", _COLORS),
    )


PLOTS: dict[str, Callable[[np.random.Generator, WorldPreset, int], Plot]] = {
    "order": order,
    "duration": duration,
    "count": count,
    "meeting": meeting,
    "change": change,
}


def _things(rng: np.random.Generator, preset: WorldPreset, number: int) -> list[Thing]:
    """Return things that differ in color and in shape, with space between them."""
    placer = Placer(rng, preset)
    colors, shapes = shuffled(rng, _COLORS), shuffled(rng, SHAPES)
    return [
        placer.add(color=colors[place], shape=shapes[place], size="small")
        for place in range(number)
    ]


def _event(actor: Actor, frames: int, kind: str) -> WorldEvent:
    return next(event for event in actor.events(frames) if event.kind == kind)
