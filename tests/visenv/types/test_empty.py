"""Tests `EMPTY`, a default that cannot be changed."""

from __future__ import annotations

import copy
import pickle

import pytest

from visenv.testing import toy
from visenv.types import StepResult, ToolCalled
from visenv.types.empty import EMPTY


def test_empty_is_one_value_in_every_process() -> None:
    assert pickle.loads(pickle.dumps(EMPTY)) is EMPTY
    assert copy.deepcopy(EMPTY) is EMPTY


def test_empty_equals_an_empty_dict_and_has_no_items() -> None:
    assert EMPTY == {}
    assert {} == EMPTY  # noqa: SIM300 - the other way round
    assert EMPTY != {"a": 1}
    assert (dict(EMPTY), repr(EMPTY)) == ({}, "{}")
    with pytest.raises(KeyError):
        EMPTY["a"]
    with pytest.raises(TypeError):
        EMPTY["a"] = 1  # type: ignore[index]


def test_defaults_of_results_and_events_cannot_be_changed_for_others() -> None:
    for default in (StepResult().terms, StepResult().metrics, ToolCalled(0, "a", {}, True).detail):
        assert default is EMPTY


def test_steps_share_no_mapping_that_can_change() -> None:
    env = toy.make()
    env.reset(seed=0)
    first, second = (
        env.step("<tool>\nname: add\namount: 3\n</tool>")[-1]["step"] for _ in range(2)
    )
    for name in ("terms", "term_notes", "metrics", "late_events"):
        one, other = getattr(first, name), getattr(second, name)
        assert one is not other or one is EMPTY
