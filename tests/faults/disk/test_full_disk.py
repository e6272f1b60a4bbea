"""Tests that a run on a disk that is full or fails ends with the name of the file, and resumes."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.algos import toy
from tests.faults.disk.small_disks import fill, memory_disk, remount
from tests.faults.outcomes import ENDED, SAME, Outcome
from tests.faults.runs import AtStep, config, results, train
from visenv.algos.trainer.optimizer_shards import save_tensors
from visenv.algos.trainer.phase_folder import added_checkpoints, checkpoint_bytes, locked
from visenv.disk import disk_errors, shown_bytes
from visenv.errors import DiskError, RunError

pytestmark = pytest.mark.component("torch")

CHECKPOINT = 4 * 110 + 12 * 110
"""Bytes of a checkpoint of the toy policy, which has 110 float32 weights."""


def assert_resumes(folder: Path, straight: tuple[Any, ...]) -> None:
    """Check that the run continues to the results of a run without a fault."""
    resumed = train(folder, resume=True) if folder.exists() else train(folder)
    assert results(folder, resumed) == straight


# ------------------------------------------------------------------------------------ messages


def test_full_disk_is_named_with_the_file_and_the_free_space(tmp_path: Path) -> None:
    path = tmp_path / "run" / "file.txt"
    with pytest.raises(DiskError) as caught, disk_errors(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    free = os.statvfs(tmp_path)
    assert str(caught.value).startswith(f"{path} cannot be written: No space left on device (")
    assert caught.value.errno == errno.ENOSPC
    assert shown_bytes(free.f_bavail * free.f_frsize).split()[1] in str(caught.value)


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.EDQUOT, errno.ENOLCK])
def test_error_of_the_disk_without_a_name_is_given_one(tmp_path: Path, number: int) -> None:
    with (
        pytest.raises(DiskError, match=r"file\.txt cannot be written: "),
        disk_errors(tmp_path / "file.txt"),
    ):
        raise OSError(number, os.strerror(number))


def test_error_about_another_file_is_not_changed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="elsewhere"), disk_errors(tmp_path / "file.txt"):
        Path("/elsewhere/x").read_bytes()


def test_error_of_a_library_in_rust_is_given_a_name(tmp_path: Path) -> None:
    with (
        pytest.raises(DiskError, match=r"weights cannot be written: No space left"),
        disk_errors(tmp_path / "weights"),
    ):
        raise Exception("I/O error: No space left on device (os error 28)")  # noqa: TRY002


def test_failed_write_of_torch_is_given_a_name(tmp_path: Path) -> None:
    with (
        pytest.raises(DiskError, match=r"weights\.pt cannot be written: Input/output error"),
        disk_errors(tmp_path / "weights.pt"),
    ):
        raise RuntimeError("basic_ios::clear: iostream error")


def test_other_errors_are_not_changed(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"^no space left$"), disk_errors(tmp_path / "file"):
        raise OSError("no space left")
    with pytest.raises(ConnectionResetError), disk_errors(tmp_path / "file"):
        raise ConnectionResetError(errno.ECONNRESET, "reset")


# ----------------------------------------------------------------------------------- real disks


def test_tensors_on_a_full_disk_name_the_file(tmp_path: Path) -> None:
    with memory_disk(tmp_path / "disk", size="256k") as disk:
        fill(disk, 20_000)
        with pytest.raises(DiskError, match=r"shard\.pt cannot be written: No space left"):
            save_tensors({"weights": torch.zeros(100_000)}, disk / "shard.pt")


@pytest.mark.parametrize(
    "pages",
    [12, pytest.param([*range(12), *range(13, 40)], marks=pytest.mark.soak)],
    ids=["one", "each"],
)
def test_run_on_a_full_disk_names_the_file_and_resumes(
    tmp_path: Path,
    straight: tuple[Any, ...],
    pages: int | list[int],
    record_fault: Callable[[Outcome], None],
) -> None:
    with memory_disk(tmp_path / "disk", size="4m") as disk:
        failed = set()
        for left in [pages] if isinstance(pages, int) else pages:
            filler = fill(disk, left * 4096)
            folder = disk / f"run-{left}"
            fault = Outcome("full disk", f"{4 * left} KB are free", SAME)
            try:
                train(folder)
            except (DiskError, RunError) as error:
                said = str(error)
                assert str(disk) in said
                failed.add(Path(said.split(" cannot be written", maxsplit=1)[0]).name)
                assert "No space left" in said or "are free in the file system" in said
                fault = fault.ended(ENDED)
            else:
                assert left > 12
            filler.unlink()
            assert_resumes(folder, straight)
            record_fault(fault)
            shutil.rmtree(folder)
        assert failed


def test_disk_without_inodes_is_explained(tmp_path: Path, straight: tuple[Any, ...]) -> None:
    with memory_disk(tmp_path / "disk", size="4m", nr_inodes=40) as disk:
        with pytest.raises(DiskError, match="all inodes are in use"):
            train(disk / "run")
        for path in disk.glob("run/episodes/*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        assert os.statvfs(disk).f_favail > 0


def test_start_on_a_read_only_disk_names_the_folder(
    tmp_path: Path, straight: tuple[Any, ...]
) -> None:
    with memory_disk(tmp_path / "disk", size="4m") as disk:
        remount(disk, "ro")
        with pytest.raises(DiskError, match=r"disk/run.* cannot be written: Read-only file system"):
            train(disk / "run")
        remount(disk, "rw")
        assert_resumes(disk / "run", straight)


# -------------------------------------------------------------------------------- injected faults


@pytest.mark.parametrize(
    ("number", "call"),
    [
        (errno.EIO, 40),
        *(
            pytest.param(number, call, marks=pytest.mark.soak)
            for number in (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS)
            for call in (1, 20, 39, 60)
        ),
    ],
)
def test_failed_sync_names_the_file_and_the_run_resumes(
    tmp_path: Path,
    straight: tuple[Any, ...],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    call: int,
    record_fault: Callable[[Outcome], None],
) -> None:
    calls = 0
    original = os.fsync

    def failing(descriptor: Any) -> None:
        nonlocal calls
        calls += 1
        if calls >= call:
            raise OSError(number, os.strerror(number))
        original(descriptor)

    folder = tmp_path / "run"
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        with pytest.raises(DiskError, match=rf"{folder}.* cannot be written: .*--resume"):
            train(folder)
    assert_resumes(folder, straight)
    record_fault(Outcome(f"sync of a file, {errno.errorcode[number]}", f"call {call}", ENDED))


def test_folder_that_vanishes_ends_the_run_with_its_name(tmp_path: Path) -> None:
    def vanish(folder: Path) -> None:
        folder.rename(tmp_path / "moved")

    with pytest.raises(DiskError, match=r"run/metrics\.jsonl cannot be written: No such file"):
        train(tmp_path / "run", callbacks=(AtStep(2, vanish),))


def test_folder_that_vanished_resumes_under_its_new_name(
    tmp_path: Path, straight: tuple[Any, ...]
) -> None:
    with pytest.raises(DiskError):
        train(
            tmp_path / "run",
            callbacks=(AtStep(2, lambda folder: folder.rename(tmp_path / "moved")),),
        )
    shutil.rmtree(tmp_path / "run", ignore_errors=True)
    assert_resumes(tmp_path / "moved", straight)


def test_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", failing)
    said = r"run\.lock cannot be written: No locks .*another one"
    with pytest.raises(DiskError, match=said), locked(tmp_path / "run"):
        pass


def test_file_system_without_links_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from visenv.algos.experiment.folder import link_shared

    def failing(path: Path, target: str) -> None:
        raise OSError(errno.EPERM, "Operation not permitted", target, None, str(path))

    shared = tmp_path / "shared"
    (shared / "warm-up").mkdir(parents=True)
    monkeypatch.setattr(Path, "symlink_to", failing)
    said = r"run/warm-up cannot be written: Operation not permitted.* symbolic links.* --runs"
    with pytest.raises(DiskError, match=said):
        link_shared(shared, tmp_path / "run", ["warm-up"])


# -------------------------------------------------------------------------------- space, trackers


def test_size_of_a_checkpoint_is_that_of_weights_and_optimizer() -> None:
    assert checkpoint_bytes(toy.ToyPolicy()) == CHECKPOINT


@pytest.mark.parametrize(
    ("steps", "step", "existing", "added"),
    [(1, 0, 0, 1), (2, 0, 0, 2), (9, 0, 0, 3), (9, 4, 2, 1), (9, 8, 2, 1), (9, 9, 2, 0)],
)
def test_run_needs_one_checkpoint_more_than_it_keeps(
    steps: int, step: int, existing: int, added: int
) -> None:
    assert added_checkpoints(config(steps), step, existing) == added


def test_space_for_the_checkpoints_is_checked_before_the_first_step(tmp_path: Path) -> None:
    played: list[int] = []
    with memory_disk(tmp_path / "disk", size="64k") as disk:
        fill(disk, 4096)
        with pytest.raises(RunError, match=r"4\.1 KB are free .* needs 5\.3 KB for 3 checkpoints"):
            train(disk / "run", make_env=lambda: toy.Echo(on_reset=played.append))
    assert not played


@pytest.mark.component("tensorboard")
def test_tensorboard_does_not_end_a_run(
    tmp_path: Path,
    straight: tuple[Any, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from tensorboard.summary.writer.record_writer import RecordWriter

    def failing(writer: Any, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def break_it(folder: Path) -> None:
        monkeypatch.setattr(RecordWriter, "write", failing)

    folder = tmp_path / "run"
    policy = train(folder, trackers=("tensorboard",), callbacks=(AtStep(1, break_it),))
    assert results(folder, policy) == straight
    said = capsys.readouterr().err
    assert said.count("the tracker tensorboard failed") == 1
    assert "Traceback" not in said
