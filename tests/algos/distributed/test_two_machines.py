"""Tests two machines, which are rehearsed by two launchers with different addresses on this one."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.algos.distributed.launching import ROOT, environment
from visenv.algos.trainer import rendezvous
from visenv.algos.trainer.rendezvous import RendezvousWatch

pytestmark = pytest.mark.component("torch", "accelerate", "deepspeed")

PROGRAM = """
import atexit, json
from pathlib import Path

# The first function that is registered is called last.
@atexit.register
def report():
    threads = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    found["threads"] = [name for name in threads if "gloo" in name]
    print(json.dumps(found), flush=True)

from visenv.algos.trainer.distributed import DistributedContext
processes = DistributedContext(timeout=600)
found = {"rank": processes.rank, "ranks": processes.gather(processes.rank)}
"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def machine(program: Path, rank: int, port: int, interface: str) -> subprocess.Popen[str]:
    """Start the launcher of one machine with one process."""
    options = ["--config_file", "configs/cpu_zero2.yaml", "--num_machines", "2"]
    options += ["--num_processes", "2", "--machine_rank", str(rank)]
    options += ["--main_process_ip", "127.0.0.1", "--main_process_port", str(port)]
    return subprocess.Popen(
        [sys.executable, "-m", "accelerate.commands.launch", *options, program],
        cwd=ROOT,
        env={**environment(), "GLOO_SOCKET_IFNAME": interface},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def rehearse(folder: Path, *interfaces: str) -> list[tuple[int, str, str]]:
    """Run both machines, and return the status, output and errors of each."""
    program = folder / "meet.py"
    program.write_text(PROGRAM)
    port = free_port()
    started = [machine(program, rank, port, name) for rank, name in enumerate(interfaces)]
    with ThreadPoolExecutor() as readers:
        said = list(readers.map(subprocess.Popen.communicate, started))
    return [(process.returncode, *texts) for process, texts in zip(started, said, strict=True)]


@pytest.mark.timeout(300)
def test_machines_connect_exchange_objects_and_end_the_threads_of_gloo(tmp_path: Path) -> None:
    for rank, (status, output, errors) in enumerate(rehearse(tmp_path, "lo", "lo")):
        assert status == 0, errors[-3000:]
        found = json.loads(output.splitlines()[-1])
        assert found == {"rank": rank, "ranks": [0, 1], "threads": []}


@pytest.mark.soak
@pytest.mark.timeout(300)  # the time-out of the processes is 600 s
def test_machines_end_if_one_cannot_be_reached(tmp_path: Path) -> None:
    for status, _, errors in rehearse(tmp_path, "lo", "eth99"):
        assert status != 0
        assert "set GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME on every machine" in errors


class Store:
    """Implements the part of a store that a watch uses, in memory."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.is_gone = False

    def set(self, key: str, value: str) -> None:
        self.values[key] = value.encode()

    def get(self, key: str) -> bytes:
        return self.values[key]

    def check(self, keys: list[str]) -> bool:
        if self.is_gone:
            raise RuntimeError("Connection reset by peer")
        return all(key in self.values for key in keys)


class Watched:
    """Runs a watch whose process does not end but notes its status."""

    def __init__(self, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(rendezvous, "_BETWEEN_CHECKS", 0.01)
        self.left = threading.Event()
        self.watch = RendezvousWatch(store, 0, 2, lambda _: self.left.set())


def test_watch_ends_this_process_if_another_one_has_failed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    store = Store()
    watched = Watched(store, monkeypatch)
    store.set("failed", "process 1: no route to host")
    watched.left.wait()
    watched.watch.end()
    assert "cannot connect with the others: process 1: no route to host" in capfd.readouterr().err


def test_watch_ends_this_process_if_the_store_has_ended(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    store = Store()
    watched = Watched(store, monkeypatch)
    store.is_gone = True
    watched.left.wait()
    watched.watch.end()
    assert "the first machine has ended" in capfd.readouterr().err


def test_watch_waits_for_processes_that_have_not_started(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rendezvous, "PATIENCE", 0.0)
    store = Store()
    watched = Watched(store, monkeypatch)
    checks = threading.Event()
    original = store.check

    def check(keys: list[str]) -> bool:
        if len(keys) == 2:
            checks.set()
        return original(keys)

    monkeypatch.setattr(store, "check", check)
    checks.wait()
    assert not watched.left.is_set()
    store.set("started/1", "")
    watched.left.wait()
    watched.watch.end()
    assert "not connected 0 s after all processes have started" in capfd.readouterr().err
    assert store.values["failed"].startswith(b"process 0: not connected")


def test_error_of_this_process_is_told_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    watched = Watched(store, monkeypatch)
    error = watched.watch.failed(RuntimeError("Unable to find address for: eth99\nmore"))
    watched.watch.end()
    assert "Unable to find address for: eth99. If a machine has several" in str(error)
    assert store.values["failed"] == b"process 0: Unable to find address for: eth99"
    assert not watched.left.is_set()
