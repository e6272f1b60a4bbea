"""Tests tasks: solvable, of the specified length, with references that match one object."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import pairwise

import pytest

from benchmarks.house_checker import reaches
from visenv.envs.embodied.dialects import DIALECTS
from visenv.envs.embodied.world.goals import is_reached
from visenv.envs.embodied.world.items import ITEMS, word_of
from visenv.envs.embodied.world.state import HouseState
from visenv.envs.embodied.world.tasks import MIXES, SUBSETS, HouseTask, TaskOptions, make_task
from visenv.envs.embodied.world.tasks.generate import draw_type
from visenv.envs.embodied.world.tasks.references import DISTRACTIONS, TEMPLATES, article
from visenv.errors import ConfigurationError

SEEDS = range(12)
CASES = [(dialect, subset) for dialect in DIALECTS for subset in SUBSETS]


@cache
def tasks(dialect: str, subset: str, **options: object) -> list[HouseTask]:
    return [make_task(seed, TaskOptions(dialect, subset, **options)) for seed in SEEDS]  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "subset"), CASES)
def test_plan_reaches_the_goal_and_a_second_checker_agrees(dialect: str, subset: str) -> None:
    for task in tasks(dialect, subset):
        played = DIALECTS[dialect](task.house)
        state = HouseState(task.house)
        outcomes = [played.perform(state, index).ok for index in task.plan]
        assert all(outcomes)
        assert is_reached(state, task.goal)
        names = [played.names[index] for index in task.plan]
        assert reaches(task.house, task.goal, names)
        assert not reaches(task.house, task.goal, names[:-1])


@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "subset"), CASES)
def test_long_plans_are_of_long_horizon_alone(dialect: str, subset: str) -> None:
    for task in tasks(dialect, subset):
        low, high = (15, 30) if subset == "long_horizon" else (1, 12)
        assert low <= len(task.plan) <= high


def test_subsets_and_their_types_of_tasks_have_equal_shares() -> None:
    counts = Counter(draw_type(seed, TaskOptions())[1] for seed in range(600))
    # 600 draws of 6 equal shares: 100 each, standard deviation sqrt(600 * 1/6 * 5/6) = 9.1.
    assert {*counts} == {*SUBSETS}
    assert all(abs(count - 100) < 4 * 9.1 for count in counts.values())
    for dialect, mixes in MIXES.items():
        for subset, kinds in mixes.items():
            drawn = Counter(draw_type(s, TaskOptions(dialect, subset))[2] for s in range(200))
            assert {*drawn} == {*kinds}


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_reference_by_look_fits_exactly_one_object(dialect: str) -> None:
    for task in tasks(dialect, "visual_appearance"):
        (target,) = task.targets
        assert len(task.lookalikes) == 3
        house = task.house
        kind = house.items[target].kind
        assert {*house.of_kind(kind)} == {target, *task.lookalikes}
        words = re.search(rf"the (\w+) {word_of(kind)}", task.instruction)
        assert words is not None
        fitting = [name for name in house.of_kind(kind) if _fits(task, name, words[1])]
        assert fitting == [target]


def _fits(task: HouseTask, name: str, word: str) -> bool:
    look = task.house.items[name].look
    return word in (look.color, look.pattern) or (word == "largest" and look.size == "large")


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_reference_by_place_fits_exactly_one_object(dialect: str) -> None:
    for task in tasks(dialect, "spatial"):
        (target,) = task.targets
        house = task.house
        kind = house.items[target].kind
        where = f"the {word_of(kind)} that is directly to the "
        side = task.instruction.partition(where)[2].partition(" ")[0]
        phrase = task.instruction.partition(f"{where}{side} of ")[2]
        anchors = [word_of(each) for each in ITEMS if phrase.startswith(article(word_of(each)))]
        anchor = max(anchors, key=len)
        fitting = [name for name in house.of_kind(kind) if _neighbor(task, name, side) == anchor]
        assert fitting == [target], task.instruction


def _neighbor(task: HouseTask, name: str, side: str) -> str:
    """Return the type of the object beside another one, in words."""
    house = task.house
    holder, slot = house.places[name]
    beside = (holder, slot + (1 if side == "left" else -1))
    return next((word_of(house.items[each].kind) for each, place in house.places.items()
                 if place == beside), "")  # fmt: skip


def test_use_belongs_to_one_type() -> None:
    uses = [each.use for each in ITEMS.values() if each.use]
    assert len({*uses}) == len(uses)
    for task in tasks("alfred", "common_sense"):
        (kind,) = [
            kind for kind, each in ITEMS.items() if each.use and each.use in task.instruction
        ]
        assert len(task.house.of_kind(kind)) == 1
        assert word_of(kind) not in task.instruction.replace(ITEMS[kind].use, "")


@pytest.mark.slow
def test_training_and_evaluation_share_no_house_appearance_or_phrase() -> None:
    train, held_out = (
        [make_task(seed, TaskOptions(split=split)) for seed in range(30)]
        for split in ("train", "eval")
    )
    looks = [
        {(item.kind, item.look.color, item.look.pattern)
         for task in tasks for item in task.house.items.values()}
        for tasks in (train, held_out)
    ]  # fmt: skip
    assert not looks[0] & looks[1]
    assert not {task.house.rooms for task in train} & {task.house.rooms for task in held_out}
    for phrases in (*TEMPLATES.values(), DISTRACTIONS):
        assert not {*phrases["train"]} & {*phrases["eval"]}


@pytest.mark.slow
def test_numbers_of_names_do_not_tell_the_target() -> None:
    """Check four look-alikes: each number is that of the target in about a quarter of the tasks."""
    options = TaskOptions(subset="visual_appearance", tasks=("pick_and_place",), rooms=3)
    targets = [make_task(seed, options).targets[0] for seed in range(120)]
    counts = Counter(name.partition("_")[2] or "1" for name in targets)
    # 120 draws of 4: 30 each, standard deviation sqrt(120 * 1/4 * 3/4) = 4.7.
    assert all(abs(counts[number] - 30) < 4 * 4.7 for number in ("1", "2", "3", "4"))


def test_house_is_seeded() -> None:
    first = make_task(5, TaskOptions())
    make_task.cache_clear()
    again = make_task(5, TaskOptions())
    assert first is not again
    assert first == again
    assert all(one != other for one, other in pairwise(
        make_task(seed, TaskOptions()).house for seed in SEEDS))  # fmt: skip


def test_look_alikes_can_be_alone_on_their_fixtures_and_of_chosen_colors() -> None:
    colors = ("red", "blue", "green", "yellow")
    for task in tasks(
        "alfred", "visual_appearance", attributes=("color",), colors=colors, apart=True
    ):
        names = (*task.targets, *task.lookalikes)
        assert [task.house.items[name].look.color for name in names] == [*colors]
        assert f"the red {word_of(task.house.items[names[0]].kind)}" in task.instruction
        assert len({task.house.places[name][0] for name in names}) == 4


def test_colors_that_cannot_be_are_refused() -> None:
    for colors in (("red",), ("red", "red", "blue", "green"), ("red", "blue", "green")):
        with pytest.raises(ConfigurationError, match="at least as many as lookalikes"):
            TaskOptions(colors=colors)
    options = TaskOptions(
        subset="visual_appearance", attributes=("color",), colors=("a", "b", "c", "d")
    )
    with pytest.raises(ConfigurationError, match="in one of the colors"):
        make_task(0, options)
