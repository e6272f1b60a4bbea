"""Tests hand-written scenes of AI2-THOR: names, basins, skills, goals, the protocol."""

from __future__ import annotations

import ast
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from visenv.envs.embodied.simulators import thor
from visenv.envs.embodied.simulators.thor.actions import all_actions, parse_action
from visenv.envs.embodied.simulators.thor.alfred_goals import alfred_goal
from visenv.envs.embodied.simulators.thor.fifo import packed
from visenv.envs.embodied.simulators.thor.scene import Scene
from visenv.envs.embodied.simulators.thor.scene_house import scene_house
from visenv.envs.embodied.simulators.thor.skills import Skills
from visenv.envs.embodied.world.goals import is_met, is_reached
from visenv.envs.embodied.world.state import HouseState, ItemPlace
from visenv.errors import DataError

CHILD_MODULES = (
    "simulator",
    "controller",
    "skills",
    "body",
    "scene",
    "tracker",
    "actions",
    "launch",
)


def thing(kind: str, x: float, parents: list[str] | None = None, **more: Any) -> dict[str, Any]:
    identity = more.pop("id", f"{kind}|{x:+06.2f}")
    return {"objectId": identity, "objectType": kind, "position": {"x": x, "y": 1.0, "z": 0.0},
            "visible": True, "parentReceptacles": parents, **more}  # fmt: skip


def metadata(*objects: dict[str, Any], held: str = "") -> dict[str, Any]:
    """Return metadata; each receptacle lists the objects that name it as a parent."""
    for each in objects:
        each["receptacleObjectIds"] = [
            other["objectId"] for other in objects
            if each["objectId"] in (other["parentReceptacles"] or ())
        ]  # fmt: skip
    inventory = [{"objectId": held, "objectType": held.partition("|")[0]}] if held else []
    agent = {"position": {"x": 0.0, "y": 0.9, "z": -1.0}, "rotation": {"y": 0.0},
             "cameraHorizon": 0.0}  # fmt: skip
    return {"objects": list(objects), "inventoryObjects": inventory, "agent": agent,
            "lastActionSuccess": True, "errorMessage": ""}  # fmt: skip


class Recorder:
    """Records ai2thor's actions, and returns the given metadata."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers = list(answers)
        self.actions: list[dict[str, Any]] = []

    def do(self, action: str, **arguments: Any) -> Mapping[str, Any]:
        self.actions.append({"action": action, **arguments})
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def kitchen(**fridge: Any) -> dict[str, Any]:
    sink = "Sink|+01.00"
    return metadata(
        thing("Mug", 1.0, [f"{sink}|SinkBasin"], pickupable=True),
        thing("Mug", 2.0, None, pickupable=True),
        thing("Apple", 3.0, ["Bowl|+03.10", "Fridge|+03.00"], pickupable=True, sliceable=True),
        thing("Bowl", 3.1, ["Fridge|+03.00"], pickupable=True, receptacle=True),
        thing("Sink", 1.0),
        thing("SinkBasin", 1.0, id=f"{sink}|SinkBasin", receptacle=True),
        thing("Faucet", 1.1, toggleable=True, isToggled=False),
        thing("Fridge", 3.0, openable=True, isOpen=False, receptacle=True, **fridge),
    )


def test_objects_are_numbered_by_type_and_basins_belong_to_their_sinks() -> None:
    scene = Scene(kitchen())
    assert scene.names["Mug"] == ["Mug", "Mug_2"]
    assert "SinkBasin" not in scene.names
    mug, apple = scene.id_of("Mug"), scene.id_of("Apple")
    assert scene.name_of(scene.holder_of(mug)) == "Sink"
    assert [scene.name_of(each) for each in scene.holders_of(apple)] == ["Bowl", "Fridge"]
    assert scene.name_of(scene.shut_holder(apple)) == "Fridge"
    assert scene.basin_of(scene.id_of("Sink")) == "Sink|+01.00|SinkBasin"
    assert [scene.name_of(each) for each in scene.all_contents(scene.id_of("Fridge"))] == [
        "Bowl", "Apple",
    ]  # fmt: skip


def test_actions_of_a_scene_name_further_objects() -> None:
    scene = Scene(kitchen())
    names = all_actions(scene.names, scene.receptacles, ["turn on the Faucet", "find a TVStand"])
    assert names[162:] == ["find a Mug_2", "find a TVStand"]
    assert parse_action("open the Cabinet_2")[1:] == ("open_up", "Cabinet_2", False)
    assert parse_action("pick up the Mug")[1:] == ("pick", "Mug", True)
    with pytest.raises(ValueError, match="not an action"):
        parse_action("dance")


def test_actions_of_a_scene_have_the_order_of_embodiedbench() -> None:
    # Receptacles first, sorted as texts; then what opens and closes; then what is picked up.
    cabinets = [f"Cabinet_{number}" if number > 1 else "Cabinet" for number in range(1, 11)]
    names = {
        "Apple": ["Apple", "Apple_2"],
        "Drawer": ["Drawer", "Drawer_2"],
        "Faucet": ["Faucet", "Faucet_2"],
        "Cabinet": cabinets,
        "Mug": ["Mug", "Mug_2"],
        "CounterTop": ["CounterTop", "CounterTop_2"],
    }
    order = ["Cabinet_10", *cabinets[1:9], "CounterTop_2", "Drawer_2", "Mug_2"]
    assert all_actions(names, {"Cabinet", "Drawer", "Mug", "CounterTop"})[162:] == [
        *(f"find a {name}" for name in order),
        *(f"{verb} the {name}" for name in order if name[0] == "D" or name[:3] == "Cab"
          for verb in ("open", "close")),
        "find a Apple_2",
    ]  # fmt: skip


def test_slice_has_the_name_of_what_was_sliced() -> None:
    scene = Scene(kitchen())
    whole = scene.id_of("Apple")
    cut = [thing("AppleSliced", 3.0 + k, id=f"{whole}|AppleSliced_{k}", pickupable=True)
           for k in range(3)]  # fmt: skip
    scene.update(metadata(*cut))
    assert scene.id_of("Apple") == f"{whole}|AppleSliced_0"
    assert scene.name_of(f"{whole}|AppleSliced_2") == "Apple"
    assert scene.kind_of(f"{whole}|AppleSliced_2") == "Apple"


def skills_in(*answers: dict[str, Any]) -> tuple[Skills, Recorder]:
    recorder = Recorder(*answers)
    positions = [(x, 0.9, -1.0) for x in (0.0, 1.0, 2.0, 3.0)]
    return Skills(recorder, Scene(answers[0]), positions), recorder


def test_closing_a_fridge_cools_and_running_water_cleans_what_they_hold() -> None:
    skills, _ = skills_in(kitchen())
    skills.turn("Faucet", True)
    skills.scene.by_id["Fridge|+03.00"]["isOpen"] = True  # type: ignore[index]
    skills.close_up("Fridge")
    name = skills.scene.name_of
    assert {name(each) for each in skills.tracker.clean} == {"Mug"}
    assert {name(each) for each in skills.tracker.cold} == {"Apple", "Bowl"}


def test_finding_goes_to_the_nearest_position_that_sees_the_object() -> None:
    hidden = kitchen()
    hidden["objects"][1]["visible"] = False  # Mug_2 at x = 2
    skills, recorder = skills_in(hidden, kitchen())
    assert skills.go_to("Mug_2").code == ""
    assert [each["x"] for each in recorder.actions] == [2.0, 1.0]
    assert recorder.actions[1]["rotation"] == pytest.approx(45.0)
    assert recorder.actions[1]["horizon"] == pytest.approx(22.13, abs=0.01)  # atan(0.575 / √2)
    assert skills.found == "Mug_2"
    assert skills.target == ""


def test_putting_down_turns_a_little_before_it_gives_up() -> None:
    full = kitchen()
    mug = full["objects"][1]["objectId"]
    full["inventoryObjects"] = [{"objectId": mug, "objectType": "Mug"}]
    skills, recorder = skills_in(full)
    skills.target = "Sink"
    full["lastActionSuccess"] = False
    assert skills.put().code == "full"
    puts = [each for each in recorder.actions if each["action"] == "PutObject"]
    assert puts[0]["receptacleObjectId"] == "Sink|+01.00|SinkBasin"
    assert [each["action"] for each in recorder.actions].count("TeleportFull") == 7
    full["lastActionSuccess"] = True
    recorder.actions.clear()
    assert skills.put().code == ""
    assert [each["action"] for each in recorder.actions] == ["PutObject"]


def test_receptacle_is_forgotten_as_in_embodiedbench() -> None:
    for forgets, target in ((True, ""), (False, "Sink")):
        recorder = Recorder(kitchen())
        skills = Skills(recorder, Scene(kitchen()), [(1.0, 0.9, -1.0)], forgets)
        skills.perform(parse_action("find a Sink"))
        assert skills.target == "Sink"
        skills.perform(parse_action("turn on the Faucet"))
        assert skills.target == target


def test_target_of_embodiedbench_is_what_was_found_last() -> None:
    holding = kitchen()
    mug = holding["objects"][1]["objectId"]
    holding["inventoryObjects"] = [{"objectId": mug, "objectType": "Mug"}]
    recorder = Recorder(holding)
    skills = Skills(recorder, Scene(holding), [(1.0, 0.9, -1.0)], forgets=True)
    skills.perform(parse_action("find a Sink"))
    holding["lastActionSuccess"] = False
    assert skills.perform(parse_action("put down the object in hand")).code == "full"
    assert skills.target == "Sink"  # the next attempt has the same receptacle
    skills.perform(parse_action("open the Fridge"))
    assert skills.target == "Sink"
    holding["lastActionSuccess"] = True
    skills.perform(parse_action("find a Apple"))
    assert skills.target == "Apple"
    recorder.actions.clear()
    assert skills.perform(parse_action("put down the object in hand")).code == "no_receptacle"
    skills.perform(parse_action("turn on the Faucet"))
    skills.perform(parse_action("put down the object in hand"))
    assert recorder.actions[-1]["action"] == "DropHandObject"
    skills.forgets = False
    assert skills.perform(parse_action("put down the object in hand")).code == "no_receptacle"


def test_messages_of_ai2thor_contain_names_instead_of_ids() -> None:
    refused = kitchen()
    skills, _ = skills_in(refused)
    refused |= {"lastActionSuccess": False, "errorMessage": "Mug|+02.00 cannot be used."}
    skills.found = "Mug_2"
    assert skills.pick("Mug") == ("refused", "Mug_2 cannot be used.")


# ---------------------------------------------------------------------- goals


def described(kind: str, holder: str = "", *abilities: str) -> dict[str, Any]:
    return {"kind": kind, "holder": holder, "at": (0.0, 0.0, 0.0), "abilities": abilities,
            "below": "Sink" if kind == "Faucet" else ""}  # fmt: skip


OBJECTS = {
    "Sink": described("Sink", "", "receptacle"),
    "Faucet": described("Faucet", "", "toggleable"),
    "Bed": described("Bed", "", "receptacle"),
    "Bed_2": described("Bed", "", "receptacle"),
    "DeskLamp": described("DeskLamp", "", "toggleable"),
    "Apple": described("Apple", "Sink", "pickupable", "sliceable"),
    "Apple_2": described("Apple", "Sink", "pickupable", "sliceable"),
    "Plate": described("Plate", "Sink", "pickupable", "receptacle"),
}
PARAMS = {"object_target": "Apple", "parent_target": "Bed", "toggle_target": "DeskLamp",
          "mrecep_target": "Plate"}  # fmt: skip


def met(task: str, state: HouseState, **params: Any) -> list[bool]:
    goal = alfred_goal(state.house, task, {**PARAMS, **params})
    found = [is_met(state, clause) for clause in goal.conditions]
    assert all(found) == is_reached(state, goal)
    return found


def fresh() -> HouseState:
    return HouseState(scene_house(OBJECTS))


def test_conditions_of_alfreds_tasks() -> None:
    state = fresh()
    assert met("pick_and_place_simple", state) == [False]
    assert met("pick_clean_then_place_in_recep", state) == [False] * 3
    state.places["Apple"] = ItemPlace("Bed", 0)
    assert met("pick_and_place_simple", state) == [True]
    assert met("pick_clean_then_place_in_recep", state) == [True, False, False]
    state.dirty.discard("Apple_2")
    assert met("pick_clean_then_place_in_recep", state) == [True, True, False]
    state.hot = {"Apple"}
    assert met("pick_heat_then_place_in_recep", state) == [True, True, True]
    assert met("pick_cool_then_place_in_recep", state) == [True, False, False]
    assert met("pick_and_place_simple", state, object_sliced=True) == [False, False]
    state.sliced = {"Apple"}
    assert met("pick_and_place_simple", state, object_sliced=True) == [True, True]


def test_goal_of_two_objects_needs_one_receptacle_for_both() -> None:
    state = fresh()
    state.places |= {"Apple": ItemPlace("Bed", 0), "Apple_2": ItemPlace("Bed_2", 0)}
    assert met("pick_two_obj_and_place", state) == [True, False]
    state.places["Apple_2"] = ItemPlace("Bed", 1)
    assert met("pick_two_obj_and_place", state) == [True, True]


def test_stacking_and_light() -> None:
    state = fresh()
    state.places["Plate"] = ItemPlace("Bed", 0)
    assert met("pick_and_place_with_movable_recep", state) == [False, True, False]
    state.places["Apple"] = ItemPlace("Plate", 0)
    assert met("pick_and_place_with_movable_recep", state) == [True, True, True]
    state.held, state.on = "Apple_2", {"DeskLamp"}
    assert met("look_at_obj_in_light", state) == [True, True]


@pytest.mark.parametrize(
    ("task", "params"),
    [("fly", {}), ("pick_and_place_simple", {"object_target": "Egg"}),
     ("pick_and_place_simple", {"parent_target": None})],
)  # fmt: skip
def test_task_that_does_not_fit_the_scene_is_refused(task: str, params: Any) -> None:
    with pytest.raises(DataError):
        alfred_goal(scene_house(OBJECTS), task, {**PARAMS, **params})


# ---------------------------------------------------------------------- programs


def test_values_are_packed_as_message_pack() -> None:
    assert packed(None) == b"\xc0"
    assert packed([True, False]) == b"\xdd\0\0\0\x02\xc3\xc2"
    assert packed({"a": 1}) == b"\xdf\0\0\0\x01\xdb\0\0\0\x01a\xd3" + struct.pack("!q", 1)
    assert packed(0.5) == b"\xcb" + struct.pack("!d", 0.5)
    with pytest.raises(TypeError):
        packed(object())


@pytest.mark.parametrize("module", CHILD_MODULES)
def test_imports_of_the_child_process_are_valid_in_python_3_9(module: str) -> None:
    text = (Path(next(iter(thor.__path__))) / f"{module}.py").read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 9))
    absolute = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and not node.level)
        for name in (
            [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
        )
    }
    assert absolute - {"numpy", "visenv", "ai2thor"} <= set(sys.stdlib_module_names)
