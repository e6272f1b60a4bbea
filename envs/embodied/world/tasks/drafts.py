"""Drafts tasks: adds the objects of a task, and returns its goal once all objects have names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from visenv.worlds.draws import pick, shuffled

from ..furnish import OPEN_STORAGE, Furnisher, NoSpaceError
from ..goals import Clause, Fact, Goal
from ..items import ITEMS, word_of
from .references import ObjectReference, article, by_look, by_place, by_use, listed, plain, plural
from .specs import TASKS

Names = Sequence[str]
Finish = Callable[[Names], tuple[Goal, Mapping[str, str]]]


@dataclass(slots=True)
class TaskDraft:
    """Holds the data that the parts of a task share during its creation.

    Attributes:
        furnisher: Adds objects.
        task: The type of task.
        destinations: The fixtures to which the object is brought.
        lookalikes: Number of objects of a reference by look.
        apart: Whether the objects that a reference by look or place chooses from must be in
            different fixtures (the dialect `habitat` cannot choose between two at one place).
        types: The types of objects that the task may be about.
        attributes: The attributes that a reference by look may name.
        colors: The colors of these objects, see `TaskOptions`.
        used: Types of objects of which no more are added.
    """

    furnisher: Furnisher
    task: str
    subset: str
    destinations: tuple[str, ...]
    lookalikes: int
    apart: bool
    types: Sequence[str]
    attributes: Sequence[str]
    colors: Sequence[str] = ()
    used: set[str] = field(default_factory=set)

    @property
    def rng(self) -> np.random.Generator:
        """Return the random generator."""
        return self.furnisher.rng

    def refer(self, needs: str = "", without: Sequence[str] = ()) -> ObjectReference:
        """Add the object of the task, and its look-alikes, as the subset requires."""
        kinds = [
            kind
            for kind, each in ITEMS.items()
            if kind in self.types
            and kind not in self.used and kind not in without and not each.cuts
            and (not needs or getattr(each, needs))
            and (self.subset != "common_sense" or each.use)
        ]  # fmt: skip
        kind = pick(self.rng, kinds)
        self.used.add(kind)
        dirty = needs == "washed"
        avoid = {*self.destinations}
        if self.subset == "spatial":
            return by_place(self.furnisher, kind, avoid, dirty, self.apart)
        if self.subset == "visual_appearance":
            attribute = pick(self.rng, self.attributes)
            chosen = (attribute, self.lookalikes)
            return by_look(self.furnisher, kind, avoid, dirty, chosen, self.apart, self.colors)
        make = by_use if self.subset == "common_sense" else plain
        return make(self.furnisher, kind, avoid, dirty)


def there(names: Names, numbers: Sequence[int]) -> tuple[str, ...]:
    """Return the names of the objects with these numbers."""
    return tuple(names[number] for number in numbers)


def guards(
    names: Names, reference: ObjectReference, receptacles: Sequence[str]
) -> tuple[Clause, ...]:
    """Return the guards that no look-alike is ever put into one of these receptacles."""
    if not reference.lookalikes:
        return ()
    literals = tuple(Fact("never_in", ("?0", each)) for each in receptacles)
    return (Clause("forall", (there(names, reference.lookalikes),), literals),)


def in_dest(name: str = "?0") -> Fact:
    """Return the fact that an object is in a destination, the variable ``?1``."""
    return Fact("in", (name, "?1"))


def deliver(draft: TaskDraft) -> Finish:
    """Draft a task: bring one object, in some state, to the destination."""
    spec = TASKS[draft.task]
    reference = draft.refer(spec.needs)
    if "sliced" in spec.facts:
        draft.furnisher.add("Knife")
        draft.used.add("Knife")

    def finish(names: Names) -> tuple[Goal, Mapping[str, str]]:
        targets, dests = there(names, reference.targets), draft.destinations
        states = tuple(Fact(fact, ("?0",)) for fact in spec.facts)
        conditions = [Clause("exists", (targets, dests), (in_dest(),))]
        if states:
            conditions += [Clause("exists", (targets,), (state,)) for state in states]
            conditions.append(Clause("exists", (targets, dests), (in_dest(), *states)))
        goal = Goal(tuple(conditions), guards(names, reference, dests))
        return goal, {"thing": reference.words}

    return finish


def two(draft: TaskDraft) -> Finish:
    """Draft a task: bring two objects of a type to the destination."""
    reference = draft.refer()
    add = partial(draft.furnisher.add, reference.kind, avoid={*draft.destinations})
    numbers = [*reference.targets, *(add() for _ in range(3 - len(reference.targets)))]

    def finish(names: Names) -> tuple[Goal, Mapping[str, str]]:
        domains = (there(names, numbers), draft.destinations)
        conditions = tuple(Clause("exists", domains, (in_dest(),), count) for count in (1, 2))
        return Goal(conditions), {"kinds": plural(word_of(reference.kind))}

    return finish


def light(draft: TaskDraft) -> Finish:
    """Draft a task: hold an object while a lamp is on."""
    lamps = [each for each in draft.furnisher.layout.fixtures if each.type.role == "light"]
    if not lamps:
        raise NoSpaceError
    lamp = pick(draft.rng, lamps)
    same = tuple(each.name for each in lamps if each.kind == lamp.kind)
    reference = draft.refer()

    def finish(names: Names) -> tuple[Goal, Mapping[str, str]]:
        targets = there(names, reference.targets)
        conditions = (  # as in ALFRED, two
            Clause("exists", (targets,), (Fact("held", ("?0",)),)),
            Clause("exists", (same,), (Fact("on", ("?0",)),)),
        )
        return Goal(conditions), {"thing": reference.words, "lamp": f"the {lamp.type.word}"}

    return finish


def stack(draft: TaskDraft) -> Finish:
    """Draft a task: put an object into one that holds others, and bring both to the destination."""
    vessels = [kind for kind, each in ITEMS.items() if each.holds]
    kind = pick(draft.rng, vessels)
    draft.used.add(kind)
    vessel = draft.furnisher.add(kind, avoid={*draft.destinations})
    reference = draft.refer(without=vessels)

    def finish(names: Names) -> tuple[Goal, Mapping[str, str]]:
        targets, dests, holder = there(names, reference.targets), draft.destinations, names[vessel]
        inside, moved = Fact("in", ("?0", holder)), in_dest(holder)
        conditions = (
            Clause("exists", (targets,), (inside,)),
            Clause("exists", ((holder,), dests), (in_dest(),)),
            Clause("exists", (targets, dests), (inside, moved)),
        )
        goal = Goal(conditions, guards(names, reference, (holder,)))
        words = {"vessel": article(word_of(kind)), "vessel_again": f"the {word_of(kind)}"}
        return goal, {"thing": reference.words, **words}

    return finish


def each_of(draft: TaskDraft) -> Finish:
    """Draft a task: bring several different objects to the destination."""
    count = 4 if draft.subset == "long_horizon" else 2
    references = [draft.refer() for _ in range(count)]

    def finish(names: Names) -> tuple[Goal, Mapping[str, str]]:
        conditions = tuple(
            Clause("exists", (there(names, each.targets), draft.destinations), (in_dest(),))
            for each in references
        )
        return Goal(conditions), {"list": listed([each.words for each in references])}

    return finish


def every(draft: TaskDraft) -> Finish:
    """Draft a task: bring all objects of a type to the destination."""
    reference = draft.refer()

    def finish(names: Names) -> tuple[Goal, Mapping[str, str]]:
        domains = (there(names, reference.targets), draft.destinations)
        return Goal((Clause("forall", domains, (in_dest(),)),)), {"kind": word_of(reference.kind)}

    return finish


def leave_open(draft: TaskDraft) -> Finish:
    """Draft a task: bring an object to the destination, and leave a door open."""
    doors = [each for each in draft.furnisher.layout.fixtures if each.kind in ("Fridge", "Safe")]
    if not doors:
        raise NoSpaceError
    door = pick(draft.rng, doors)
    reference = draft.refer()

    def finish(names: Names) -> tuple[Goal, Mapping[str, str]]:
        targets, dests = there(names, reference.targets), draft.destinations
        conditions = (
            Clause("exists", (targets, dests), (in_dest(),)),
            Clause("exists", ((door.name,),), (Fact("open", ("?0",)),)),
        )
        goal = Goal(conditions, guards(names, reference, dests))
        return goal, {"thing": reference.words, "door": f"the {door.type.word}"}

    return finish


def if_there(draft: TaskDraft) -> Finish:
    """Draft a task: bring an object to one of two destinations; a fact of the house decides."""
    fixtures = draft.furnisher.layout.fixtures
    counts = {each.kind: sum(each.kind == other.kind for other in fixtures) for each in fixtures}
    free = [each for each in fixtures if each.kind in OPEN_STORAGE and counts[each.kind] == 1
            and each.name not in draft.destinations]  # fmt: skip
    if len(free) < 2:
        raise NoSpaceError
    other, watched = shuffled(draft.rng, free)[:2]
    reference = draft.refer()
    sign = pick(draft.rng, [kind for kind in ITEMS if kind not in draft.used])
    draft.used.add(sign)
    is_there = bool(draft.rng.integers(2))
    names_of_all = {each.name for each in fixtures}
    avoid = names_of_all - {watched.name} if is_there else {watched.name}
    draft.furnisher.add(sign, avoid=avoid)
    draft.furnisher.reserved.add(other.name)

    def finish(names: Names) -> tuple[Goal, Mapping[str, str]]:
        dests = draft.destinations if is_there else (other.name,)
        clause = Clause("exists", (there(names, reference.targets), dests), (in_dest(),))
        condition = f"{article(word_of(sign))} on the {watched.type.word}"
        goal = Goal((clause,), guards(names, reference, dests))
        return goal, {"thing": reference.words, "condition": condition,
                      "other": f"on the {other.type.word}"}  # fmt: skip

    return finish


MAKERS: Mapping[str, Callable[[TaskDraft], Finish]] = {
    "pick_two": two,
    "look_in_light": light,
    "stack": stack,
    "rearrange_each": each_of,
    "rearrange_all": every,
    "leave_open": leave_open,
    "if_there": if_there,
}
"""The functions that draft types of tasks; `deliver` drafts all other types."""
