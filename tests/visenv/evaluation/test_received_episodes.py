"""Tests that an episode that somebody sent runs no code, unless the person trusts it."""

from __future__ import annotations

import asyncio
import importlib
import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec

import visenv  # noqa: F401 - registers the ids
from tests.environments import IDS
from visenv.cli import main
from visenv.episodes import read_episodes, write_episodes
from visenv.errors import ConfigurationError, UntrustedNameError, VisenvError
from visenv.evaluation.rescore import Rescorer
from visenv.policies.oracle import OraclePolicy
from visenv.policies.random import RandomPolicy
from visenv.registration import ENVIRONMENTS
from visenv.rollout import EpisodeSpec, play
from visenv.scorers.chat import ChatEndpoint
from visenv.types import Episode, Scored, Turn, UnknownEvent

pytestmark = pytest.mark.attack("files: an episode runs no code")

MODULE = """
import os, pathlib
HERE = pathlib.Path(__file__).parent
HERE.joinpath("imported").touch()

def run(*words, **options):
    HERE.joinpath("called").touch()
    return {"text": '{"score": 1}'}

class Env(dict): pass
"""
MODULE_NAME = "stranger"


class Trap:
    """Tells whether the module that hostile files name was imported."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / f"{MODULE_NAME}.py").write_text(MODULE)

    @property
    def marks(self) -> set[str]:
        """Return the marks of the import and of the call."""
        return {each.name for each in self._folder.iterdir() if not each.suffix} - {"__pycache__"}


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trap:
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, MODULE_NAME, raising=False)
    return Trap(folder)


def played(env: Any, policy: Any = None) -> Episode:
    return asyncio.run(play(env, policy or OraclePolicy(), EpisodeSpec(0)))


@pytest.fixture(scope="module")
def honest() -> Episode:
    return played(gym.make("visenv/ZoomVQA-v0", preset="tiny"))


def with_spec(episode: Episode, **changes: Any) -> Episode:
    return replace(episode, env_spec=json.dumps(json.loads(episode.env_spec) | changes))


def spec_of(env_id: str, **options: Any) -> str:
    """Return the spec that an honest run of `env_id` with these options would have saved."""
    return json.dumps(
        {
            "id": env_id,
            "entry_point": ENVIRONMENTS[env_id].entry_point,
            "kwargs": options,
            "additional_wrappers": [],
        }
    )


CODE = f"{MODULE_NAME}:run"
WRAPPER = {"name": "NoImage", "entry_point": CODE, "kwargs": {}}

ENTRY_POINTS: Mapping[str, Mapping[str, Any]] = {
    "entry point": {"entry_point": CODE},
    "entry point and options": {"entry_point": CODE, "kwargs": {"command": "x"}},
    "another namespace": {"id": "mine/Env-v0", "entry_point": CODE},
    "no namespace": {"id": "Env-v0", "entry_point": CODE},
    "id of a module": {"id": f"{MODULE_NAME}:Env", "entry_point": f"{MODULE_NAME}:Env"},
    "id in a module": {"id": f"{MODULE_NAME}:visenv/ZoomVQA-v0", "entry_point": CODE},
    "environment of Gymnasium": {"id": "CartPole-v1", "entry_point": CODE},
    "wrapper": {"additional_wrappers": [WRAPPER]},
    "two wrappers": {
        "additional_wrappers": [
            {"name": "NoImage", "entry_point": "visenv.evaluation.controls:NoImage", "kwargs": {}},
            WRAPPER,
        ]
    },
}


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_entry_point_of_a_file_is_not_imported(name: str, honest: Episode, trap: Trap) -> None:
    hostile = with_spec(honest, **ENTRY_POINTS[name])
    with pytest.raises(UntrustedNameError, match=r"names the .*'stranger:.*--trust"):
        Rescorer().rescore(hostile)
    assert trap.marks == set()


def test_environment_of_gymnasium_is_refused_with_its_own_entry_point(honest: Episode) -> None:
    hostile = with_spec(
        honest,
        id="CartPole-v1",
        entry_point="gymnasium.envs.classic_control.cartpole:CartPoleEnv",
        kwargs={},
    )
    with pytest.raises(UntrustedNameError, match="CartPoleEnv"):
        Rescorer().rescore(hostile)
    with pytest.raises(ConfigurationError, match="does not extend VisEnv"):
        Rescorer(trust=True).rescore(hostile)


def test_vector_entry_point_of_a_file_is_ignored(honest: Episode, trap: Trap) -> None:
    again = Rescorer().rescore(with_spec(honest, vector_entry_point=CODE))
    assert again.reward == honest.reward
    assert trap.marks == set()


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("data", [f"{CODE}:folder", CODE, f"{CODE}:hub:a/b", [CODE], {"a": CODE}])
def test_data_of_a_file_names_no_code(data: Any, env_id: str, honest: Episode, trap: Trap) -> None:
    hostile = replace(honest, env_id=env_id, env_spec=spec_of(env_id, data=data))
    with pytest.raises(VisenvError):
        Rescorer().rescore(hostile)
    assert trap.marks == set()


OPTIONS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "judge": ("visenv/ArmVQA-v0", {"judge": CODE}),
    "judge of documents": ("visenv/ArmDocVQA-v0", {"judge": f"{CODE}:x"}),
    "ranker": ("visenv/ArmDoc-v0", {"ranker": CODE}),
    "search": ("visenv/ArftSearch-v0", {"search": CODE}),
    "similarity": ("visenv/ArftSearch-v0", {"similarity": CODE}),
    "magnifier": ("visenv/MagsZoom-v0", {"magnifier": CODE}),
    "teacher": ("visenv/ArgosImage-v0", {"teachers": {"detector": CODE, "segmenter": CODE}}),
    "selector": ("visenv/ArgosImage-v0", {"selector": CODE}),
    "extractor": ("visenv/ArgosVideo-v0", {"extractor": CODE}),
    "reward": ("visenv/ZoomVQA-v0", {"reward": CODE}),
    "preset": ("visenv/House-v0", {"preset": CODE}),
    "scenes": ("visenv/ZoomVQA-v0", {"scenes": {CODE: CODE}}),
    "subset": ("visenv/House-v0", {"subset": CODE}),
    "unknown option": ("visenv/MagsZoom-v0", {"function": CODE}),
    "distorted data": ("visenv/ArftCoding-v0", {"data": f"{CODE}:x", "problems": ["dark"]}),
    "data of a benchmark": ("visenv/EBAlfred-v0", {"data": f"{CODE}:x", "simulator": "house"}),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_option_of_a_file_names_no_code(name: str, honest: Episode, trap: Trap) -> None:
    env_id, options = OPTIONS[name]
    hostile = replace(honest, env_id=env_id, env_spec=spec_of(env_id, **options))
    with pytest.raises(VisenvError):
        Rescorer().rescore(hostile)
    assert trap.marks == set()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program"
    path.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    path.chmod(0o755)
    return path


PROGRAMS: Mapping[str, Callable[[str], tuple[str, Mapping[str, Any]]]] = {
    "interpreter of Habitat": lambda path: (
        "visenv/EBHabitat-v0",
        {"simulator": "habitat", "interpreter": path},
    ),
    "interpreter of THOR": lambda path: (
        "visenv/EBAlfred-v0",
        {"simulator": "thor", "player": "house", "interpreter": path},
    ),
    "player of THOR": lambda path: ("visenv/EBAlfred-v0", {"simulator": "thor", "player": path}),
}


@pytest.mark.parametrize(
    "name",
    [
        "interpreter of Habitat",
        # Its player is made, and draws, before the interpreter is needed.
        pytest.param("interpreter of THOR", marks=pytest.mark.component("mujoco", "osmesa")),
        "player of THOR",
    ],
)
def test_program_of_a_file_is_not_started(
    name: str, honest: Episode, program: Path, tmp_path: Path
) -> None:
    env_id, options = PROGRAMS[name](str(program))
    hostile = replace(honest, env_id=env_id, env_spec=spec_of(env_id, **options))
    with pytest.raises(UntrustedNameError, match=re.escape(str(program))):
        Rescorer().rescore(hostile)
    assert not (tmp_path / "started").exists()


def test_person_may_name_the_program_of_a_file(honest: Episode, program: Path) -> None:
    options = {"simulator": "habitat", "interpreter": str(program)}
    hostile = replace(honest, env_spec=spec_of("visenv/EBHabitat-v0", **options))
    with pytest.raises(VisenvError) as caught:
        Rescorer({"interpreter": str(program)}).rescore(hostile)
    assert not isinstance(caught.value, UntrustedNameError)


@pytest.mark.parametrize("type_name", [CODE, "os:system", "builtins:eval", "stranger.Env"])
def test_names_of_types_are_looked_up_and_never_imported(
    type_name: str, honest: Episode, trap: Trap, tmp_path: Path
) -> None:
    write_episodes(tmp_path / "e.jsonl", [honest])
    record = json.loads((tmp_path / "e.jsonl").read_text("utf-8"))
    record["ground_truth"] = {"type": type_name, "fields": {"x": 1}}
    record["turns"][0]["events"].append({"event": type_name, "turn": 0, "x": 1})
    (tmp_path / "e.jsonl").write_text(json.dumps(record) + "\n")
    (episode,) = read_episodes(tmp_path / "e.jsonl")
    assert UnknownEvent(0, type_name, {"x": 1}) in episode.turns[0].events
    assert trap.marks == set()


# ------------------------------------------------------------------------------------------ judges


def kind_judge(request: Any) -> dict[str, str]:
    return {"text": '{"score": 1}'}


@pytest.fixture
def unjudged(monkeypatch: pytest.MonkeyPatch) -> Episode:
    """Return an episode whose answer needs a judge, without the judge's verdict."""
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    judge = f"rules:{__name__}:kind_judge"
    env = gym.make("visenv/MagsZoom-v0", preset="tiny", magnifier="none", judge=judge)
    for seed in range(20):
        episode = asyncio.run(play(env, RandomPolicy(), EpisodeSpec(seed)))
        if any(isinstance(event, Scored) for event in episode.events):
            return replace(episode, turns=tuple(map(without_verdicts, episode.turns)))
    raise AssertionError("expected an answer that the judge scores among 20 episodes")


def without_verdicts(turn: Turn) -> Turn:
    events = [event for event in turn.events if not isinstance(event, Scored)]
    return replace(turn, events=tuple(events))


def judged_by(episode: Episode, judge: str) -> Episode:
    spec = json.loads(episode.env_spec)
    return with_spec(episode, kwargs=spec["kwargs"] | {"judge": judge})


def test_function_that_a_file_names_as_judge_is_not_called(unjudged: Episode, trap: Trap) -> None:
    hostile = judged_by(unjudged, f"rules:{CODE}")
    with pytest.raises(UntrustedNameError, match=f"names the scorer 'rules:{CODE}'"):
        Rescorer(ask_missing=True).rescore(hostile)
    assert trap.marks == set()
    Rescorer({"judge": f"rules:{CODE}"}, ask_missing=True).rescore(hostile)
    assert trap.marks == {"imported", "called"}


def test_server_and_files_that_a_file_names_get_nothing(
    unjudged: Episode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    asked: list[str] = []
    monkeypatch.setattr(ChatEndpoint, "__init__", lambda self, *given: asked.append(str(given)))
    judges = [
        "openai:m?base_url=http://stranger/v1&key_variable=OPENAI_API_KEY",
        "transformers:stranger/model",
        f"transformers:{tmp_path}",
        f"recorded:{tmp_path}/written?inner=rules:{CODE}",
        f"openai:m?cache_dir={tmp_path}/cache",
    ]
    for judge in judges:
        with pytest.raises(UntrustedNameError, match="names the scorer"):
            Rescorer(ask_missing=True).rescore(judged_by(unjudged, judge))
    assert asked == []
    assert [*tmp_path.iterdir()] == []


# ------------------------------------------------------------------------------------------- trust


OWN = """
from visenv.testing import toy

def make(**options):
    return toy.make(**options)
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return a person's module, whose environment is not registered."""
    (tmp_path / "own_env.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "own_env", raising=False)
    return importlib.import_module("own_env")


@pytest.fixture
def own_run(own: ModuleType, tmp_path: Path) -> Path:
    """Return the file of an episode of the person's environment."""
    episode = played(gym.make(EnvSpec("own_env:make", entry_point="own_env:make")))
    assert episode.reward == 1.0
    write_episodes(tmp_path / "own" / "episodes.jsonl", [episode])
    return tmp_path / "own" / "episodes.jsonl"


def test_own_environment_is_rescored_with_the_flag_for_one_call(
    own_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rescore", str(own_run)]) == 1
    said = capsys.readouterr().err
    assert "names the environment 'own_env:make'" in said
    assert "--trust" in said
    assert main(["rescore", str(own_run), "--trust"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["trusted: own_env:make", "equal: 1"]
    assert main(["rescore", str(own_run)]) == 1


def test_own_environment_is_rescored_if_python_passes_it(own: ModuleType, own_run: Path) -> None:
    (episode,) = read_episodes(own_run)
    rescorer = Rescorer(trust=[own.make])
    assert rescorer.rescore(episode).reward == episode.reward
    assert [*rescorer.trusted] == ["own_env:make"]
    with pytest.raises(UntrustedNameError, match="names the wrapper"):
        rescorer.rescore(with_spec(episode, additional_wrappers=[WRAPPER]))
    with pytest.raises(UntrustedNameError, match="names the environment"):
        Rescorer(trust=[own]).rescore(episode)


def test_environment_that_the_program_registered_needs_no_trust(
    own_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (episode,) = read_episodes(own_run)
    registered = with_spec(episode, id="own/Toy-v0")
    monkeypatch.setitem(gym.registry, "own/Toy-v0", EnvSpec("own/Toy-v0", "own_env:make"))
    assert Rescorer().rescore(registered).reward == episode.reward


def test_data_set_that_the_person_names_is_opened(honest: Episode, trap: Trap) -> None:
    with pytest.raises(ConfigurationError, match="cannot be opened"):
        Rescorer({"data": f"{CODE}:folder"}).rescore(honest)
    assert trap.marks == {"imported", "called"}


@pytest.mark.parametrize("data", [f"vstar:{MODULE_NAME}", f"{MODULE_NAME}:run"])
def test_folder_that_the_person_names_is_no_entry_point(
    data: str, honest: Episode, trap: Trap
) -> None:
    for entry_point in (data, CODE):
        with pytest.raises(UntrustedNameError):
            Rescorer({"data": data}).rescore(with_spec(honest, entry_point=entry_point))
    assert trap.marks == set()


def test_folder_of_a_received_run_is_not_searched_for_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    for words in (["view", "."], ["rescore", "episodes.jsonl"], ["list"]):
        main(words)
        assert "" not in sys.path
    main(["rescore", "episodes.jsonl", "--trust"])
    assert "" in sys.path
