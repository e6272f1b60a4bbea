"""Tests EB-ALFRED over ai2thor's real Controller, with the player that serves House."""

from __future__ import annotations

import json
import os
import pickle
import shlex
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import visenv  # noqa: F401 - registers the environments
from tests.environments import CHECKS_OF_SIMULATORS
from tests.visenv.simulators.test_hosts import wait_until_gone
from visenv.cli import main
from visenv.envs.embodied.dialects.alfred import AlfredDialect
from visenv.envs.embodied.embodiedbench import EBAlfred
from visenv.envs.embodied.presets import PRESETS, EmbodiedOptions
from visenv.envs.embodied.simulation import HouseSimulation
from visenv.envs.embodied.simulators.thor import players
from visenv.envs.embodied.simulators.thor.actions import global_actions
from visenv.envs.embodied.simulators.thor.players import ThorOptions
from visenv.envs.embodied.simulators.thor.simulation import ThorSimulation, poses
from visenv.envs.embodied.world.house import FurnishedHouse
from visenv.envs.embodied.world.state import FLOOR, HouseState
from visenv.envs.embodied.world.tasks import SUBSETS, TaskOptions, make_task
from visenv.episodes import read_episodes, write_episodes
from visenv.errors import ConfigurationError, DataError, ServiceError
from visenv.grammar.plan import TEXT_KEYS
from visenv.simulators.host import ChildHost
from visenv.simulators.session import SimulatorSession
from visenv.simulators.settings import SimulatorSpec
from visenv.testing.record import played, turns_of

pytestmark = [
    pytest.mark.component("ai2thor", "mujoco", "osmesa"),
    pytest.mark.timeout(600),
]

THOR: dict[str, Any] = {"simulator": "thor", "player": "house", "preset": "house"}
HOSTILE = str(Path(__file__).parent / "hostile_player.py")


def make(**options: Any) -> EBAlfred:
    base = gym.make("visenv/EBAlfred-v0", **options).unwrapped
    assert isinstance(base, EBAlfred)
    return base


@pytest.fixture(scope="module")
def thor() -> Iterator[EBAlfred]:
    env = make(**THOR)
    yield env
    env.close()


@pytest.fixture(scope="module")
def house() -> EBAlfred:
    return make(preset="house")


def host_of(session: SimulatorSession) -> ChildHost:
    assert isinstance(session.host, ChildHost)
    return session.host


def session_of(env: EBAlfred) -> SimulatorSession:
    simulation = env.simulation
    assert isinstance(simulation, ThorSimulation)
    return simulation.session


def leftovers() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob("visenv-thor-*")}


# ---------------------------------------------------------------------- agreement with House


def facts_of(state: HouseState) -> dict[str, Any]:
    """Return the facts of a state; floors are omitted, as ai2thor does not report their fixture."""
    fields = ("places", "held", "open", "on", "sliced", "dirty", "hot", "cold", "at", "focus",
              "found", "target")  # fmt: skip
    delivered = {pair for pair in state.delivered if not pair[1].startswith(FLOOR)}
    return {name: getattr(state, name) for name in fields} | {"delivered": delivered}


def oracle(simulation: HouseSimulation, rng: np.random.Generator) -> str:
    return simulation.dialect.names[simulation.truth.plan[simulation.steps]]


def random(simulation: HouseSimulation, rng: np.random.Generator) -> str:
    return str(rng.choice(simulation.dialect.names))


def hostile(simulation: HouseSimulation, rng: np.random.Generator) -> str:
    """Return an action, mostly on an object nearby: often held, shut, full, running or nested."""
    state, house = simulation.state, simulation.house
    verb = str(rng.choice(VERBS))
    names = [name for name in simulation.dialect.names if name.startswith(verb)]
    near = {house.items[name].kind for name in house.items
            if state.at and state.fixture_of(name) == state.at} | {state.at}  # fmt: skip
    preferred = [name for name in names if any(each and each in name for each in near)]
    return str(rng.choice(preferred if preferred and rng.random() < 0.7 else names))


VERBS = ("find", "find", "pick up", "pick up", "put down", "drop", "open", "close", "turn on",
         "turn off", "slice")  # fmt: skip


def scripted(simulation: HouseSimulation, rng: np.random.Generator) -> str:
    """Return the next action of a script with everything that an appliance refuses."""
    house = simulation.house
    one, other = [name for name, (holder, _) in house.places.items()
                  if not house.fixtures[holder].type.opening][:2]  # fmt: skip
    pick_one, pick_other = (f"pick up the {house.items[name].kind}" for name in (one, other))
    put = "put down the object in hand"
    script = [
        f"find a {one}", pick_one, f"find a {one}", "find a CoffeeMachine", put,
        f"find a {other}", pick_other, "find a CoffeeMachine", put, "find a Microwave", put,
        "turn off the Microwave", "open the Microwave", put, "turn on the Microwave",
        "close the Microwave", "close the Microwave", f"find a {other}", pick_other,
        "turn on the Microwave", "turn on the Microwave", "open the Microwave",
        "turn off the Microwave", "open the Microwave", "open the Microwave", pick_other,
        "find a Fridge", "open the Fridge", put, "close the Fridge",
    ]  # fmt: skip
    return script[simulation.steps]


PLAYS = [
    (oracle, "long_horizon", 3),
    (oracle, "all", 4),
    (random, "all", 5),
    (hostile, "base", 3),
    (hostile, "base", 5),
    (hostile, "base", 12),
    (scripted, "base", 3),
]
CODES = {
    "", "not_here", "not_near", "hand_full", "hand_empty", "no_receptacle", "no_knife", "shut_in",
    "closed", "full", "holding", "is_open", "is_on", "already_on", "already_off", "already_open",
    "already_closed",
}  # fmt: skip


def test_ai2thor_and_house_agree_on_episodes(
    thor: EBAlfred, house: EBAlfred, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes: list[str] = []
    original = AlfredDialect.explain

    def explain(dialect: AlfredDialect, state: HouseState, action: Any, code: str) -> str:
        codes.append(code)
        return original(dialect, state, action, code)

    monkeypatch.setattr(AlfredDialect, "explain", explain)
    seen: set[str] = set()
    frames = 0
    for play, subset, seed in PLAYS:
        rng = np.random.default_rng(seed)
        tasks = make(preset="house", subset=subset)
        tasks.reset(seed=seed)
        for env in (thor, house):
            env.reset(options={"sample": tasks.sample})
        one, other = thor.simulation, house.simulation
        for step in range(30):
            name = play(other, rng)
            codes.clear()
            results = [each.act(each.dialect.names.index(name)) for each in (one, other)]
            assert codes[0] == codes[1], name
            assert results[0][0] == results[1][0]
            for key in ("feedback", "progress", "met", "success", "conditions", "step"):
                assert results[0][1][key] == results[1][1][key], name
            assert facts_of(one.state) == facts_of(other.state), name
            seen.add(codes[0])
            if step % 7 == 0 or one.succeeded:
                assert np.array_equal(one.frame(224, False).pixels, other.frame(224, False).pixels)
                frames += 1
            if one.succeeded:
                break
        assert one.succeeded == (play is oracle)
    assert frames >= 20
    assert seen >= CODES


def test_list_has_the_162_actions_and_those_of_the_scene(thor: EBAlfred, house: EBAlfred) -> None:
    for env in (thor, house):
        env.reset(seed=3)
    names, own = thor.simulation.dialect.names, house.simulation.dialect.names
    assert len(global_actions()) == 162
    assert list(names[:162]) == global_actions()
    assert set(own) <= set(names)
    more = set(names[162:])
    assert all("_" in name or name in own for name in more)
    assert len(names) == len(set(names))


def test_episodes_name_the_player(thor: EBAlfred, tmp_path: Path) -> None:
    episode = played(thor, "oracle", seed=1)
    assert (episode.status, episode.reward) == ("terminated", 1.0)
    write_episodes(tmp_path / "episodes.jsonl", [episode])
    (read,) = read_episodes(tmp_path / "episodes.jsonl")
    assert read.ground_truth.labels["simulator"] == "thor:house"
    assert thor.reset(seed=0)[1]["simulator"] == "thor:house"
    assert thor.step("no plan")[4]["simulator"] == "thor:house"


def test_pickle_in_mid_episode_goes_on_with_the_same_frames(thor: EBAlfred) -> None:
    turns = turns_of(make(**THOR, plan_actions=4), "oracle", 3)
    thor.reset(seed=3)
    thor.step(turns[0])
    copied = pickle.loads(pickle.dumps(thor))
    for turn in turns[1:]:
        one, other = thor.step(turn), copied.step(turn)
        assert one[1:4] == other[1:4]
        for frame, again in zip(one[0]["images"], other[0]["images"], strict=True):
            assert frame.tobytes() == again.tobytes()
    assert one[2]
    copied.close()


@pytest.mark.parametrize("check", CHECKS_OF_SIMULATORS, ids=lambda check: check.__name__)
def test_keeps_the_contract(check: Any) -> None:
    check(lambda: gym.make("visenv/EBAlfred-v0", **{**THOR, "preset": "tiny"}))


# ---------------------------------------------------------------------- scenes


def spec_of(*behavior: str, **limits: Any) -> SimulatorSpec:
    """Return the simulator with the player of House, or with one that misbehaves."""
    runner = ThorOptions("house", "fifo", "", limits).runner(PRESETS["tiny"], EmbodiedOptions())
    spec: SimulatorSpec = runner.session.spec  # type: ignore[attr-defined]
    if not behavior:
        return spec
    options = json.loads(spec.options)
    options["command"] = [sys.executable, HOSTILE, *behavior]
    return replace(spec, options=json.dumps(options, sort_keys=True))


def task_of(env: EBAlfred, **scene: Any) -> dict[str, Any]:
    """Return the task of the episode, with another scene."""
    task: dict[str, Any] = session_of(env)._task
    return {**task, "scene": {**task["scene"], **scene}}


def test_scene_is_restored_with_poses_switches_and_dirt(thor: EBAlfred) -> None:
    thor.reset(seed=2)
    built: FurnishedHouse = thor.simulation.house
    first = poses(built)
    one, other = first[0], first[1]
    swapped = [{**one, "position": other["position"]}, {**other, "position": one["position"]},
               *first[2:]]  # fmt: skip
    session = SimulatorSession(spec_of())
    task = task_of(
        thor,
        object_poses=swapped,
        object_toggles=[{"objectType": "Faucet", "isOn": True}],
        dirty_and_empty=True,
    )
    found = session.reset(task).facts["state"]["objects"]
    plain = session.reset(task_of(thor)).facts["state"]["objects"]
    session.end()
    a, b = one["objectName"], other["objectName"]
    assert (found[a]["holder"], found[b]["holder"]) == (plain[b]["holder"], plain[a]["holder"])
    assert found[a]["at"][0] == pytest.approx(plain[b]["at"][0])
    faucets = [each for each in found.values() if each["kind"] == "Faucet"]
    assert [each["on"] for each in faucets] == [True] * len(faucets)
    assert not any(each["on"] for each in plain.values())


def test_equal_tasks_give_equal_scenes_whatever_came_before(thor: EBAlfred) -> None:
    thor.reset(seed=2)
    session = SimulatorSession(spec_of())
    first = session.reset(task_of(thor), {})
    session.act({"action_id": 40})
    again = session.reset(task_of(thor), {})
    session.end()
    assert first.facts == again.facts
    assert np.array_equal(first.frames["agent"], again.frames["agent"])


# ---------------------------------------------------------------------- failures


def look(env: EBAlfred) -> str:
    """Return a turn with the first action of the list."""
    plan = [{"action_id": 0, "action_name": env.simulation.dialect.names[0]}]
    return json.dumps(dict.fromkeys(TEXT_KEYS, "a") | {"executable_plan": plan})


@pytest.mark.parametrize("victim", ["child", "player"])
def test_kill_costs_one_episode_and_leaves_nothing(thor: EBAlfred, victim: str) -> None:
    before = leftovers()
    thor.reset(seed=0)
    turn, host = look(thor), host_of(session_of(thor))
    player = int(host.facts["player"])
    os.kill(host.pid if victim == "child" else player, signal.SIGKILL)
    info = thor.step(turn)[4]
    said = {"child": "its process ended", "player": "the player of AI2-THOR ended"}[victim]
    assert f"{said} with status -9" in info["aborted"]
    wait_until_gone(host.pid)
    wait_until_gone(player)
    assert leftovers() == before
    thor.reset(seed=0)
    assert thor.step(turn)[4]["aborted"] == ""


def take(session: SimulatorSession, actions: int) -> None:
    for action_id in range(actions):
        session.act({"action_id": action_id}, frames={})


@pytest.mark.parametrize(
    ("behavior", "reason"),
    [
        ("hang", "TimeoutError|no reply within 10 s"),  # the limit of ai2thor, or of its host
        ("die", r"last words.*the player of AI2-THOR ended with status -9"),
        ("wrong number", "Error encountered when running action"),
        ("no objects", "KeyError"),
        ("small frame", "Error encountered when running action"),
    ],
)
def test_player_that_fails_ends_the_episode(thor: EBAlfred, behavior: str, reason: str) -> None:
    thor.reset(seed=0)
    session = SimulatorSession(spec_of(behavior, "12", call_s=10.0))
    session.reset(task_of(thor))
    host = host_of(session)
    player = int(host.facts["player"])
    with pytest.raises(ServiceError, match=reason):
        take(session, 12)
    wait_until_gone(host.pid)
    wait_until_gone(player)


def test_player_that_prints_changes_nothing(thor: EBAlfred) -> None:
    thor.reset(seed=0)
    session = SimulatorSession(spec_of("print", "0"))
    printed = session.reset(task_of(thor)).facts
    session.end()
    silent = SimulatorSession(spec_of())
    assert silent.reset(task_of(thor)).facts == printed
    silent.end()


def test_missing_parts_of_ai2thor_raise_an_error_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=r"lacks the package 'ai2thor'.*make simulators"):
        make(**THOR, interpreter=sys.executable).reset(seed=0)
    monkeypatch.setattr(players, "find_library", lambda backend: None)
    with pytest.raises(ConfigurationError, match=r"cannot draw.*apt-get install"):
        make(**THOR)


# ---------------------------------------------------------------------- published tasks


def published(folder: Path, params: dict[str, Any], kind: str, first: list[Any]) -> str:
    """Write a task of ALFRED in the house that the player serves as FloorPlan1."""
    task = f"{kind}/trial"
    row = {"task": task, "repeat_idx": 0, "instruction": "Do it."}
    (folder / "splits.json").write_text(json.dumps({name: [row] for name in SUBSETS}))
    file = folder / "json_2.1.0" / task / "pp" / "ann_0.json"
    file.parent.mkdir(parents=True)
    scene = {"floor_plan": "FloorPlan1", "object_poses": first, "object_toggles": [],
             "dirty_and_empty": False}  # fmt: skip
    annotation = {"scene": scene, "pddl_params": params, "task_type": kind}
    file.write_text(json.dumps(annotation))
    return f"eb_alfred:{folder}?subset=base"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a program that replaces the Unity player."""
    program = tmp_path_factory.mktemp("player") / "thor-Linux64"
    words = shlex.join([sys.executable, str(HOSTILE), "floor plan", "0"])
    paths = shlex.quote(os.pathsep.join(filter(None, sys.path)))
    program.write_text(f'#!/bin/sh\nPYTHONPATH={paths} exec {words} "$@"\n')
    program.chmod(0o755)
    return program


@pytest.fixture
def unity(program: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DISPLAY", ":0")
    return program


FLOOR_PLAN = make_task(5, TaskOptions(subset="base")).house


def kind_with(ability: str, apart_from: tuple[str, ...] = ()) -> str:
    """Return a type of objects of the floor plan that has an ability."""
    return next(each.kind for each in FLOOR_PLAN.items.values()
                if getattr(each.type, ability) and each.kind not in apart_from)  # fmt: skip


CLEANED, HELD = kind_with("washed"), kind_with("parts")
VESSEL = kind_with("holds")
LAMP = next(each.kind for each in FLOOR_PLAN.fixtures.values() if each.type.role == "light")
TASKS: list[tuple[str, dict[str, Any], int]] = [
    ("pick_and_place_simple", {"object_target": HELD, "parent_target": "Bed"}, 1),
    ("pick_two_obj_and_place", {"object_target": "", "parent_target": "Bed"}, 2),
    ("look_at_obj_in_light", {"object_target": HELD, "toggle_target": LAMP}, 2),
    ("pick_heat_then_place_in_recep", {"object_target": CLEANED, "parent_target": "Bed"}, 3),
    ("pick_cool_then_place_in_recep", {"object_target": CLEANED, "parent_target": "Bed"}, 3),
    ("pick_clean_then_place_in_recep", {"object_target": CLEANED, "parent_target": "Bed"}, 3),
    (
        "pick_and_place_with_movable_recep",
        {"object_target": HELD, "mrecep_target": VESSEL, "parent_target": "Bed"},
        3,
    ),
]


def params_of(kind: str, params: dict[str, Any]) -> dict[str, Any]:
    kinds = [each.kind for each in FLOOR_PLAN.items.values()]
    if kind == "pick_two_obj_and_place":
        params = {**params, "object_target": next(each for each in kinds if kinds.count(each) > 1)}
    if params.get("mrecep_target") == params["object_target"]:
        other = next(each.kind for each in FLOOR_PLAN.items.values() if not each.type.holds)
        params = {**params, "object_target": other}
    return params


@pytest.mark.parametrize(("kind", "params", "conditions"), TASKS, ids=lambda each: str(each)[:30])
def test_oracle_solves_each_type_of_published_task(
    unity: Path, tmp_path: Path, kind: str, params: dict[str, Any], conditions: int
) -> None:
    data = published(tmp_path, params_of(kind, params), kind, poses(FLOOR_PLAN))
    env = make(
        simulator="thor", player=str(unity), player_server="fifo", data=data, preset="tiny",
        oracle="plan", steps=40, plan_actions=20,
    )  # fmt: skip
    episode = played(env, "oracle", seed=0)
    env.close()
    assert (episode.status, episode.metrics["success"], episode.metrics["progress"]) == (
        "terminated", 1.0, 1.0,
    )  # fmt: skip
    calls = [event for turn in episode.turns for event in turn.events if hasattr(event, "detail")]
    assert calls[0].detail["conditions"] == conditions
    assert calls[0].detail["progress"] < 1.0
    assert episode.ground_truth.labels["simulator"] == "thor:thor-Linux64"
    assert episode.metrics["invalid_actions"] == 0.0


def test_published_tasks_and_players_must_fit(
    unity: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = published(tmp_path, TASKS[0][1], TASKS[0][0], [])
    monkeypatch.delenv("VISENV_THOR_PLAYER", raising=False)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"data": data}, "needs a player"),
        ({"data": data, "player": "house"}, "need the Unity player"),
        ({"data": data, "player": "/nowhere/thor"}, "is not a program"),
        ({"player": str(unity)}, 'need player="house"'),
        ({"data": data, "player": str(unity), "subset": "base"}, "subset=base"),
        ({"data": data, "player": str(unity), "boxes": True}, "boxes"),
        ({"player": "house", "interpreter": "in-process"}, "in a child"),
        ({"player": "house", "host_limits": {"seconds": 1}}, "host_limits"),
        ({"simulator": "house", "player": "house"}, 'options of simulator="thor"'),
    ]
    for options, reason in wrong:
        with pytest.raises(ConfigurationError, match=reason):
            make(**{"simulator": "thor", **options})
    monkeypatch.setenv("VISENV_THOR_PLAYER", str(unity))
    assert make(simulator="thor", data=data).simulator == "thor:thor-Linux64"
    monkeypatch.delenv("DISPLAY")
    with pytest.raises(ConfigurationError, match="DISPLAY is not set"):
        make(simulator="thor", data=data)


def test_annotation_that_does_not_fit_its_scene_is_an_error_of_the_data(
    unity: Path, tmp_path: Path
) -> None:
    params = {"object_target": "Elephant", "parent_target": "Bed"}
    data = published(tmp_path, params, "pick_and_place_simple", [])
    env = make(simulator="thor", player=str(unity), player_server="fifo", data=data)
    with pytest.raises(DataError, match="no object of object_target 'Elephant'"):
        env.reset(seed=0)
    env.close()


@pytest.mark.soak
def test_table_command_plays_published_scenes(unity: Path, tmp_path: Path) -> None:
    kind, params, _ = TASKS[0]
    published(tmp_path, params_of(kind, params), kind, poses(FLOOR_PLAN))
    command = ["suite", "eb-alfred-scenes", "--folder", f"eb_alfred={tmp_path}"]
    for option in (f"player={unity}", "player_server=fifo", "side=96"):
        command += ["--option", option]
    command += ["--policy", "oracle", "--episodes", "1", "--repeats", "1"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    rows = json.loads((tmp_path / "out/suite.json").read_text())["rows"]
    assert [[column["score"][0] for column in row["columns"]] for row in rows] == [[1.0] * 6] * 2
    [episode] = read_episodes(tmp_path / "out/long/episodes.jsonl")
    labels = {"subset": "long_horizon", "simulator": "thor:thor-Linux64"}
    assert episode.ground_truth.labels == labels
