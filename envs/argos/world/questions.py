"""Creates questions about images; each first draws the answer, then a scene for it.

The wording never depends on the answer, so that the text alone does not reveal it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from visenv.worlds.draws import pick, shuffled

from ..ground_truth import Entailment
from .common import Placer, entail, other
from .presets import WorldPreset
from .things import COLORS, MATERIALS, SHAPES, Thing

_COLORS = tuple(COLORS)


class SceneQuestion(NamedTuple):
    """Describes a question and its scene.

    Attributes:
        question: The question.
        answer: The right answer.
        options: All answers that the wording allows, equally likely.
        things: The things from back to front.
        targets: The labels that a grounded reasoning points to.
        entailments: The statements that entail answers.
        counted: The label that is counted, ``""`` if none is.
    """

    question: str
    answer: str
    options: tuple[str, ...]
    things: tuple[Thing, ...]
    targets: tuple[str, ...]
    entailments: tuple[Entailment, ...]
    counted: str = ""


def count(rng: np.random.Generator, preset: WorldPreset) -> SceneQuestion:
    """Ask how many things of a shape there are."""
    options = ("1", "2", "3", "4")
    answer, shape = pick(rng, options), pick(rng, SHAPES)
    placer = Placer(rng, preset)
    for _ in range(int(answer)):
        placer.add(shape=shape, size="small")
    placer.distract(shape, size="small")
    return SceneQuestion(
        f"How many {shape}s are there?",
        answer,
        options,
        tuple(shuffled(rng, placer.things)),
        (shape,),
        entail(f"the number of {shape}s is {{answer}}", options),
        shape,
    )


def color(rng: np.random.Generator, preset: WorldPreset) -> SceneQuestion:
    """Ask which color the only thing of a shape has."""
    answer, shape = pick(rng, _COLORS), pick(rng, SHAPES)
    placer = Placer(rng, preset)
    placer.add(shape=shape, color=answer)
    placer.distract(shape, size="small")
    return SceneQuestion(
        f"What color is the {shape}?",
        answer,
        _COLORS,
        tuple(shuffled(rng, placer.things)),
        (shape,),
        entail(f"the {shape} is {{answer}}", _COLORS),
    )


def material(rng: np.random.Generator, preset: WorldPreset) -> SceneQuestion:
    """Ask whether the only thing of a shape is plain, striped, dotted or checkered."""
    answer, shape = pick(rng, MATERIALS), pick(rng, SHAPES)
    placer = Placer(rng, preset)
    placer.add(shape=shape, material=answer, size="large")
    placer.distract(shape, size="large")
    return SceneQuestion(
        f"Is the {shape} plain, striped, dotted or checkered?",
        answer,
        MATERIALS,
        tuple(shuffled(rng, placer.things)),
        (shape,),
        entail(f"the {shape} is {{answer}}", MATERIALS),
    )


def relation(rng: np.random.Generator, preset: WorldPreset) -> SceneQuestion:
    """Ask whether one thing is to the left or to the right of another."""
    options = ("left", "right")
    answer = pick(rng, options)
    placer = Placer(rng, preset)
    shapes = shuffled(rng, SHAPES)
    pair = [placer.add(shape=shape, size="small") for shape in shapes[:2]]
    pair.sort(key=lambda thing: thing.x)
    if pair[0].x == pair[1].x:
        return relation(rng, preset)
    first, second = pair if answer == "left" else pair[::-1]
    names = first.name, second.name
    return SceneQuestion(
        f"Is the {names[0]} to the left or to the right of the {names[1]}?",
        answer,
        options,
        tuple(placer.things),
        names,
        entail(f"the {names[0]} is to the {{answer}}", options),
    )


def depth(rng: np.random.Generator, preset: WorldPreset) -> SceneQuestion:
    """Ask which of two things that overlap is in front."""
    radius = preset.radius[1]
    shapes = shuffled(rng, SHAPES)[:2]
    colors = shuffled(rng, _COLORS)[:2]
    margin = 2 * radius + 2
    x = int(rng.integers(margin, preset.width - margin))
    y = int(rng.integers(margin, preset.height - margin))
    shift = radius if rng.random() < 0.5 else -radius
    pair = [
        Thing(
            colors[side], pick(rng, MATERIALS), shapes[side], "large", x + move, y, radius, radius
        )
        for side, move in ((0, 0), (1, shift))
    ]
    options = (pair[0].name, pair[1].name)
    answer = pick(rng, options)
    things = tuple(sorted(pair, key=lambda thing: thing.name == answer))
    return SceneQuestion(
        f"Which is in front, the {options[0]} or the {options[1]}?",
        answer,
        options,
        things,
        options,
        entail("the {answer} is in front", options),
    )


def absent(rng: np.random.Generator, preset: WorldPreset) -> SceneQuestion:
    """Ask whether there is a thing of some color and shape.

    There are always three things; one has the color, and one has the shape. The answer only
    depends on whether these are the same thing.
    """
    options = ("yes", "no")
    answer = pick(rng, options)
    wanted, shape = pick(rng, _COLORS), pick(rng, SHAPES)
    placer = Placer(rng, preset)
    different = {"shape": other(rng, SHAPES, shape), "color": other(rng, _COLORS, wanted)}
    if answer == "yes":
        placer.add(**different)
        asked = [placer.add(shape=shape, color=wanted)]
    else:
        asked = [
            placer.add(shape=shape, color=different["color"]),
            placer.add(shape=different["shape"], color=wanted),
        ]
    placer.add(shape=other(rng, SHAPES, shape), color=other(rng, _COLORS, wanted))
    return SceneQuestion(
        f"Is there a {wanted} {shape}?",
        answer,
        options,
        tuple(shuffled(rng, placer.things)),
        tuple(thing.name for thing in asked),
        (
            Entailment(statement=f"i see a {wanted} {shape}", answer="yes"),
            Entailment(statement=f"i see no {wanted} {shape}", answer="no"),
        ),
    )


def chart(rng: np.random.Generator, preset: WorldPreset) -> SceneQuestion:
    """Ask which bar of a chart is the tallest, or the shortest."""
    extreme = pick(rng, ("tallest", "shortest"))
    number = 4
    colors = shuffled(rng, _COLORS)[:number]
    heights = rng.permutation(np.linspace(0.25, 0.9, number)) * preset.height
    column = preset.width // number
    half = max(3, column // 3)
    things = tuple(
        Thing(
            bar_color,
            "plain",
            "bar",
            "large",
            column * place + column // 2,
            int(preset.height - height / 2),
            half,
            int(height / 2),
        )
        for place, (bar_color, height) in enumerate(zip(colors, heights, strict=True))
    )
    best = int(heights.argmax() if extreme == "tallest" else heights.argmin())
    return SceneQuestion(
        f"What color is the {extreme} bar of the chart?",
        colors[best],
        _COLORS,
        things,
        (f"{colors[best]} bar",),
        entail(f"the {extreme} bar is {{answer}}", _COLORS),
    )


def map_region(rng: np.random.Generator, preset: WorldPreset) -> SceneQuestion:
    """Ask in which region of a map the marker is."""
    colors = shuffled(rng, _COLORS)
    across, down = preset.width // 4, preset.height // 4
    regions = [
        Thing(
            colors[2 * row + side],
            "plain",
            "region",
            "large",
            int(across * (1 + 2 * side) + rng.integers(-across // 2, across // 2 + 1)),
            int(down * (1 + 2 * row) + rng.integers(-down // 2, down // 2 + 1)),
            across,
            down,
        )
        for row in (0, 1)
        for side in (0, 1)
    ]
    inside = pick(rng, regions)
    radius = max(4, preset.radius[0] // 2)
    shape = pick(rng, SHAPES)
    marker = Thing(colors[4], "plain", shape, "small", inside.x, inside.y, radius, radius)
    return SceneQuestion(
        f"In which region of the map is the {shape}?",
        inside.color,
        _COLORS,
        (*regions, marker),
        (f"{inside.color} region", shape),
        entail(f"the {shape} is in the {{answer}} region", _COLORS),
    )


QUESTIONS: dict[str, Callable[[np.random.Generator, WorldPreset], SceneQuestion]] = {
    "count": count,
    "color": color,
    "material": material,
    "relation": relation,
    "depth": depth,
    "absent": absent,
    "chart": chart,
    "map": map_region,
}
