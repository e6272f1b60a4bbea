"""Tests that locks of interrupted compilations are removed, and those in use are not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from visenv.algos.trainer import extension_locks
from visenv.algos.trainer.extension_locks import clear_stale_locks
from visenv.errors import RunError

OWNER = """
import sys
from torch.utils.file_baton import FileBaton
baton = FileBaton(sys.argv[1])
assert baton.try_acquire()
print("locked", flush=True)
sys.stdin.readline()
baton.release()
"""


def lock(folder: Path) -> Path:
    path = folder / "fused_adam" / "lock"
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def test_lock_without_an_owner_is_removed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = lock(tmp_path)
    nested = lock(tmp_path / "py311_cpu")
    assert clear_stale_locks(tmp_path) == [path, nested]
    assert not path.exists()
    assert f"removed {path}, left of a compilation that was interrupted" in caplog.text
    assert clear_stale_locks(tmp_path) == []


@pytest.mark.component("torch")
def test_lock_of_a_compilation_in_progress_stays_until_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "fused_adam" / "lock"
    path.parent.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "locked\n"
        assert clear_stale_locks(tmp_path) == []
        assert path.exists()
        owner.kill()
        owner.wait()
        assert clear_stale_locks(tmp_path) == [path]


def test_lock_that_another_machine_may_own_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lock(tmp_path)
    monkeypatch.setattr(extension_locks, "_is_remote", lambda _: True)
    with pytest.raises(RunError, match=rf"{path} is the lock of a compilation"):
        clear_stale_locks(tmp_path)
    assert path.exists()


def test_folder_that_does_not_exist_has_no_locks(tmp_path: Path) -> None:
    assert clear_stale_locks(tmp_path / "none") == []
