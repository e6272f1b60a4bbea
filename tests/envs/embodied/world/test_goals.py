"""Tests goals with EXISTS and FORALL by hand, for ALFRED's seven task types."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from benchmarks.house_checker import Replay
from tests.envs.embodied.houses import kitchen
from visenv.envs.embodied.world.goals import (
    Clause,
    Fact,
    Goal,
    LookalikeSweep,
    Progress,
    is_met,
    is_reached,
)
from visenv.envs.embodied.world.planner import plan
from visenv.envs.embodied.world.state import HouseState, ItemPlace

MUGS = ("Mug", "Mug_2")
ON_TABLE = Fact("in", ("?0", "SideTable"))


def state_with(**places: str) -> HouseState:
    state = HouseState(kitchen())
    for slot, (name, holder) in enumerate(places.items()):
        state.places[name] = ItemPlace(holder, slot)
    return state


def test_exists_needs_one_and_forall_needs_all() -> None:
    some = Clause("exists", (MUGS,), (ON_TABLE,))
    every = Clause("forall", (MUGS,), (ON_TABLE,))
    for places, expected in (
        ({}, (False, False)),
        ({"Mug": "SideTable"}, (True, False)),
        ({"Mug": "SideTable", "Mug_2": "SideTable"}, (True, True)),
    ):
        state = state_with(**places)
        assert (is_met(state, some), is_met(state, every)) == expected


def test_count_of_two_needs_two_different_objects() -> None:
    pair = Clause("exists", (MUGS, ("SideTable", "Sofa")), (Fact("in", ("?0", "?1")),), 2)
    assert is_met(state_with(), pair)  # both are on the sofa
    assert not is_met(state_with(Mug="Fridge"), pair)


def test_literals_must_hold_for_the_same_object() -> None:
    hot_and_there = Clause("exists", (MUGS,), (ON_TABLE, Fact("hot", ("?0",))))
    state = state_with(Mug="SideTable")
    state.hot = {"Mug_2"}
    assert not is_met(state, hot_and_there)
    state.hot = {"Mug"}
    assert is_met(state, hot_and_there)


def test_goal_in_is_direct_and_within_is_not() -> None:
    state = state_with(Apple="Bowl")
    assert not is_met(state, Clause("exists", (("Apple",),), (Fact("in", ("?0", "SideTable")),)))
    assert is_met(state, Clause("exists", (("Apple",),), (Fact("within", ("?0", "SideTable")),)))


def test_guard_stays_broken_when_the_wrong_object_is_put_back() -> None:
    goal = Goal(
        (Clause("exists", (("Mug",),), (ON_TABLE,)),),
        (Clause("forall", (("Mug_2",),), (Fact("never_in", ("?0", "SideTable")),)),),
    )
    right, wrong = HouseState(kitchen()), HouseState(kitchen())
    for state, item in ((wrong, "Mug_2"), (wrong, "Mug"), (right, "Mug")):
        state.go_to(item)
        state.pick(item)
        state.go_to("SideTable")
        state.put("SideTable")
        if item == "Mug_2":  # and back to the sofa
            state.pick(item)
            state.go_to("Sofa")
            state.put("Sofa")
    assert all(is_met(wrong, clause) for clause in goal.conditions)
    assert not is_reached(wrong, goal)
    assert is_reached(right, goal)


def test_progress_counts_what_is_met_now_or_what_was_ever_met() -> None:
    goal = Goal(
        (Clause("exists", (("Mug",),), (ON_TABLE,)),
         Clause("exists", (("Fridge",),), (Fact("open", ("?0",)),)))
    )  # fmt: skip
    now, ever = Progress(goal, latched=False), Progress(goal, latched=True)
    state = state_with()
    shares = []
    for change in ("open", "close", "table"):
        if change == "table":
            state.places["Mug"] = ItemPlace("SideTable", 1)
        else:
            state.open = {"Fridge"} if change == "open" else set()
        new = now.update(state), ever.update(state)
        shares.append((new[0], now.share, ever.share))
    assert shares == [([1], 0.5, 0.5), ([], 0.0, 0.5), ([0], 0.5, 1.0)]


PLANS = {
    "pick_and_place": (
        Clause("exists", (("Apple",),), (ON_TABLE,)),
        ["go_to Apple", "pick Apple", "go_to SideTable", "put SideTable"],
    ),
    "look_in_light": (
        Clause("exists", (("Apple",), ("DeskLamp",)),
               (Fact("held", ("?0",)), Fact("on", ("?1",)))),
        ["go_to Apple", "pick Apple", "go_to DeskLamp", "turn_on DeskLamp"],
    ),
    "clean": (
        Clause("exists", (("Mug",),), (Fact("clean", ("?0",)), ON_TABLE)),
        ["go_to Mug", "pick Mug", "go_to Sink", "put Sink", "turn_on Faucet", "turn_off Faucet",
         "pick Mug", "go_to SideTable", "put SideTable"],
    ),
    "heat": (
        Clause("exists", (("Mug",),), (Fact("hot", ("?0",)), ON_TABLE)),
        ["go_to Mug", "pick Mug", "go_to Microwave", "open_up Microwave", "put Microwave",
         "close_up Microwave", "turn_on Microwave", "turn_off Microwave", "open_up Microwave",
         "pick Mug", "go_to SideTable", "put SideTable"],
    ),
    "cool": (
        Clause("exists", (("Mug",),), (Fact("cold", ("?0",)), ON_TABLE)),
        ["go_to Mug", "pick Mug", "go_to Fridge", "open_up Fridge", "put Fridge",
         "close_up Fridge", "open_up Fridge", "pick Mug", "go_to SideTable", "put SideTable"],
    ),
    "stack": (
        Clause("exists", (("Apple",), ("Sofa",)),
               (Fact("in", ("?0", "Bowl")), Fact("in", ("Bowl", "?1")))),
        ["go_to Apple", "pick Apple", "go_to Bowl", "put Bowl", "pick Bowl", "go_to Sofa",
         "put Sofa"],
    ),
    "pick_two": (
        Clause("exists", (MUGS,), (Fact("in", ("?0", "Sofa")), Fact("clean", ("?0",))), 2),
        ["go_to Mug", "pick Mug", "go_to Sink", "put Sink", "turn_on Faucet", "turn_off Faucet",
         "pick Mug", "go_to Sofa", "put Sofa"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANS)
def test_plan_of_each_task_type_is_the_one_worked_by_hand(name: str) -> None:
    clause, expected = PLANS[name]
    operations = plan(HouseState(kitchen()), Goal((clause,)))
    assert [f"{verb} {what}" for verb, what in operations] == expected


def test_checker_plays_names_of_actions_by_its_own_rules() -> None:
    replay = Replay(kitchen())
    for action in ("find a Mug_2", "pick up the Mug", "find a SideTable",
                   "put down the object in hand"):  # fmt: skip
        replay.play(action)
    assert replay.inside["Mug_2"] == "SideTable"
    assert ("Mug_2", "SideTable") in replay.history
    assert replay.satisfies(Goal((Clause("exists", (MUGS,), (ON_TABLE,)),)))


def test_goal_of_another_form_is_refused() -> None:
    with pytest.raises(ValidationError):
        Clause("some", (MUGS,), (ON_TABLE,))  # type: ignore[arg-type]


WASHED = Goal(
    (
        Clause("exists", (("Mug",), ("SideTable",)), (Fact("in", ("?0", "?1")),)),
        Clause("exists", (("Mug",),), (Fact("hot", ("?0",)),)),
    ),
    (Clause("forall", (("Mug_2",),), (Fact("never_in", ("?0", "SideTable")),)),),
)


def bring(state: HouseState, item: str, fixture: str) -> None:
    state.go_to(item)
    state.pick(item)
    state.go_to(fixture)
    state.put(fixture)


def test_delivery_of_a_lookalike_is_a_sweep_for_ever() -> None:
    state = HouseState(kitchen())
    sweep = LookalikeSweep(WASHED, state)
    bring(state, "Mug", "Sofa")
    assert not sweep.update(state)
    bring(state, "Mug_2", "SideTable")
    assert sweep.update(state)
    bring(state, "Mug_2", "Sofa")
    assert sweep.update(state)


def test_lookalike_that_was_moved_and_heated_is_a_sweep() -> None:
    state = HouseState(kitchen())
    sweep = LookalikeSweep(WASHED, state)
    state.hot = {"Mug_2"}
    assert not sweep.update(state)  # not the policy's doing: it never moved this object
    bring(state, "Mug_2", "Sofa")
    assert sweep.update(state)
    state = HouseState(kitchen())
    state.hot = {"Mug_2"}  # hot at the beginning
    sweep = LookalikeSweep(WASHED, state)
    bring(state, "Mug_2", "Sofa")
    assert not sweep.update(state)


def test_goal_without_guards_has_no_sweep() -> None:
    state = HouseState(kitchen())
    sweep = LookalikeSweep(Goal(WASHED.conditions), state)
    for item in MUGS:
        bring(state, item, "SideTable")
    state.hot = {*MUGS}
    assert not sweep.update(state)
