"""Creates questions about images; each first draws the answer, then a scene for it.

The wording never depends on the answer, so that the text alone does not reveal it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from visenv.worlds.draws import pick, shuffled

from .asked import Asked
from .common import Placer, other
from .presets import WorldPreset
from .things import MATERIALS, SIZES, Thing, plural


class SceneQuestion(NamedTuple):
    """Describes a question and its scene.

    Attributes:
        answer: The right answer.
        options: All answers that the wording allows, equally likely.
        things: The things from back to front.
        targets: The labels that a grounded reasoning points to.
        asked: The relation that the question asks about.
        counted: The label that is counted, ``""`` if none is.
    """

    question: str
    answer: str
    options: tuple[str, ...]
    things: tuple[Thing, ...]
    targets: tuple[str, ...]
    asked: Asked
    counted: str = ""


def count(rng: np.random.Generator, preset: WorldPreset) -> SceneQuestion:
    """Ask how many things of a shape there are."""
    options = ("1", "2", "3", "4")
    answer, shape = pick(rng, options), pick(rng, preset.shapes)
    placer = Placer(rng, preset)
    for _ in range(int(answer)):
        placer.add(shape=shape, size="small")
    placer.distract(shape, size="small")
    return SceneQuestion(
        f"How many {plural(shape)} are there?",
        answer,
        options,
        placer.layers(),
        (shape,),
        Asked(
            relation="number",
            subject=shape,
            conclusion=f"the number of {plural(shape)} is {answer}",
        ),
        shape,
    )


def color(rng: np.random.Generator, preset: WorldPreset) -> SceneQuestion:
    """Ask which color the only thing of a shape has."""
    answer, shape = pick(rng, preset.colors), pick(rng, preset.shapes)
    placer = Placer(rng, preset)
    placer.add(shape=shape, color=answer)
    placer.distract(shape, size="small")
    return SceneQuestion(
        f"What color is the {shape}?",
        answer,
        preset.colors,
        placer.layers(),
        (shape,),
        Asked(relation="color", subject=shape, conclusion=f"the {shape} is {answer}"),
    )


def material(rng: np.random.Generator, preset: WorldPreset) -> SceneQuestion:
    """Ask whether the only thing of a shape is plain, striped, dotted or checkered."""
    answer, shape = pick(rng, MATERIALS), pick(rng, preset.shapes)
    placer = Placer(rng, preset)
    placer.add(shape=shape, material=answer, size="large")
    placer.distract(shape, size="large")
    return SceneQuestion(
        f"Is the {shape} plain, striped, dotted or checkered?",
        answer,
        MATERIALS,
        placer.layers(),
        (shape,),
        Asked(relation="material", subject=shape, conclusion=f"the {shape} is {answer}"),
    )


def relation(rng: np.random.Generator, preset: WorldPreset) -> SceneQuestion:
    """Ask whether one thing is to the left or to the right of another."""
    options = ("left", "right")
    answer = pick(rng, options)
    placer = Placer(rng, preset)
    shapes = shuffled(rng, preset.shapes)
    pair = [placer.add(shape=shape, size="small") for shape in shapes[:2]]
    pair.sort(key=lambda thing: thing.x)
    if pair[0].x == pair[1].x:
        return relation(rng, preset)
    placer.distract(*shapes[:2], size="small")
    first, second = pair if answer == "left" else pair[::-1]
    names = first.name, second.name
    return SceneQuestion(
        f"Is the {names[0]} to the left or to the right of the {names[1]}?",
        answer,
        options,
        placer.layers(),
        names,
        Asked(
            relation="side",
            subject=names[0],
            other=names[1],
            conclusion=f"the {names[0]} is to the {answer}",
        ),
    )


def depth(rng: np.random.Generator, preset: WorldPreset) -> SceneQuestion:
    """Ask which of two things that overlap is in front."""
    size = pick(rng, SIZES)
    radius = preset.radius[SIZES.index(size)]
    placer = Placer(rng, preset)
    shapes = shuffled(rng, preset.shapes)[:2]
    colors = shuffled(rng, preset.colors)[:2]
    shift = radius if rng.random() < 0.5 else -radius
    low, high = radius + 1 - min(shift, 0), preset.width - radius - 1 - max(shift, 0)
    x = int(rng.integers(low, high))
    y = int(rng.integers(radius + 1, preset.height - radius - 1))
    pair = [
        Thing(colors[side], pick(rng, MATERIALS), shapes[side], size, x + move, y, radius, radius)
        for side, move in ((0, 0), (1, shift))
    ]
    placer.distract(*shapes, size=size)
    options = (pair[0].name, pair[1].name)
    answer = pick(rng, options)
    things = (*placer.behind, *sorted(pair, key=lambda thing: thing.name == answer))
    return SceneQuestion(
        f"Which is in front, the {options[0]} or the {options[1]}?",
        answer,
        options,
        things,
        options,
        Asked(relation="depth", conclusion=f"the {answer} is in front"),
    )


def absent(rng: np.random.Generator, preset: WorldPreset) -> SceneQuestion:
    """Ask whether there is a thing of some color and shape.

    There are always three things; one has the color, and one has the shape. The answer only
    depends on whether these are the same thing.
    """
    options = ("yes", "no")
    answer = pick(rng, options)
    wanted, shape = pick(rng, preset.colors), pick(rng, preset.shapes)
    article = "an" if wanted == "orange" else "a"
    placer = Placer(rng, preset)
    different = {
        "shape": other(rng, preset.shapes, shape),
        "color": other(rng, preset.colors, wanted),
    }
    if answer == "yes":
        placer.add(**different)
        asked = [placer.add(shape=shape, color=wanted)]
    else:
        asked = [
            placer.add(shape=shape, color=different["color"]),
            placer.add(shape=different["shape"], color=wanted),
        ]
    placer.add(shape=other(rng, preset.shapes, shape), color=other(rng, preset.colors, wanted))
    return SceneQuestion(
        f"Is there {article} {wanted} {shape}?",
        answer,
        options,
        placer.layers(),
        tuple(thing.name for thing in asked),
        Asked(
            relation="presence",
            subject=f"{wanted} {shape}",
            conclusion=f"i see {article if answer == 'yes' else 'no'} {wanted} {shape}",
        ),
    )


def chart(rng: np.random.Generator, preset: WorldPreset) -> SceneQuestion:
    """Ask which bar of a chart is the tallest, or the shortest."""
    extreme = pick(rng, ("tallest", "shortest"))
    colors = shuffled(rng, preset.colors)
    sheet = _inset(rng, preset, 0.6)
    heights = rng.permutation(np.linspace(0.25, 1, len(colors))) * sheet.height
    column = sheet.width // len(colors)
    things = tuple(
        Thing(
            bar_color,
            "plain",
            "bar",
            "large",
            sheet.left + column * place + column // 2,
            int(sheet.top + sheet.height - height / 2),
            max(3, column // 4),
            int(height / 2),
        )
        for place, (bar_color, height) in enumerate(zip(colors, heights, strict=True))
    )
    best = int(heights.argmax() if extreme == "tallest" else heights.argmin())
    return SceneQuestion(
        f"What color is the {extreme} bar of the chart?",
        colors[best],
        preset.colors,
        things,
        (f"{colors[best]} bar",),
        Asked(
            relation="extreme bar",
            given=extreme,
            conclusion=f"the {extreme} bar is {colors[best]}",
        ),
    )


def map_region(rng: np.random.Generator, preset: WorldPreset) -> SceneQuestion:
    """Ask in which region of a map the marker is."""
    colors = shuffled(rng, preset.colors)
    sheet = _inset(rng, preset, 0.38)
    across, down = sheet.width // 6, sheet.height // 4
    regions = [
        Thing(
            colors[3 * row + column],
            "plain",
            "region",
            "large",
            sheet.left + int(across * (1 + 2 * column) + rng.integers(-across // 2, across // 2)),
            sheet.top + int(down * (1 + 2 * row) + rng.integers(-down // 2, down // 2)),
            across + across // 4,
            down + down // 4,
        )
        for row in (0, 1)
        for column in (0, 1, 2)
    ]
    inside = pick(rng, regions)
    radius = max(4, preset.radius[0] // 2)
    shape = pick(rng, preset.shapes)
    marker = Thing("gray", "plain", shape, "small", inside.x, inside.y, radius, radius)
    return SceneQuestion(
        f"In which region of the map is the {shape}?",
        inside.color,
        preset.colors,
        (*regions, marker),
        (f"{inside.color} region", shape),
        Asked(
            relation="region",
            subject=shape,
            conclusion=f"the {shape} is in the {inside.color} region",
        ),
    )


class _Inset(NamedTuple):
    """Holds the part of a picture that a chart or a map fills, native pixels."""

    left: int
    top: int
    width: int
    height: int


def _inset(rng: np.random.Generator, preset: WorldPreset, share: float) -> _Inset:
    """Return a random part of the picture with a share of its width and of its height.

    A chart at a fixed place would have a bar at the same pixel in each picture.
    """
    width, height = int(preset.width * share), int(preset.height * share)
    left = int(rng.integers(preset.width - width))
    return _Inset(left, int(rng.integers(preset.height - height)), width, height)


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
