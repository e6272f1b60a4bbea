"""Measures the variety of the procedural worlds: questions, templates, layouts and repetitions.

    python benchmarks/variety.py [seeds] [id or id:preset ...]

Every row is about one world: the default one of an id, or that of its preset `tiny`. The columns
are counted over the samples of the first seeds of training, and over as many held-out seeds:

questions   different texts of questions
templates   different texts after names and numbers are removed from them
layouts     different sizes of images with different places of all objects, or different documents,
            worlds or houses if the ground truth has no places
pictured    the share of samples with an image
repeated    the share of training samples whose question, layout and steps another one has
leaked      the share of held-out samples whose question, layout and steps a training sample has
leaked layouts, leaked questions    the same for the layout alone and for the question alone

The pictures of scenes stay blank, because only their content is counted. The pictures of ArftCoding
are drawn, because drawing places the text, but not distorted. Libero has no procedural world.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple
from unittest.mock import patch

import gymnasium as gym
import numpy as np

import visenv  # noqa: F401 - registers the environments
from visenv.data.source import Source, draw
from visenv.envs.arft.coding.world.canvas import SIDE
from visenv.registration import ENVIRONMENTS
from visenv.types import Sample
from visenv.worlds.recent import RecentSamples
from visenv.worlds.scenes.signs import FRAMES, SHAPES

SEEDS = 5000
WORLDS = tuple(name for name in ENVIRONMENTS if name != "visenv/Libero-v0")
TINY = tuple(
    f"visenv/{name}-v0:tiny"
    for name in ("ZoomVQA", "ArmZoom", "ArftCoding", "ArftSearch", "MagsZoom", "ArgosImage")
)

_BLANK = np.zeros((8, 8, 3), np.uint8)
_BLANK_SURFACE = np.zeros((SIDE, SIDE, 3), np.uint8)

_PAINTERS: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("visenv.worlds.scenes.world.ScenesWorld._paint", lambda *_: _BLANK),
    ("visenv.envs.mags.world.world.paint", lambda *_: _BLANK),
    ("visenv.envs.mags.world.world.native_image", lambda *given: given[-1]),
    ("visenv.envs.arft.coding.world.pictures.surface", lambda *_: _BLANK_SURFACE),
    ("visenv.envs.arft.coding.world.sources.telling_distortions", lambda *_: []),
    ("visenv.envs.arft.search.world.paths.draw_named", lambda *_: _BLANK),
    ("visenv.envs.arft.search.world.paths.draw_looks", lambda *_: _BLANK),
)
_CACHES = (
    *("visenv.worlds.scenes.world", "visenv.envs.mags.world.world"),
    *("visenv.envs.arft.coding.world.sources", "visenv.envs.arft.search.world.library"),
)
"""Modules with a cache of samples, in which the blank pictures must not stay."""

_PLACES = frozenset({"x", "y", "document", "seed", "world"})
"""Fields of ground truths, beside boxes and points, that identify a layout."""

_NAMES = frozenset({"answer", "options", "frame", "shape", "names", "color", "material", "size"})
"""Fields of ground truths with names that questions can contain."""

_WORD = re.compile(r"\w[\w'-]*")


class Variety(NamedTuple):
    """Holds a row of the table; its fields are the columns."""

    seeds: int
    questions: int
    templates: int
    layouts: int
    pictured: float
    repeated: float
    leaked: float
    leaked_layouts: float
    leaked_questions: float


def measure(world: str, seeds: int) -> Variety:
    """Return the variety of a world, which is named ``id`` or ``id:preset``."""
    name, _, preset = world.partition(":")
    with blank_pictures():
        options: dict[str, Any] = {"preset": preset} if preset else {}
        env: Any = gym.make(name, **options)
        source: Source = env.unwrapped.source
        trained = [draw(source, np.random.default_rng(seed), {}) for seed in range(seeds)]
        held_out = [
            draw(source, np.random.default_rng(seed), {}, held_out=True)
            for seed in range(seeds, 2 * seeds)
        ]
        env.close()
    return variety(trained, held_out)


def variety(trained: Sequence[Sample], held_out: Sequence[Sample]) -> Variety:
    """Return the row of samples of training and held-out samples."""
    work = Counter(map(content, trained))
    questions = {sample.question for sample in trained}
    layouts = {layout(sample) for sample in trained}
    return Variety(
        seeds=len(trained),
        questions=len(questions),
        templates=len(templates(trained)),
        layouts=len(layouts),
        pictured=_share(bool(sample.images) for sample in trained),
        repeated=_share(work[content(sample)] > 1 for sample in trained),
        leaked=_share(content(sample) in work for sample in held_out),
        leaked_layouts=_share(layout(sample) in layouts for sample in held_out),
        leaked_questions=_share(sample.question in questions for sample in held_out),
    )


def content(sample: Sample) -> tuple[object, ...]:
    """Return the question, the layout and the searches that lead to the answer."""
    queries = getattr(sample.ground_truth, "queries", ())
    return sample.question, layout(sample), queries


def layout(sample: Sample) -> int:
    """Return a hash of the sizes of the images, and of all places in the ground truth."""
    sizes = tuple(image.size for image in sample.images)
    places = [
        (name, repr(value))
        for name, value in _leaves(sample.ground_truth)
        if name in _PLACES or name.endswith(("box", "boxes", "point", "points"))
    ]
    return hash((sizes, *places))


def templates(samples: Sequence[Sample]) -> set[str]:
    """Return the questions with ``…`` for names, numbers and quoted texts.

    Names are the words of answers and of names in any ground truth of the samples, the looks of
    signs, and words with a capital letter that do not begin a sentence.
    """
    names = {word for sample in samples for text in _names(sample) for word in _WORD.findall(text)}
    names |= {*FRAMES, *SHAPES}
    masked = set()
    for question in {sample.question for sample in samples}:
        plain = re.sub(r"\"[^\"]*\"|“[^”]*”|\d[\d.,:]*", "…", question)
        plain = re.sub(r"(?<=[a-z,…] )[A-Z][\w'-]*", "…", plain)
        plain = _WORD.sub(lambda found: "…" if found.group() in names else found.group(), plain)
        masked.add(re.sub(r"…(?:\W*…)+", "…", plain))
    return masked


def _names(sample: Sample) -> Iterator[str]:
    yield from sample.answers
    for name, value in _leaves(sample.ground_truth):
        if name in _NAMES and isinstance(value, str):
            yield value


@contextmanager
def blank_pictures() -> Iterator[None]:
    """Leave the pictures of scenes blank, which are not counted and take most of the time."""
    with ExitStack() as stack:
        for place, painter in _PAINTERS:
            stack.enter_context(patch(place, painter))
        for module in _CACHES:
            stack.enter_context(patch(f"{module}.RECENT", RecentSamples()))
        yield


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values in a ground truth with the names of their fields, boxes as a whole."""
    if is_dataclass(value):
        for field in fields(value):
            yield from _leaves(getattr(value, field.name), field.name)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, name or str(key))
    elif isinstance(value, list | tuple) and not all(
        isinstance(each, int | float) for each in value
    ):
        for item in value:
            yield from _leaves(item, name)
    else:
        yield name, value


def _share(flags: Iterable[bool]) -> float:
    given = list(flags)
    return sum(given) / len(given)


def main(seeds: int, worlds: Sequence[str]) -> None:
    columns = [name.replace("_", " ") for name in Variety._fields]
    print("| world | " + " | ".join(columns) + " |")
    print("|---|" + "---:|" * len(columns))
    for world in worlds:
        row = measure(world, seeds)
        values = [f"{each:.1%}" if isinstance(each, float) else f"{each:,}" for each in row]
        name = world.removeprefix("visenv/").replace("-v0", "").replace(":", ", ")
        print(f"| {name} | " + " | ".join(values) + " |", flush=True)


def _world(word: str) -> str:
    name, colon, preset = word.partition(":")
    name = name if name.startswith("visenv/") else f"visenv/{name}"
    return (name if name.endswith("-v0") else f"{name}-v0") + colon + preset


if __name__ == "__main__":
    words = sys.argv[1:]
    number = int(words.pop(0)) if words and words[0].isdigit() else SEEDS
    main(number, [_world(word) for word in words] or [*WORLDS, *TINY])
