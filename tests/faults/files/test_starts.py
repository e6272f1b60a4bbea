"""Tests two starts of one run, moved and copied runs, other versions, and the report of a run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.faults.runs import AtStep, results, train
from tests.programs import run_python
from visenv.checksums import sealed
from visenv.errors import RunError

pytestmark = pytest.mark.component("torch")


def test_second_start_and_resume_of_a_running_run_change_nothing(
    tmp_path: Path, straight: tuple[Any, ...]
) -> None:
    def start_again(folder: Path) -> None:
        with pytest.raises(RunError, match="holds a run already"):
            train(folder)
        with pytest.raises(RunError, match="Another process trains in"):
            train(folder, resume=True)

    folder = tmp_path / "run"
    policy = train(folder, callbacks=(AtStep(2, start_again),))
    assert results(folder, policy) == straight


def test_copy_of_a_running_run_resumes_beside_it(tmp_path: Path, straight: tuple[Any, ...]) -> None:
    copy = tmp_path / "copy"
    folder = tmp_path / "run"
    train(folder, callbacks=(AtStep(2, lambda folder: shutil.copytree(folder, copy)),))
    assert results(copy, train(copy, resume=True)) == straight


def test_run_that_was_moved_resumes(tmp_path: Path, straight: tuple[Any, ...]) -> None:
    train(tmp_path / "run", 2)
    (tmp_path / "elsewhere").mkdir()
    folder = (tmp_path / "run").rename(tmp_path / "elsewhere/renamed run")
    policy = train(folder, resume=True)
    assert policy.weights() == straight[0]


def test_other_version_of_a_package_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(tmp_path / "run", 2)
    path = tmp_path / "run/checkpoints/step_000002/state.json"
    state = json.loads(path.read_text())
    state["versions"]["torch"] = "1.0"
    path.write_text(json.dumps(sealed(state)))
    capsys.readouterr()
    train(tmp_path / "run", 3, resume=True)
    said = " ".join(capsys.readouterr().err.split())
    assert "torch was 1.0 and is " in said
    assert "another version can compute or round differently" in said


def test_report_of_a_running_run_is_written(tmp_path: Path, straight: tuple[Any, ...]) -> None:
    from visenv.viewer import write_report

    pages: list[int] = []

    def view(folder: Path) -> None:
        with (folder / "metrics.jsonl").open("a") as log:
            half = log.tell()
            log.write('{"step": 3, "rew')  # another process has written half of a line
            log.flush()
            pages.append(write_report(folder).stat().st_size)
            log.truncate(half)

    folder = tmp_path / "run"
    policy = train(folder, callbacks=(AtStep(2, view),))
    assert results(folder, policy) == straight
    assert pages[0] > 10_000


_TRAIN = """
import ctypes, os, resource, subprocess, sys
from pathlib import Path
from tests.faults.runs import train
if os.geteuid() == 0 and ctypes.CDLL(None).unshare(0x00020000) == 0:  # CLONE_NEWNS
    for words in ("--make-rprivate /", "-t tmpfs -o size=1m tmpfs /dev/shm"):
        subprocess.run(["mount", *words.split()], check=True)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
print(train(Path(sys.argv[1])).weights().hex())
"""


def test_run_needs_no_home_no_temporary_folder_no_language_and_little_of_the_machine(
    tmp_path: Path, straight: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "TMPDIR"):
        monkeypatch.setenv(name, str(tmp_path / "missing"))
    for name in ("LANG", "LC_ALL"):
        monkeypatch.setenv(name, "C")
    monkeypatch.delenv("PYTHONUTF8", raising=False)
    done = run_python("-c", _TRAIN, tmp_path / "rün")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == straight[0].hex()
