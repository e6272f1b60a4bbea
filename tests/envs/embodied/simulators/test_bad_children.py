"""Tests that a child of EBHabitat that prints, hangs, dies or sends bad data costs one episode."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from visenv.envs.embodied import EBHabitat
from visenv.envs.embodied.simulators.habitat.player import HabitatRunner
from visenv.errors import ServiceError
from visenv.grammar.plan import TEXT_KEYS
from visenv.simulators.settings import HostLimits, SimulatorSpec

FAKE = '''
import os, time
import numpy as np


class Fake:
    """Reports a house in which nothing changes, until it does what the options say."""

    def start(self, options):
        self.options = options
        return {"placeholders": []}

    def reset(self, task):
        names = ("held", "at", "focus", "found", "target")
        sets = ("open", "on", "sliced", "dirty", "hot", "cold", "delivered")
        self.state = {name: "" for name in names} | {name: [] for name in sets}
        self.state["places"] = task["world"]["places"]
        self.steps, self.stages = 0, len(task["goal"]["conditions"])
        return self.facts()

    def facts(self):
        return {"success": False, "met": [False] * self.stages, "code": "", "steps": self.steps,
                "state": self.state}

    def act(self, request):
        self.steps += 1
        do = self.options["do"]
        if do == "print":
            print("noise " * 100_000)
        elif do == "hang":
            time.sleep(60)
        elif do == "die":
            os._exit(3)
        self.state |= self.options.get("state", {})
        return self.facts() | self.options.get("facts", {})

    def frames(self, request):
        side = self.options["side"] if self.steps else 96
        return {self.options["camera"] if self.steps else "head_rgb":
                np.zeros((side, side, 3), np.uint8)}
'''
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "hangs": ({"do": "hang"}, "no reply within"),
    "dies": ({"do": "die"}, "ended with status 3"),
    "success is a text": ({"facts": {"success": "yes"}}, "cannot be used"),
    "too many stages": ({"facts": {"met": [True] * 50}}, "cannot be used"),
    "stages are numbers": ({"facts": {"met": [1]}}, "cannot be used"),
    "steps are none": ({"facts": {"steps": None}}, "cannot be used"),
    "an unknown reason": ({"facts": {"code": "cosmic_rays"}}, "cannot be used"),
    "no state": ({"facts": {"state": {}}}, "cannot be used"),
    "a place is no row": ({"facts": {"state": {"places": [1]}}}, "cannot be used"),
    "held is unknown": ({"state": {"held": "Unicorn"}}, "cannot be used"),
    "another size": ({"side": 64}, "cannot be used"),
    "another camera": ({"camera": "rear"}, "cannot be used"),
}


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    package = tmp_path / "fake_habitat"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "fake.py").write_text(FAKE)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    return "fake_habitat.fake:Fake"


def make(target: str, **options: Any) -> EBHabitat:
    env = gym.make("visenv/EBHabitat-v0", simulator="habitat", side=96, smoothing="none").unwrapped
    assert isinstance(env, EBHabitat)
    given = {"do": "", "side": 96, "camera": "head_rgb", **options}
    limits = HostLimits(call_s=10)
    spec = SimulatorSpec.of(target, given, interpreter=sys.executable, limits=limits)
    env.act.runner = HabitatRunner(spec, 96)
    return env


def plan(env: EBHabitat) -> str:
    entry = {"action_id": 0, "action_name": env.simulation.dialect.names[0]}
    return json.dumps(dict.fromkeys(TEXT_KEYS, "a") | {"executable_plan": [entry]})


def test_child_that_prints_is_heard(fake: str) -> None:
    env = make(fake, do="print")
    env.reset(seed=0)
    assert env.step(plan(env))[4]["aborted"] == ""
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_child_process_that_fails_costs_one_episode(case: str, fake: str) -> None:
    options, reason = CASES[case]
    env = make(fake, **options)
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(plan(env))
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert reason in info["aborted"]
    env.reset(seed=1)
    assert env.simulation.steps == 0
    env.close()


@pytest.mark.slow
def test_child_that_fails_at_a_reset_raises(fake: str, tmp_path: Path) -> None:
    file = tmp_path / "fake_habitat/fake.py"
    file.write_text(file.read_text().replace("return self.facts()\n", "return {}\n", 1))
    env = make(fake)
    with pytest.raises(ServiceError, match="cannot be used"):
        env.reset(seed=0)
