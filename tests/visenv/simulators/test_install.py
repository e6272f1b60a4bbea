"""Tests the installation of simulators: the installed packages, and the messages on failure."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from visenv.envs.embodied.simulators.survey import PLAYER_VARIABLE
from visenv.errors import RunError
from visenv.simulators import install, survey

ROOT = Path(__file__).parents[3]


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """Return the commands that an installation would run; a virtual environment gets its folder."""
    ran: list[list[str]] = []

    def run(command: Sequence[str], **_: Any) -> subprocess.CompletedProcess[str]:
        ran.append(list(command))
        if command[1:3] == ["-m", "venv"]:
            Path(command[-1], "bin").mkdir(parents=True, exist_ok=True)
        return subprocess.CompletedProcess(command, 0, "libllvm15\n", "")

    monkeypatch.setattr(subprocess, "run", run)
    return ran


def test_pytorch_comes_first_and_alone_from_its_index(
    commands: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "find_library", lambda name: "libOSMesa.so.8")
    install.install(tmp_path / "venv", "https://index.invalid/cpu", lambda text: None)
    venv, torch, rest = commands
    assert venv[1:] == ["-m", "venv", "--clear", str(tmp_path / "venv")]
    assert torch[-3:] == ["--index-url", "https://index.invalid/cpu", "torch==2.13.0"]
    assert rest[-2:] == ["--requirement", str(ROOT / "constraints/simulators.txt")]
    assert all("--no-deps" in command for command in (torch, rest))


def test_complete_installation_is_left_as_it_is(
    commands: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "find_library", lambda name: "libOSMesa.so.8")
    for _ in range(2):
        install.install(tmp_path / "venv", say=lambda text: None)
    assert len(commands) == 3


def test_missing_library_is_unpacked_into_the_environment(
    commands: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "find_library", lambda name: None)
    install.install(tmp_path / "venv", say=lambda text: None)
    assert ["apt-get", "download", "libosmesa6", "libglapi-mesa", "libllvm15"] in commands


def test_failed_command_shows_its_last_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(command: Sequence[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "a\nNo space left on device")

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(RunError, match="No space left on device"):
        install.install(tmp_path / "venv", say=lambda text: None)
    assert not (tmp_path / "venv" / install.STAMP).exists()


def test_survey_names_what_is_missing_and_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("VISENV_SIMULATORS", str(tmp_path / "none"))
    monkeypatch.delenv(PLAYER_VARIABLE, raising=False)
    found = {finding.name: finding for finding in survey.survey()}
    assert not found["interpreter"].there
    assert "make simulators" in found["interpreter"].detail
    assert PLAYER_VARIABLE in found["Unity player of AI2-THOR"].detail


@pytest.mark.component("libero", "robosuite", "mujoco", "osmesa")
def test_survey_lists_the_packages_of_the_simulators(simulator_interpreter: str) -> None:
    found = {finding.name: finding for finding in survey.survey()}
    assert found["interpreter"].detail.startswith(simulator_interpreter)
    assert found["robosuite"].detail == "1.4.0"
    assert found["OpenGL"].there
