"""Creates questions that lead from an image through one to three articles of a `Society`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from visenv.types import Image
from visenv.worlds.draws import pick, shuffled

from .catalog import KINDS
from .kinds import Hop, MultiHopQuestion, Relation
from .portraits import draw_looks, draw_named
from .society import Entity, Society, described

HOPS = (1, 2, 3)
_OPTIONS = 8
_HARD = 3
"""Minimum difficulty of a hard question: each hop counts 1, and so does an unnamed image."""


class RelationStep(NamedTuple):
    """Holds an entity and the relation of its kind that is asked about."""

    entity: Entity
    relation: str

    @property
    def value(self) -> str:
        """Return the value of the relation."""
        return self.entity.told[self.relation]


Path = tuple[RelationStep, ...]
"""A list of steps: each value is the entity of the next step, and the last is the answer."""


def ask_society(rng: np.random.Generator, society: Society, hops: int) -> MultiHopQuestion:
    """Return a question that needs `hops` articles; only the last one contains the answer."""
    path = _walk(rng, society, hops)
    while not is_clear(path):
        path = _walk(rng, society, hops)
    start = path[0].entity
    kind = KINDS[start.kind]
    looked = kind.looks is not None and bool(rng.random() < 0.5)
    shown = kind.looks if looked and kind.looks else kind.named
    pixels = draw_looks(rng, start) if looked else draw_named(rng, start)
    return MultiHopQuestion(
        text=_worded(path, shown.phrase),
        image=Image.from_pixels(pixels),
        hops=tuple(_hop(step, looked and step.entity is start) for step in path),
        answers=_answers(path[-1], society),
        options=_options(rng, path[-1], society),
        kind=f"{start.kind}, {'looks' if looked else 'name'}",
        hard=hops + looked >= _HARD,
    )


def _walk(rng: np.random.Generator, society: Society, hops: int) -> Path:
    """Follow random links from a random entity; the last step may also be a plain fact."""
    kind = pick(rng, tuple(KINDS))
    entity = pick(rng, [each for each in society.values() if each.kind == kind])
    steps: list[RelationStep] = []
    for left in range(hops, 0, -1):
        relations = KINDS[entity.kind].relations
        names = [name for name, how in relations.items() if how.target or left == 1]
        steps.append(RelationStep(entity, pick(rng, names)))
        entity = society.get(steps[-1].value, entity)
    return tuple(steps)


def is_clear(path: Path) -> bool:
    """Return whether no entity occurs twice, and only the last article contains the answer."""
    answer = path[-1].value
    met = [step.entity for step in path]
    names = {entity.name for entity in met}
    told = {value for entity in met[:-1] for value in entity.told.values()}
    remarked = any(answer in entity.remark for entity in met[:-1])
    return len(names) == len(path) and answer not in names | told and not remarked


def _worded(path: Path, phrase: str) -> str:
    """Return the text of the question, which names no entity of the path."""
    for step in path[:-1]:
        phrase = _relation(step).phrase.format(phrase)
    return _relation(path[-1]).question.format(phrase)


def _hop(step: RelationStep, looked: bool) -> Hop:
    entity = step.entity
    looks = KINDS[entity.kind].looks
    if looked and looks is not None and entity.look is not None:
        return Hop(looks.query.format(described(entity)), tuple(entity.look), entity.name)
    return Hop(_relation(step).query.format(entity.name), tuple(entity.name.split()), entity.name)


def _relation(step: RelationStep) -> Relation:
    return KINDS[step.entity.kind].relations[step.relation]


def _answers(step: RelationStep, society: Society) -> tuple[str, ...]:
    """Return the value, and its variants without commas, article or other unneeded words."""
    value = step.value
    found = [value, value.replace(",", "")]
    found += [value.removeprefix(article) for article in ("a ", "an ", "The ")]
    if _relation(step).target == "person":
        surname = value.split()[-1]
        bearers = [name for name in society if name.split()[-1] == surname]
        found += [surname] if len(bearers) == 1 else []
    if step.relation == "river":
        found += [f"the river {value}", f"{value} river"]
    return tuple(dict.fromkeys(found))


def _options(rng: np.random.Generator, step: RelationStep, society: Society) -> tuple[str, ...]:
    """Return the answer, mixed with values of the same relation for other entities."""
    kind = step.entity.kind
    told = {each.told[step.relation] for each in society.values() if each.kind == kind}
    others = shuffled(rng, sorted(told - {step.value}))[: _OPTIONS - 1]
    return tuple(sorted([step.value, *others]))
