"""Tests that EBHabitat over habitat-lab equals House byte for byte, and survives bad children."""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from visenv.envs.embodied import EBHabitat
from visenv.envs.embodied.simulators.habitat.player import HabitatRunner, write_goal
from visenv.envs.embodied.world.goals import Clause, Fact, Goal
from visenv.envs.embodied.world.tasks import SUBSETS
from visenv.errors import ConfigurationError
from visenv.grammar.plan import TEXT_KEYS
from visenv.simulators.host import ChildHost
from visenv.testing.contract import CHECKS
from visenv.testing.record import MakeEnv, facts, turns_of
from visenv.testing.survival import TEXTS

pytestmark = [
    pytest.mark.component("habitat-lab", "mujoco", "osmesa"),
    pytest.mark.timeout(600),
]

SMALL: dict[str, Any] = {"side": 96, "smoothing": "none"}
ID = "visenv/EBHabitat-v0"
Envs = tuple[Any, Any]


def make_both(**options: Any) -> Envs:
    """Make one environment over habitat-lab and one over House."""
    return gym.make(ID, simulator="habitat", **options), gym.make(ID, **options)


@pytest.fixture(scope="module")
def both() -> Iterator[Envs]:
    envs = make_both(skills="embodiedbench", **SMALL)
    yield envs
    envs[0].close()


def habitat_of(env: Any) -> EBHabitat:
    base = env.unwrapped
    assert isinstance(base, EBHabitat)
    return base


def host_of(env: Any) -> ChildHost:
    runner = habitat_of(env).act.runner
    assert isinstance(runner, HabitatRunner)
    host = runner.session.host
    assert isinstance(host, ChildHost)
    return host


def plan(ids: Sequence[int], names: Sequence[str]) -> str:
    entries = [{"action_id": each, "action_name": names[each]} for each in ids]
    return json.dumps(dict.fromkeys(TEXT_KEYS, "a") | {"executable_plan": entries})


def agree(envs: Envs, seed: int, turns: Callable[[Any], Iterator[str]], subset: str = "") -> str:
    """Play the same turns in both environments; return the last prompt.

    Observations (prompts with feedback, and frames), rewards, endings, events and metrics must be
    equal to the last bit.
    """
    first, second = envs
    seen = first.reset(seed=seed), second.reset(seed=seed)
    assert {each[1].pop("simulator") for each in seen} == {"habitat:house", "house"}
    assert seen[0][1].pop("placeholders") == "magnum, corrade, habitat_sim"
    assert facts(seen[0]) == facts(seen[1])
    if subset:
        assert habitat_of(second).sample.kind == subset
    said = ""
    for text in turns(second):
        results = first.step(text), second.step(text)
        assert [each[4].pop("simulator") for each in results] == ["habitat:house", "house"]
        assert results[0][4].pop("placeholders") == "magnum, corrade, habitat_sim"
        assert facts(results[0]) == facts(results[1])
        said = results[1][0]["text"] or said
        if results[1][2] or results[1][3]:
            break
    return said


def wandering(seed: int, share: float) -> Callable[[Any], Iterator[str]]:
    """Return turns of one to four skills: random, or with probability `share` the planner's."""

    def turns(env: Any) -> Iterator[str]:
        rng = np.random.default_rng(seed)
        base = habitat_of(env)
        while True:
            names = base.simulation.dialect.names
            planned = [each.arguments["action_id"] for each in base.oracle_turn().calls]
            length = int(rng.integers(1, 5))
            ids = planned[:length] if rng.random() < share else []
            yield plan(ids or rng.integers(len(names), size=length).tolist(), names)

    return turns


@pytest.mark.parametrize("subset", SUBSETS)
def test_oracle_succeeds_alike_with_habitat_lab_and_with_house(subset: str) -> None:
    envs = make_both(skills="embodiedbench", subset=subset, **SMALL)
    turns = turns_of(envs[1], "oracle", 3)
    agree(envs, 3, lambda env: iter(turns), subset)
    assert habitat_of(envs[0]).metrics()["success"] == 1.0
    envs[0].close()


REASONS = ("No such object", "holds nothing that", "not near it; navigate", "is open already",
           "is closed already", "holds something; place", "not near this receptacle",
           "receptacle is closed; open", "no free place")  # fmt: skip
"""Parts of the sentences for the reasons why a skill is invalid."""


def every_reason(env: Any) -> Iterator[str]:
    """Yield turns with one invalid skill each, one for every reason."""
    simulation = habitat_of(env).simulation
    dialect, house = simulation.dialect, simulation.house
    chair, shut = "ArmChair", "Cabinet_3"

    def skills(*rows: tuple[str, str]) -> Iterator[str]:
        for verb, name in rows:
            yield plan([dialect.id_by_object(verb, name)], dialect.names)

    def listed(name: str) -> bool:
        kind, fixture = house.items[name].kind, house.places[name][0]
        is_known = ("pick", kind) in dialect._ids and ("go_to", fixture) in dialect._ids
        return is_known and fixture != chair and not simulation.state.is_shut_in(name)

    yield from skills(("pick", "clamp"), ("put", chair), ("open_up", shut), ("go_to", shut),
                      ("open_up", shut), ("open_up", shut), ("close_up", shut),
                      ("close_up", shut))  # fmt: skip
    items = [name for name in house.items if listed(name)]
    places = {name: house.places[name][0] for name in items}
    first, second = next((one, two) for one in items for two in items
                         if one != two and places[one] == places[two])  # fmt: skip
    yield from skills(("go_to", places[first]), ("pick", house.items[first].kind),
                      ("pick", house.items[second].kind), ("put", chair), ("go_to", "Fridge"),
                      ("put", "Fridge"))  # fmt: skip
    yield from skills(("go_to", chair), ("put", chair))
    for name in [each for each in items if each != first][:2]:
        yield from skills(("go_to", places[name]), ("pick", house.items[name].kind),
                          ("go_to", chair), ("put", chair))  # fmt: skip


def test_skills_are_invalid_for_the_same_reasons_in_both_simulators() -> None:
    limits = {"steps": 60, "invalid_actions": 40}
    envs = make_both(skills="embodiedbench", **SMALL, **limits)
    said = agree(envs, 5, every_reason)
    assert [each for each in REASONS if each not in said] == []
    envs[0].close()


def test_random_episodes_agree(both: Envs) -> None:
    for seed in range(10):
        agree(both, seed, wandering(seed, 0.5))


@pytest.mark.soak
def test_hostile_turns_agree(both: Envs) -> None:
    entries: tuple[list[Any], ...] = (
        [-1],
        [10**9],
        ["3"],
        [True],
        [3.0],
        [float("nan")],
        [],
        [0, 10**9],
        [0, True],
    )
    odd = [
        json.dumps(
            dict.fromkeys(TEXT_KEYS, "a")
            | {"executable_plan": [{"action_id": each, "action_name": "?"} for each in ids]}
        )
        for ids in entries
    ]
    for number, text in enumerate(chain(odd, TEXTS.values())):
        agree(both, number % 3, lambda env, text=text: iter([text]))  # type: ignore[misc]


@pytest.mark.soak
def test_list_of_the_house_agrees_too() -> None:
    envs = make_both(skills="house", **SMALL)
    for seed in range(6):
        agree(envs, seed, wandering(seed, 0.6))
    envs[0].close()


@pytest.mark.soak
def test_frame_of_500_pixels_is_equal_to_that_of_house() -> None:
    envs = make_both(skills="embodiedbench")
    agree(envs, 0, wandering(0, 1.0))
    assert envs[0].reset(seed=1)[0]["images"][0].shape == (500, 500, 3)
    envs[0].close()


def test_skills_are_the_70_of_eb_habitat_in_their_order(both: Envs) -> None:
    both[0].reset(seed=0)
    names = habitat_of(both[0]).simulation.dialect.names
    assert len(names) == 70
    assert all(name.startswith("navigate to the ") for name in names[:16])
    assert all(name.startswith("pick up the ") for name in names[16:49])
    assert all(name.startswith("place at the ") for name in names[49:60])
    # reference/papers.md 5.6: ids in the published examples
    shown = {4: "navigate to the refrigerator push point", 6: "navigate to the table 1",
             7: "navigate to the table 2", 8: "navigate to the TV stand",
             12: "navigate to the sofa", 13: "navigate to the refrigerator",
             16: "pick up the ball", 21: "pick up the scissors", 26: "pick up the spoon",
             33: "pick up the apple", 47: "pick up the toy airplane", 48: "pick up the wrench",
             50: "place at the table 1", 56: "place at the sofa", 57: "place at the refrigerator",
             60: "open the refrigerator", 61: "close the refrigerator",
             62: "open the cabinet 7", 65: "open the cabinet 4", 66: "close the cabinet 7",
             69: "close the cabinet 4"}  # fmt: skip
    assert {index: names[index] for index in shown} == shown


def test_success_equals_the_goal_of_habitat_lab(both: Envs) -> None:
    """Check the same actions with another goal that only habitat-lab gets."""
    env = habitat_of(both[0])
    both[0].reset(seed=0)
    simulation = env.simulation
    ids, names = list(env.truth.plan), simulation.dialect.names
    picks = next(each for each in ids if names[each].startswith("pick up"))
    kind = simulation.dialect.actions[picks].object
    host = host_of(both[0])
    task = json.loads(host.task)
    some = tuple(simulation.house.of_kind(kind))
    held = Clause("exists", (some,), (Fact("held", ("?0",)),))
    never = Clause("forall", (some, ("Sofa",)), (Fact("in", ("?0", "?1")),))
    for goal, expected in ((Goal((held,)), [False, True]), (Goal((held,), (never,)), [False] * 2)):
        host.reset({**task, "goal": write_goal(goal)})
        found = [host.act({"skill": each}).facts for each in ids[: ids.index(picks) + 1]]
        assert [each["success"] for each in found[-2:]] == expected
        assert found[-1]["met"] == [True]
        assert found[-1]["holds"]


def test_copy_in_mid_episode_goes_on_to_the_bit(both: Envs) -> None:
    env = both[0]
    env.reset(seed=4)
    base = habitat_of(env)
    names, ids = base.simulation.dialect.names, base.truth.plan
    env.step(plan(ids[:2], names))
    copied = pickle.loads(pickle.dumps(env))
    for rest in ([17], ids[2:]):
        assert facts(env.step(plan(rest, names))) == facts(copied.step(plan(rest, names)))
    assert habitat_of(copied).metrics()["success"] == 1.0
    copied.close()


def test_killed_child_costs_one_episode(both: Envs) -> None:
    env = both[0]
    env.reset(seed=0)
    os.kill(host_of(env).pid, signal.SIGKILL)
    names = habitat_of(env).simulation.dialect.names
    _, reward, terminated, truncated, info = env.step(plan([0], names))
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert "ended with status -9" in info["aborted"]
    agree(both, 1, wandering(1, 1.0))


def test_placeholders_are_in_the_child_alone(both: Envs) -> None:
    both[0].reset(seed=0)
    assert host_of(both[0]).facts["placeholders"] == ["magnum", "corrade", "habitat_sim"]
    assert {"habitat", "magnum", "corrade", "habitat_sim"}.isdisjoint(sys.modules)
    assert all(type(finder).__name__ != "_Finder" for finder in sys.meta_path)


def test_blind_policy_needs_no_opengl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "crayons")
    env = gym.make(ID, simulator="habitat", blind=True, **SMALL)
    assert np.all(env.reset(seed=0)[0]["images"][0] == 128)
    env.close()
    env = gym.make(ID, simulator="habitat", **SMALL)
    with pytest.raises(ConfigurationError, match="crayons"):
        env.reset(seed=0)


def test_interpreter_without_habitat_lab_raises_an_error_with_the_command() -> None:
    env = gym.make(ID, simulator="habitat", interpreter=sys.executable, **SMALL)
    with pytest.raises(ConfigurationError, match=r"lacks the package 'habitat-lab'.*make simul"):
        env.reset(seed=0)


@pytest.fixture
def contract_env() -> Iterator[MakeEnv]:
    """Make environments and close them at the end, so that the checks share children."""
    made: list[Any] = []

    def make() -> Any:
        made.append(gym.make(ID, simulator="habitat", **SMALL))
        return made[-1]

    yield make
    for env in made:
        env.close()


@pytest.mark.soak  # `make test` compares each step with House, and checks EBAlfred over AI2-THOR
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_keeps_the_contract(check: Callable[[MakeEnv], None], contract_env: MakeEnv) -> None:
    check(partial(contract_env))
