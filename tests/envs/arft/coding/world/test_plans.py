"""Tests plans: the paper's numbers, their balance, and names of problems."""

from __future__ import annotations

from collections import Counter

import pytest

from visenv.envs.arft.coding.world import LABELS, PLANS, schedule, split_of
from visenv.envs.arft.coding.world.plans import CROP, named, read_problems, without_crops
from visenv.errors import ConfigurationError, UnknownNameError


def test_training_set_is_100_of_each_of_12() -> None:
    assert sum(PLANS["train"].values()) == 1200
    assert list(PLANS["train"].values()) == [100] * 12


def test_test_set_is_70_simple_and_130_hard() -> None:
    plan = PLANS["test"]
    splits = Counter[str]()
    for problems, count in plan.items():
        splits[split_of(problems)] += count
    assert splits == {"simple": 70, "hard": 130}
    assert all(count == 10 for problems, count in plan.items() if problems != CROP)
    assert plan[CROP] == 90


@pytest.mark.parametrize("name", PLANS)
def test_plan_has_every_label_and_the_paper_s_compositions(name: str) -> None:
    assert {label for problems in PLANS[name] for label in problems} == set(LABELS)
    # Section B.2.2 of the paper names these two compositions.
    assert {("rotation90", "dark"), ("blur", "noise")} <= set(PLANS[name])


@pytest.mark.parametrize("name", PLANS)
def test_schedule_is_the_plan_shuffled_by_the_seed(name: str) -> None:
    plan = PLANS[name]
    first, other = schedule(plan, 0), schedule(plan, 1)
    assert Counter(first) == Counter(other) == Counter(plan)
    assert first == schedule(plan, 0)
    assert first != other


def test_schedule_is_balanced_from_its_beginning() -> None:
    train = schedule(PLANS["train"], 3)
    for start in range(0, 1200, 12):
        assert set(train[start : start + 12]) == set(PLANS["train"])
    # The 200 rows of the test set are 10 rounds of 11 problems and 9 crops.
    for start in range(0, 200, 20):
        some = schedule(PLANS["test"], 3)[start : start + 20]
        assert (some.count(CROP), len(set(some))) == (9, 12)


def test_plan_without_crops_keeps_the_rest() -> None:
    assert set(without_crops(PLANS["test"])) == set(PLANS["test"]) - {CROP}


@pytest.mark.parametrize("text", ["dark", "rotation90+dark", "blur+noise+dark", "crop", "none"])
def test_problems_are_read_as_they_are_named(text: str) -> None:
    assert named(read_problems(text)) == text


@pytest.mark.parametrize("text", ["dark+dark", "none+dark", "crop+noise", "none+none"])
def test_problems_that_exclude_each_other_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="alone"):
        read_problems(text)


@pytest.mark.parametrize("text", ["", "drak", "dark+", "Dark"])
def test_unknown_problem_is_named(text: str) -> None:
    with pytest.raises(UnknownNameError, match="There is no problem"):
        read_problems(text)


@pytest.mark.parametrize(
    ("problems", "split"),
    [
        (("none",), "simple"),
        (("blur",), "simple"),
        (("crop",), "hard"),
        (("rotation90", "dark"), "hard"),
    ],
)
def test_compositions_and_crops_are_hard(problems: tuple[str, ...], split: str) -> None:
    assert split_of(problems) == split
