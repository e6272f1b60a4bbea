"""Tests the run folder: episodes are saved one by one, runs resume, failed starts leave nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from filelock import lock_descriptor
from typing_extensions import override

from tests.programs import run_killed
from visenv.cli import main
from visenv.episodes import read_episodes
from visenv.errors import PolicyError, RunError
from visenv.policy import Policy, Session
from visenv.rollout import run_folder
from visenv.rollout.run_folder import RunFolder
from visenv.types import Episode, Failure, Reply, Sampling, TurnRequest

ROLLOUT = ["rollout", "ZoomVQA-v0", "--option", "preset=tiny", "--policy", "random"]
SETTINGS = {"env": "e", "seed": 0}


def episode(group: int, member: int = 0) -> Episode:
    return Episode("e", f"s{group}", "", group, group, member, (), "terminated")


def sorted_episodes(folder: Path) -> list[Episode]:
    found = read_episodes(folder / "episodes.jsonl")
    return sorted(found, key=lambda each: (each.group, each.member))


@pytest.mark.slow
def test_run_that_is_killed_resumes_to_the_same_episodes(tmp_path: Path) -> None:
    words = [*ROLLOUT, "--groups", "60", "--num-generations", "2", "--concurrency", "4", "--out"]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    file = killed / "episodes.jsonl"
    run_killed([*words, str(killed)], RunFolder.add, calls=5)
    before = file.read_bytes()
    assert before.count(b"\n") == 5
    with file.open("ab") as opened:  # as after a kill while a line is written
        opened.write(b'{"format":2,"env_id":"visenv/Zoo')

    assert main([*words, str(killed)]) == 0
    assert main([*words, str(whole)]) == 0
    assert file.read_bytes().startswith(before)
    assert sorted_episodes(killed) == sorted_episodes(whole)
    assert len(sorted_episodes(killed)) == 120
    assert len(json.loads((killed / "run.json").read_text())["sessions"]) == 2


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (["--seed", "1"], "seed 0, not 1"),
        (["--temperature", "0.5"], "temperature 1.0, not 0.5"),
        (["--num-generations", "2"], "num_generations 1, not 2"),
        (["--option", "tool_calls=2"], 'option {"preset": "tiny"}, not {"preset": "tiny", "too'),
        (["--control", "no_tool"], 'control null, not "no_tool"'),
    ],
    ids=str,
)
def test_settings_that_differ_are_refused_with_their_difference(
    change: list[str], difference: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*ROLLOUT, "--groups", "1", "--out", str(tmp_path)]
    assert main(words) == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    capsys.readouterr()
    assert main([*words, *change]) == 1
    said = capsys.readouterr()
    assert f"{tmp_path} was started with {difference}" in said.err
    assert said.err.count("\n") == 1
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("command", ["rollout", "eval"])
@pytest.mark.parametrize(
    "words",
    [
        ["--data", "textvqa:/no/such/folder"],
        ["--policy", "orcle"],
        ["--control", "no_tol"],
        # Only the first episode shows that the environment lacks the tool of this policy.
        ["--policy", "rag", "--policy-option", "policy=oracle"],
    ],
    ids=lambda words: words[-1],
)
def test_failed_start_leaves_no_file_and_no_folder(
    command: str, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "runs" / "new"
    assert main([command, "ZoomVQA-v0", *words, "--out", str(out)]) == 1
    assert capsys.readouterr().err.strip().count("\n") == 0
    assert list(tmp_path.iterdir()) == []


def test_failed_start_leaves_a_folder_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")

    def fail() -> None:
        with RunFolder(tmp_path, SETTINGS):
            assert len(list(tmp_path.iterdir())) == 3
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_failure_after_the_first_episode_keeps_it(tmp_path: Path) -> None:
    def fail() -> None:
        with RunFolder(tmp_path, SETTINGS) as run:
            run.add(episode(0))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    with RunFolder(tmp_path, SETTINGS) as run:
        assert run.episodes() == [episode(0)]


def test_folder_in_use_is_refused_and_left_alone(tmp_path: Path) -> None:
    with RunFolder(tmp_path, SETTINGS) as run:
        with pytest.raises(RunError, match="Another process writes"), RunFolder(tmp_path, SETTINGS):
            pass
        run.add(episode(0))
    assert sorted_episodes(tmp_path) == [episode(0)]


@pytest.mark.parametrize("half", [b"", b"{", b"x" * 200_000], ids=["none", "one", "long"])
def test_run_folder_cuts_off_an_incomplete_line(half: bytes, tmp_path: Path) -> None:
    with RunFolder(tmp_path, SETTINGS) as run:
        run.add(episode(0))
        run.add(episode(1))
    file = tmp_path / "episodes.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole + half)
    with RunFolder(tmp_path, SETTINGS) as run:
        assert [each.group for each in run.episodes()] == [0, 1]
    assert file.read_bytes() == whole


def test_file_with_only_an_incomplete_line_is_restarted(tmp_path: Path) -> None:
    with RunFolder(tmp_path, SETTINGS) as run:
        run.add(episode(0))
    (tmp_path / "episodes.jsonl").write_bytes(b'{"format"')
    with RunFolder(tmp_path, SETTINGS) as run:
        assert run.known == {}
        run.add(episode(0))
    assert sorted_episodes(tmp_path) == [episode(0)]


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"format": 9}', '{"format": 1, "settings": 3, "sessions": []}']
)
def test_run_file_that_cannot_be_read_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunError, match=r"run\.json"), RunFolder(tmp_path, SETTINGS):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_run_json_contains_how_the_episodes_were_made(tmp_path: Path) -> None:
    words = ["--groups", "1", "--seed", "3", "--policy-option", "expert_rate=0.5"]
    words += ["--option", "preset=tiny", "--max-tokens", "9", "--out", str(tmp_path)]
    assert main(["rollout", "ZoomVQA-v0", *words]) == 0
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["settings"] == {
        "command": "rollout",
        "env": "visenv/ZoomVQA-v0",
        "option": {"preset": "tiny"},
        "data": None,
        "policy": "oracle",
        "policy_option": {"expert_rate": 0.5},
        "temperature": 1.0,
        "max_tokens": 9,
        "seed": 3,
        "groups": 1,
        "num_generations": 1,
        "judge": None,
        "control": None,
    }
    assert run["policy"] == {
        "class": "visenv.policies.oracle:OraclePolicy",
        "arguments": {"thought": None, "expert_rate": 0.5, "guess": False},
    }
    (session,) = run["sessions"]
    assert {"python", "visenv", "gymnasium", "numpy"} <= set(session["versions"])
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
    )
    assert session["commit"] == (head.stdout.strip() or None)


def test_versions_of_heavy_packages_are_recorded_only_when_they_are_imported() -> None:
    program = """
import sys, types
from visenv.provenance import versions
assert "torch" not in versions() and "torch" not in sys.modules
sys.modules["torch"] = types.ModuleType("torch")
assert "torch" in versions()
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def aborted(group: int) -> Episode:
    failure = Failure("policy", "PolicyError", "the server is down")
    return replace(episode(group), status="aborted", failure=failure)


def test_aborted_episodes_are_forgotten_on_request(tmp_path: Path) -> None:
    with RunFolder(tmp_path, SETTINGS) as run:
        for each in (aborted(0), episode(1), aborted(2), episode(3)):
            run.add(each)
    with RunFolder(tmp_path, SETTINGS) as run:
        assert len(run.known) == 4
        assert run.forget_aborted() == 2
        with pytest.raises(RunError, match="Another process writes"), RunFolder(tmp_path, SETTINGS):
            pass
        run.add(episode(2))
        assert run.forget_aborted() == 0
    assert sorted_episodes(tmp_path) == [episode(1), episode(2), episode(3)]
    sessions = json.loads((tmp_path / "run.json").read_text())["sessions"]
    assert [each.get("played_again") for each in sessions] == [None, 2]


def test_file_that_was_replaced_before_it_was_locked_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RunFolder(tmp_path, SETTINGS) as run:
        run.add(episode(0))

    def replace_and_lock(descriptor: int, *, blocking: bool) -> bool:
        file = tmp_path / "episodes.jsonl"
        file.with_name("other").write_bytes(file.read_bytes())
        file.with_name("other").replace(file)
        return lock_descriptor(descriptor, blocking=blocking)

    monkeypatch.setattr(run_folder, "lock_descriptor", replace_and_lock)
    with pytest.raises(RunError, match="Another process writes"), RunFolder(tmp_path, SETTINGS):
        pass
    assert sorted_episodes(tmp_path) == [episode(0)]


class SometimesDown(Policy[Session]):
    """Answers, unless its server is down."""

    down: ClassVar[set[int]] = set()
    calls: ClassVar[list[int]] = []

    @override
    def open(self, seed: int) -> Session:
        return Session()

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        self.calls.append(len(self.calls))
        if len(self.calls) in self.down:
            raise PolicyError("the server is down")
        return Reply.of_text("<answer>1</answer>")


def test_evaluation_plays_the_aborted_episodes_of_a_server_that_was_down_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(SometimesDown, "down", {2, 3})
    monkeypatch.setattr(SometimesDown, "calls", [])
    words = ["eval", "ZoomVQA-v0", "--option", "preset=tiny", "--episodes", "4", "--concurrency=1"]
    words += ["--policy", f"{SometimesDown.__module__}:SometimesDown", "--out", str(tmp_path)]
    assert main(words) == 0
    assert [each.status for each in sorted_episodes(tmp_path)].count("aborted") == 2
    capsys.readouterr()
    assert main(words) == 0
    assert "Aborted episodes that are played again: 2." in capsys.readouterr().err
    found = sorted_episodes(tmp_path)
    assert [each.group for each in found] == [0, 1, 2, 3]
    assert not any(each.failure for each in found)
    assert "2 of 4" not in (tmp_path / "summary.md").read_text()
