"""Tests recipes whose processes `visenv train` starts itself."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.algos.runs import small_sweep
from visenv.algos.experiment import read_recipe
from visenv.algos.trainer.launch import _handled_signals, launch
from visenv.errors import ConfigurationError

from .launching import ROOT, environment

pytestmark = [
    pytest.mark.component("torch", "accelerate", "transformers"),
    pytest.mark.timeout(900),
]

TOML = small_sweep("num_processes = 2", "", steps=2, groups=2, episodes=3).split("[sweep")[0]


def start_train(folder: Path, *words: str) -> subprocess.Popen[str]:
    """Start ``visenv train`` with `TOML`, whose run is in this folder."""
    (folder / "job.toml").write_text(TOML)
    command = [sys.executable, "-m", "visenv", "train", str(folder / "job.toml")]
    return subprocess.Popen(
        [*command, "--runs", str(folder), *words],
        cwd=ROOT,
        env={name: text for name, text in environment().items() if name != "OMP_NUM_THREADS"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finished(folder: Path, *words: str) -> tuple[int, str]:
    """Run ``visenv train`` with `TOML`; return its exit status and its output."""
    with start_train(folder, *words) as process:
        output, _ = process.communicate()
    return process.returncode, output


def test_train_starts_two_processes(tmp_path: Path) -> None:
    status, output = finished(tmp_path)
    assert status == 0, output
    assert output.count("SFT 1/1") == 1  # the second process prints nothing
    assert not re.search(r"[a-z]Warning|\[W\d", output)  # of Python and of PyTorch
    results = json.loads((tmp_path / "job" / "results.json").read_text())
    assert results["scores"]["after rl"]["scenes"]["greedy"]["episodes"] == 3


def _output_of_resume(folder: Path) -> str:
    """Return what the command prints that continues a finished run in one process."""
    status, output = finished(folder, "--resume", "--num-processes", "1")
    assert status == 0, output
    return output.replace("\n", " ")


@pytest.mark.soak
def test_interrupt_stops_both_processes_and_one_process_can_continue(tmp_path: Path) -> None:
    started = start_train(tmp_path, "--phases.warm-up.steps", "30")
    assert started.stdout is not None
    for line in started.stdout:
        if line.startswith("SFT"):
            started.send_signal(signal.SIGINT)
            break
    output, _ = started.communicate()
    assert started.returncode == 130, output
    assert output.count("visenv: Stopped after step ") == 1
    assert "num_processes was 2 and is 1" in _output_of_resume(tmp_path)


@pytest.mark.soak
def test_error_of_the_processes_is_printed_once(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "notes.txt").write_text("")
    status, output = finished(tmp_path)
    assert status == 1
    assert len(output.splitlines()) == 1
    assert output.startswith("visenv: ")


def test_ignored_signals_are_not_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_IGN}
    monkeypatch.setattr(signal, "getsignal", lambda number: handlers.get(number, signal.SIG_DFL))
    assert _handled_signals() == ["SIGINT", "SIGTERM", "SIGUSR1", "SIGXCPU"]


def test_nothing_is_started_for_one_process_or_below_a_launcher(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not launch(["job.toml"], 1, timeout=1)
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert not launch(["job.toml"], 2, timeout=1)


def test_number_of_processes_is_at_least_one(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(TOML)
    recipe = read_recipe(tmp_path / "job.toml", [])
    with pytest.raises(ConfigurationError, match="num_processes must be at least 1, got 0"):
        replace(recipe, num_processes=0)
