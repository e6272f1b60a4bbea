"""Creates a world of linked people, cities, companies and works, and its articles.

Of every three entities of a kind, the third is similar to the second: its name is nearly the same,
its years and numbers differ a little, and its links differ. Both have an article, and questions
ask about both.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from visenv.search.corpus import Passage
from visenv.worlds.draws import pick, shuffled

from . import names
from .catalog import KINDS
from .kinds import Relation
from .names import Namer

DOUBLES = 3
"""One of this many entities is similar to another."""

_NUMBER = re.compile(r"\d[\d,]*")


class EntityLook(NamedTuple):
    """Describes an image without a name: a white star on blue, a red hat and a green coat."""

    ink: str
    charge: str
    ground: str


class Entity(NamedTuple):
    """Describes a person or thing of a world.

    Attributes:
        kind: A key of `KINDS`.
        name: A name that is unique in its world.
        look: A look that is unique among its kind; None if the kind has none.
        told: The value of each of its kind's relations: a fact, or the name of another entity.
        remark: A sentence with years and numbers that no question asks about.
    """

    kind: str
    name: str
    look: EntityLook | None
    told: dict[str, str]
    remark: str = ""


Society = dict[str, Entity]
"""Entities of a world by name."""


def write_society(rng: np.random.Generator) -> Society:
    """Return a world that depends on the generator's state alone."""
    namer = Namer(rng)
    names = {kind: _names(namer, kind) for kind in KINDS}
    society: Society = {}
    for kind in KINDS:
        looks = _looks(rng, kind)
        before: dict[str, str] = {}
        for place, name in enumerate(names[kind]):
            double = place % DOUBLES == DOUBLES - 1
            before = _told(rng, kind, name, names, before if double else {})
            look = looks[place] if looks else None
            society[name] = Entity(kind, name, look, before, _remark(rng))
    return society


def _names(namer: Namer, kind: str) -> list[str]:
    names: list[str] = []
    for place in range(KINDS[kind].population):
        double = place % DOUBLES == DOUBLES - 1
        names.append(namer.near(kind, names[-1]) if double else namer.new(kind))
    return names


def _looks(rng: np.random.Generator, kind: str) -> list[EntityLook]:
    """Return a look for each entity; no two have the same figure in the same two colors."""
    colors = tuple(names.COLORS)
    pairs = [(one, two) for place, one in enumerate(colors) for two in colors[:place]]
    looks = [(charge, *pair) for charge in KINDS[kind].charges for pair in pairs]
    chosen = shuffled(rng, looks)[: KINDS[kind].population]
    return [
        EntityLook(one, charge, two) if rng.random() < 0.5 else EntityLook(two, charge, one)
        for charge, one, two in chosen
    ]


def _told(
    rng: np.random.Generator,
    kind: str,
    name: str,
    names: dict[str, list[str]],
    before: dict[str, str],
) -> dict[str, str]:
    """Return the facts about an entity; the numbers of a similar one are near the original's."""
    told: dict[str, str] = {}
    for relation, how in KINDS[kind].relations.items():
        if how.value is None:
            others = [
                each for each in names[how.target] if each not in (name, before.get(relation))
            ]
            told[relation] = pick(rng, others)
        elif relation in before and _NUMBER.fullmatch(before[relation]):
            told[relation] = _near_number(rng, before[relation])
        else:
            told[relation] = how.value(rng)
    return told


def _remark(rng: np.random.Generator) -> str:
    year, number = int(rng.integers(1800, 2020)), int(rng.integers(20, 900))
    return pick(rng, names.REMARKS).format(year=year, number=number)


def _near_number(rng: np.random.Generator, number: str) -> str:
    away = int(rng.integers(1, 10)) * (1 if rng.random() < 0.5 else -1)
    near = int(number.replace(",", "")) + away
    return f"{near:,}" if "," in number else str(near)


# ---------------------------------------------------------------------------- articles


def society_articles(society: Society) -> list[Passage]:
    """Return an article for each entity, titled by its name; the result is deterministic."""
    rng = np.random.default_rng([len(society), *next(iter(society)).encode()])
    return [Passage(entity.name, _article(rng, entity)) for entity in society.values()]


def _article(rng: np.random.Generator, entity: Entity) -> str:
    kind = KINDS[entity.kind]
    told = [
        _sentence(rng, how, entity.name, entity.told[relation])
        for relation, how in kind.relations.items()
    ]
    if kind.looks and entity.look:
        told.append(kind.looks.sentence.format(name=entity.name, look=described(entity)))
    return " ".join([kind.opening.format(name=entity.name), *shuffled(rng, [*told, entity.remark])])


def _sentence(rng: np.random.Generator, how: Relation, name: str, value: str) -> str:
    return pick(rng, how.sentences).format(name=name, value=value)


def described(entity: Entity) -> str:
    """Return a description of the entity's image without its name."""
    assert entity.look is not None
    ink, charge, ground = entity.look
    where = f"and {_article_of(ground)} coat" if entity.kind == "person" else f"on {ground}"
    return f"{_article_of(ink)} {charge} {where}"


def _article_of(color: str) -> str:
    return f"{'an' if color[0] in 'aeiou' else 'a'} {color}"
