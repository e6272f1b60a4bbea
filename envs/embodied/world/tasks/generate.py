"""Creates a task from a seed: the house, the goal, the instruction, and a plan that reaches it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from visenv.errors import ConfigurationError
from visenv.worlds.draws import pick, shuffled

from ...dialects import DIALECTS, Dialect, HabitatDialect
from ..furnish import OPEN_STORAGE, Furnisher, NoSpaceError
from ..goals import Goal, is_met, is_reached
from ..house import Fixture, FurnishedHouse
from ..items import ITEMS, Split
from ..layout import Layout, lay_out
from ..planner import Operation, PlanError, plan
from ..state import HouseState
from .drafts import MAKERS, TaskDraft, deliver
from .references import DISTRACTIONS, TEMPLATES
from .specs import LONG_PLAN, LONGEST_PLAN, MIXES, SHORT_PLAN, SUBSETS, TASKS

_ATTEMPTS = 500
_SPLITS: tuple[Split, ...] = ("train", "eval")


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """Sets the options from which a task is drawn.

    Attributes:
        dialect: ``"alfred"``, ``"habitat"`` or ``"skills"``.
        subset: One of `SUBSETS`, or ``"all"`` for each with an equal share.
        split: ``"train"`` or ``"eval"``; they share no house, appearance or phrase.
        rooms: The number of rooms; 0 draws 3 to 6.
        kinds: Number of types of objects in the house.
        extra: Number of further objects, of types that already occur.
        lookalikes: Number of objects that a reference by look chooses from.
        fixtures: The fixtures of a house of one room; empty for those of its type of room.
        tasks: The types of tasks; empty for those of the subset.
        longest_plan: Maximum number of actions of a plan; 0 for the bounds of the subset.
        types: The types of objects of tasks; empty for all.
        attributes: The attributes that references by look name, with equal shares: ``"color"``,
            ``"pattern"`` or ``"size"``.
        colors: The colors of the objects that a reference by look chooses from, first that of the
            object of the task; empty draws them.
        apart: Whether the objects that a reference by look or place chooses from must be in
            different fixtures.
    """

    dialect: str = "alfred"
    subset: str = "all"
    split: Split = "train"
    rooms: int = 0
    kinds: int = 36
    extra: int = 10
    lookalikes: int = 4
    fixtures: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    longest_plan: int = 0
    types: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ("color", "color", "pattern", "size")
    colors: tuple[str, ...] = ()
    apart: bool = False

    def __post_init__(self) -> None:
        if self.colors and len(set(self.colors)) < max(len(self.colors), self.lookalikes):
            raise ConfigurationError(
                f"colors must be different, at least as many as lookalikes ({self.lookalikes}), "
                f"got {self.colors}."
            )


@dataclass(frozen=True)
class HouseTask:
    """Holds a task in its house.

    Attributes:
        kind: The type of task, a key of `TASKS`.
        instruction: The instruction for the policy.
        plan: Ids of actions that reach it.
        targets: The objects that the reference matches, if it must match exactly one.
        lookalikes: The other objects of its type.
    """

    house: FurnishedHouse
    kind: str
    subset: str
    instruction: str
    goal: Goal
    plan: tuple[int, ...]
    targets: tuple[str, ...] = ()
    lookalikes: tuple[str, ...] = ()


@lru_cache(maxsize=64)
def make_task(seed: int, options: TaskOptions) -> HouseTask:
    """Return the task of a seed.

    Raises:
        RuntimeError: If no task satisfies the options, for example with too few fixtures.
    """
    rng, subset, kind = draw_type(seed, options)
    for _ in range(_ATTEMPTS):
        try:
            task = _attempt(rng, options, subset, kind)
        except (NoSpaceError, PlanError, KeyError):
            continue
        if task is not None:
            return task
    raise RuntimeError(f"{options} allow no task {kind!r} in {_ATTEMPTS} attempts.")


def draw_type(seed: int, options: TaskOptions) -> tuple[np.random.Generator, str, str]:
    """Return the generator of a task, its subset and its type."""
    stream = np.random.SeedSequence((seed, _SPLITS.index(options.split)))
    rng = np.random.default_rng(stream)
    subset = pick(rng, SUBSETS) if options.subset == "all" else options.subset
    return rng, subset, pick(rng, options.tasks or MIXES[options.dialect][subset])


def _attempt(
    rng: np.random.Generator, options: TaskOptions, subset: str, kind: str
) -> HouseTask | None:
    """Return a task, or None if its plan has the wrong length."""
    wants = DIALECTS[options.dialect]
    rooms = wants.rooms or options.rooms or int(rng.integers(3, 7))
    layout = lay_out(rng, rooms, wants.fixtures or options.fixtures)
    destinations = _destinations(rng, layout, options)
    furnisher = Furnisher(rng, layout, options.split, {each.name for each in destinations})
    draft = TaskDraft(
        furnisher,
        kind,
        subset,
        tuple(each.name for each in destinations),
        options.lookalikes,
        options.apart or options.dialect != "alfred",
        options.types or wants.types or tuple(ITEMS),
        options.attributes,
        options.colors,
    )
    finish = MAKERS.get(kind, deliver)(draft)
    furnisher.fill(options.kinds, options.extra, draft.used)
    house, names = furnisher.finish()
    doors = (each.name for each in layout.fixtures if each.kind in wants.open_at_first)
    house = replace(house, open=frozenset(doors))
    goal, words = finish(names)
    dialect = wants(house)
    actions = actions_of(dialect, goal)
    if actions is None or not _has_length(len(actions), subset, options):
        return None
    template = pick(rng, TEMPLATES[TASKS[kind].phrase][options.split])
    text = template.format(dest=_place_words(dialect, destinations), **words)
    targets, lookalikes = _chosen(goal)
    if subset == "complex_instruction":
        first, second = shuffled(rng, DISTRACTIONS[options.split])[:2]
        text = f"{first} {text} {second}"
    return HouseTask(house, kind, subset, text, goal, actions, targets, lookalikes)


def actions_of(dialect: Dialect, goal: Goal) -> tuple[int, ...] | None:
    """Return ids of actions that reach a goal from the first state, checked by executing them.

    Returns:
        The ids. None if the goal, or a condition of it, is met at the beginning, or the actions do
        not reach it.

    Raises:
        PlanError: If there is no plan.
        KeyError: If the dialect lacks an action.
    """
    state = HouseState(dialect.house)
    if any(is_met(state, clause) for clause in goal.conditions):
        return None
    ids = []
    for operation in plan(state, goal):
        index = dialect.id_of(state, operation)
        if not dialect.perform(state, index).ok:
            return None
        ids.append(index)
        if is_reached(state, goal):
            return tuple(ids)
    return None


def next_action(dialect: Dialect, state: HouseState, goal: Goal) -> list[int]:
    """Return ids of the actions that reach a goal from any state; empty if there is no plan."""
    copy, ids = state.copy(), []
    try:
        operations: list[Operation] = plan(state, goal)
        for operation in operations:
            ids.append(dialect.id_of(copy, operation))
            dialect.perform(copy, ids[-1])
    except (PlanError, KeyError):
        return ids
    return ids


def _has_length(length: int, subset: str, options: TaskOptions) -> bool:
    if options.longest_plan:
        return length <= options.longest_plan
    if subset == "long_horizon":
        return LONG_PLAN <= length <= LONGEST_PLAN
    return length <= SHORT_PLAN


def _destinations(
    rng: np.random.Generator, layout: Layout, options: TaskOptions
) -> tuple[Fixture, ...]:
    """Return the fixtures that an object can be brought to: one type, or one fixture."""
    kinds = sorted({each.kind for each in layout.fixtures if each.kind in OPEN_STORAGE})
    kind = pick(rng, kinds)
    fixtures = tuple(each for each in layout.fixtures if each.kind == kind)
    return fixtures if options.dialect == "alfred" else (pick(rng, fixtures),)


def _place_words(dialect: Dialect, destinations: tuple[Fixture, ...]) -> str:
    """Return the instruction's phrase for the destination, with its preposition."""
    first = destinations[0]
    preposition = "in" if first.kind == "Bathtub" else "on"
    if isinstance(dialect, HabitatDialect):
        return f"{preposition} the {dialect.words[first.name]}"
    article = "the" if len(destinations) == 1 else "a"
    return f"{preposition} {article} {first.type.word}"


def _chosen(goal: Goal) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the object that the reference matches, and its look-alikes, if there are any."""
    if not goal.guards:
        return (), ()
    return goal.conditions[0].domains[0], goal.guards[0].domains[0]
