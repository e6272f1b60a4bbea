"""Tests hosts: the messages, the attacks of a hostile simulator, and processes left behind."""

from __future__ import annotations

import ast
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.environments import few
from tests.listeners import family, listeners, require_listed
from tests.waiting import wait_until
from visenv.child_process import program, wire
from visenv.errors import ConfigurationError, ServiceError
from visenv.simulators import child, opengl, protocol
from visenv.simulators.host import ChildHost, SimulatorHost
from visenv.simulators.settings import SimulatorSpec, find_interpreter

Open = Callable[..., SimulatorHost]
places = pytest.mark.parametrize("place", ["child", "process"])


def is_running(pid: int) -> bool:
    """Return whether the process runs and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def wait_until_gone(pid: int) -> None:
    wait_until(lambda: not is_running(pid))


@places
def test_host_carries_facts_frames_and_snapshots(open_host: Open, place: str) -> None:
    host = open_host({"level": 3}, place=place)
    assert host.facts == {"python": list(sys.version_info[:2]), "options": {"level": 3}}
    begun = host.reset({"from": 5}, frames={"side": 2})
    assert begun.facts == {"count": 5}
    assert begun.frames["view"].tolist() == [[[5, 5, 5]] * 2] * 2
    acted = host.act({"add": 2}, frames={}, snapshot=True)
    assert acted.facts == {"count": 7}
    assert acted.snapshot == bytes([7, 0, 0, 0, 0, 0, 0, 0])
    host.act({"add": 200})
    assert host.restore(acted.snapshot, frames={}).frames["view"][0, 0, 0] == 7
    assert host.snapshot() == acted.snapshot
    assert host.frames({"side": 3})["view"].shape == (3, 3, 3)


@pytest.mark.attack("servers: the table of listeners is complete")
def test_child_listens_nowhere(open_host: Open) -> None:
    host = open_host(place="child")
    host.reset({})
    assert isinstance(host, ChildHost)
    require_listed("simulator in a child process", listeners(family(host.pid)))


@places
def test_simulator_that_prints_megabytes_changes_no_reply(open_host: Open, place: str) -> None:
    host = open_host(place=place)
    host.reset({})
    for _ in range(3):
        assert host.act({"add": 1, "do": "print"}).facts["count"] <= 3
    assert host.act({}).facts == {"count": 3}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behavior", "reason"),
    [
        ("raise", "RuntimeError: the toy broke"),
        ("die", r"ended with status 7\. It printed last: .*last words"),
        ("kill", "ended with status -9"),
        ("hang", "no reply within"),
        ("gigabyte", r"a message of 1073741834 bytes is too large"),
        ("bad json", "its reply is invalid: not a valid message"),
        ("wrong size", "cannot reshape array of size 5"),
        ("noise", "expected a message, got b'hello"),
        ("memory", "MiB, more than 250"),
    ],
)
@pytest.mark.parametrize("moment", few(["act", "reset"], 1))
def test_failing_call_raises_service_error_and_leaves_no_process(
    open_host: Open, behavior: str, reason: str, moment: str
) -> None:
    host = open_host(call_s=1.5, memory_bytes=250 * 2**20)
    assert isinstance(host, ChildHost)
    if moment == "act":
        host.reset({})
    with pytest.raises(ServiceError, match=reason) as caught:
        host.reset({"reset": behavior}) if moment == "reset" else host.act({"do": behavior})
    assert caught.value.boundary == "simulator"
    assert not host.is_alive()
    wait_until_gone(host.pid)
    with pytest.raises(ServiceError, match="failed before"):
        host.act({})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behavior", "error", "reason"),
    [
        ("raise", ServiceError, "it did not start: RuntimeError: the toy broke"),
        ("die", ServiceError, "ended with status 7"),
        ("hang", ServiceError, "no reply within"),
        ("import", ConfigurationError, "lacks the package 'no_such_package'.*make simulators"),
    ],
)
def test_simulator_that_does_not_start_gives_the_reason(
    spec: Callable[..., SimulatorSpec],
    behavior: str,
    error: type[Exception],
    reason: str,
) -> None:
    host = ChildHost(spec({"start": behavior}, start_s=1.5))
    with pytest.raises(error, match=reason):
        host.start()
    wait_until_gone(host.pid)
    host.close()


def test_second_reply_is_found_at_the_next_call(open_host: Open) -> None:
    host = open_host()
    host.reset({"reset": "twice"})  # the first of two replies to call 1
    with pytest.raises(ServiceError, match=r"replied (twice|to call 1 instead of call 2)"):
        host.act({"add": 1})


def test_late_reply_is_never_taken_for_the_next_one(open_host: Open) -> None:
    first = open_host(call_s=0.5)
    first.reset({})
    with pytest.raises(ServiceError, match="no reply within"):
        first.act({"do": "hang"})
    second = open_host()
    assert second.reset({"from": 3}).facts == {"count": 3}


@places
def test_missing_package_names_the_command_to_run(
    spec: Callable[..., SimulatorSpec], place: str, open_host: Open
) -> None:
    with pytest.raises(ConfigurationError, match="visenv simulators install"):
        open_host({"start": "import"}, place=place)


def test_local_simulator_that_hangs_is_left_behind(open_host: Open) -> None:
    host = open_host(place="process", call_s=0.3)
    host.reset({})
    with pytest.raises(ServiceError, match=r"no reply within 0\.3 s"):
        host.act({"do": "pause"})
    assert not host.is_alive()


def test_interpreter_that_is_no_python_is_an_error(
    toy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    program = tmp_path / "python"
    program.write_text("no program")
    program.chmod(0o755)
    with pytest.raises(ConfigurationError, match="cannot be started"):
        ChildHost(SimulatorSpec(toy, interpreter=str(program))).start()
    assert not list(tmp_path.glob("visenv-child-*"))


def test_target_in_no_package_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **kwargs: started.append(args))
    with pytest.raises(ConfigurationError, match="no package 'nowhere'"):
        ChildHost(SimulatorSpec("nowhere.sim:Toy", interpreter=sys.executable)).start()
    assert not started


@pytest.mark.slow
def test_forked_process_starts_simulators_of_its_own(
    open_host: Open, spec: Callable[..., SimulatorSpec]
) -> None:
    open_host().close()
    forked = multiprocessing.get_context("fork").Process(target=start_and_close, args=(spec(),))
    forked.start()
    forked.join(30)
    forked.kill()
    forked.join()
    assert forked.exitcode == 0


def start_and_close(spec: SimulatorSpec) -> None:
    host = ChildHost(spec)
    host.start()
    host.close()


def test_interpreter_that_does_not_exist_names_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("VISENV_SIMULATORS", str(tmp_path / "nothing"))
    with pytest.raises(ConfigurationError, match=r"VISENV_SIMULATORS must be a Python.*install"):
        find_interpreter()
    assert find_interpreter(sys.executable) == sys.executable


def test_closing_lets_the_simulator_close_itself(open_host: Open, tmp_path: Path) -> None:
    mark = tmp_path / "closed"
    host = open_host({"closed": str(mark)})
    host.close()
    assert mark.exists()
    assert isinstance(host, ChildHost)
    wait_until_gone(host.pid)


@pytest.mark.slow
@pytest.mark.parametrize("end", ["close", "die"])
def test_temporary_files_of_a_child_are_deleted_with_it(
    open_host: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    host = open_host()
    (folder,) = tmp_path.glob("visenv-child-*")
    (folder / "left").write_text("by the simulator")
    if end == "close":
        host.close()
    else:
        with pytest.raises(ServiceError):
            host.reset({"reset": "die"})
    assert not folder.exists()


def test_closing_ends_what_the_simulator_started(open_host: Open) -> None:
    host = open_host()
    assert isinstance(host, ChildHost)
    host.reset({"reset": "grandchild"})
    host.child._drain()
    grandchild = int(host.child._log.decode().rpartition("grandchild ")[2].split()[0])
    assert is_running(grandchild)
    host.kill()
    wait_until_gone(grandchild)


def test_grandchild_of_a_killed_simulator_ends_when_its_host_is_closed(open_host: Open) -> None:
    host = open_host()
    assert isinstance(host, ChildHost)
    host.reset({"reset": "grandchild"})
    host.child._drain()
    grandchild = int(host.child._log.decode().rpartition("grandchild ")[2].split()[0])
    os.kill(host.pid, signal.SIGKILL)
    wait_until(lambda: not host.is_alive())
    assert is_running(grandchild)
    host.close()
    wait_until_gone(grandchild)


def test_child_that_is_idle_for_too_long_ends(open_host: Open) -> None:
    host = open_host(idle_s=0.2)
    assert isinstance(host, ChildHost)
    wait_until_gone(host.pid)
    with pytest.raises(ServiceError, match="idle for too long"):
        host.reset({})


def test_kill_from_another_thread_ends_the_call_that_waits(open_host: Open) -> None:
    host = open_host()
    host.reset({})
    threading.Timer(0.3, host.kill).start()
    with pytest.raises(ServiceError, match="ended with status -9"):
        host.act({"do": "hang"})


def test_child_outlives_the_thread_that_asked_for_it(open_host: Open) -> None:
    hosts: list[SimulatorHost] = []
    thread = threading.Thread(target=lambda: hosts.append(open_host()))
    thread.start()
    thread.join()
    assert hosts[0].reset({"from": 1}).facts == {"count": 1}


@pytest.mark.slow
@pytest.mark.parametrize("state", ["idle", "hanging"])
def test_child_does_not_outlive_a_killed_parent(toy: str, tmp_path: Path, state: str) -> None:
    program = f"""
import sys, threading, time
sys.path.insert(0, {str(tmp_path)!r})
from visenv.simulators.host import ChildHost
from visenv.simulators.settings import SimulatorSpec
host = ChildHost(SimulatorSpec({toy!r}, interpreter=sys.executable))
host.start()
print(host.pid, flush=True)
host.reset({{"reset": "hang" if {state == "hanging"} else None}})
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    time.sleep(0.2)
    assert is_running(pid)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_until_gone(pid)


@pytest.mark.slow
def test_random_kills_lose_only_the_calls_they_hit(open_host: Open) -> None:
    rng = random.Random(0)
    lost = 0
    for _ in range(8):
        host = open_host()
        assert isinstance(host, ChildHost)
        host.reset({})
        timer = threading.Timer(rng.random() * 0.02, os.kill, (host.pid, signal.SIGKILL))
        timer.start()
        count = 0
        try:
            while True:
                count += 1
                assert host.act({"add": 1}, frames={}).facts == {"count": count}
        except ServiceError:
            lost += 1
        timer.join()
        wait_until_gone(host.pid)
    assert lost == 8


@pytest.mark.parametrize("module", [program, wire, child, protocol, opengl])
def test_modules_of_a_child_are_written_for_python_3_9(module: Any) -> None:
    text = Path(module.__file__).read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 9))
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
        )
    }
    assert imported - {"numpy", "visenv"} <= set(sys.stdlib_module_names)


def test_array_of_an_unknown_type_is_refused_when_it_is_packed() -> None:
    with pytest.raises(wire.WireError, match="complex128"):
        wire.pack({}, {"x": np.zeros(2, complex)})
