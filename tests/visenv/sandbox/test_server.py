"""Tests early ends of the server, of a process that it made, or of the client."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.listeners import family, listeners, require_listed
from tests.visenv.sandbox.probing import children, server_of
from tests.waiting import wait_until
from visenv.errors import ServiceError
from visenv.sandbox import Execution, LocalBackend, Sandbox, SandboxLimits
from visenv.sandbox.fork_server import ForkServer
from visenv.sandbox.local import Isolation

LIMITS = SandboxLimits(wall_seconds=60.0)


@pytest.fixture(scope="module", params=["namespaces", "landlock"])
def mended(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Yield a sandbox that repairs itself between the tests, which break it."""
    isolation: Isolation = request.param
    with Sandbox(LocalBackend(isolation=isolation, ahead=1), limits=LIMITS) as made:
        yield made


@pytest.fixture
def own(mended: Sandbox) -> Sandbox:
    """Return a sandbox that a test may break, with a process that waits for a program."""
    assert mended.run("1").status == "ok"
    return mended


def facts(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on; those of a zombie if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ["Z", *"0" * 20]


def lives(pid: int) -> bool:
    return facts(pid)[0] != "Z"


def in_background(sandbox: Sandbox, code: str) -> tuple[threading.Thread, list[Execution]]:
    found: list[Execution] = []
    thread = threading.Thread(target=lambda: found.append(sandbox.run(code)))
    thread.start()
    return thread, found


def running(server: ForkServer) -> int:
    """Return the id of the only running program, found by its use of CPU."""
    found: list[int] = []

    def busy() -> bool:
        found[:] = [pid for pid in children(server.pid) if int(facts(pid)[11]) > 10]
        return bool(found)

    wait_until(busy)
    return found[0]


@pytest.mark.attack("servers: the table of listeners is complete")
def test_sandbox_listens_nowhere(own: Sandbox) -> None:
    before = listeners([os.getpid()])
    assert own.run("1").result == "1"
    require_listed("sandbox", listeners(family(os.getpid())) - before)


def test_server_that_died_is_replaced(own: Sandbox) -> None:
    first = server_of(own).pid
    os.kill(first, signal.SIGKILL)
    # The waiting process may run the first program before it is killed with the server.
    assert [own.run("1 + 1").result for _ in range(2)] == ["2", "2"]
    assert server_of(own).pid != first


@pytest.mark.attack("sandbox: programs do not see or affect each other, and leave nothing behind")
def test_server_that_dies_takes_everything_along_and_programs_run_again(own: Sandbox) -> None:
    server = server_of(own)
    began = "import time\nends = time.monotonic() + 3\nwhile time.monotonic() < ends: pass\n'done'"
    thread, found = in_background(own, began)
    program = running(server)
    os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: not lives(program))
    thread.join()
    assert [each.result for each in found] == ["'done'"]


def test_process_that_waits_and_dies_is_replaced(own: Sandbox) -> None:
    server = server_of(own)
    old = children(server.pid)
    assert own.run("1").status == "ok"  # the waiting process ran it, and a new one waits
    waiting: list[int] = []

    def alone() -> bool:
        waiting[:] = children(server.pid)
        return len(waiting) == 1 and waiting[0] not in old

    wait_until(alone)
    os.kill(waiting[0], signal.SIGKILL)
    assert own.run("1 + 1").result == "2"


def test_program_killed_from_outside_is_reported(own: Sandbox) -> None:
    server = server_of(own)
    thread, found = in_background(own, "while True: pass")
    os.kill(running(server), signal.SIGKILL)
    thread.join()
    assert found[0].status == "memory"
    assert found[0].error == "The program was killed, most likely because memory ran out."
    assert own.run("1").status == "ok"
    assert server_of(own) is server


STARVING = """
import os, resource, sys, time
from visenv.sandbox import LocalBackend, Sandbox
lacking = {"namespaces": (resource.RLIMIT_AS, 1 << 20), "landlock": (resource.RLIMIT_NOFILE, 12)}
for isolation, (which, most) in lacking.items():
    with Sandbox(LocalBackend(isolation=isolation, ahead=1)) as sandbox:
        sandbox.start()
        starved = sandbox.backend._server
        resource.prlimit(starved.pid, which, (most, most))
        assert [sandbox.run("1 + 1").result for _ in range(4)] == ["2"] * 4
        assert sandbox.backend._server is not starved
        while not starved.ended:
            time.sleep(0.05)
print("done")
"""


def test_server_that_cannot_make_processes_any_more_is_replaced() -> None:
    """Run as an ordinary user, who may lower limits of processes; root in a container may not."""
    user = [] if os.geteuid() else [str(Path(__file__).with_name("as_user.py"))]
    done = subprocess.run(
        [sys.executable, *user, "-c", STARVING],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_server_that_cannot_start_raises_an_error_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Sandbox() as sandbox:
        monkeypatch.setattr(sys, "executable", "/bin/false")
        with pytest.raises(ServiceError, match="the server ended at its start"):
            sandbox.run("1")
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        with pytest.raises(ServiceError, match="cannot be started"):
            sandbox.run("1")
        monkeypatch.undo()
        assert sandbox.run("1").result == "1"


@pytest.mark.attack("sandbox: programs do not see or affect each other, and leave nothing behind")
def test_closing_kills_what_runs(own: Sandbox) -> None:
    server = server_of(own)
    failed: list[str] = []

    def run() -> None:
        try:
            own.run("while True: pass")
        except ServiceError as error:
            failed.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    program = running(server)
    own.close()
    thread.join()
    assert failed == ["sandbox: it was closed while the program ran"]
    wait_until(lambda: not lives(program))
    assert not lives(server.pid)


CLIENT = """
import sys, threading, time
from visenv.sandbox import SandboxLimits, LocalBackend, Sandbox
sandbox = Sandbox(LocalBackend(isolation=sys.argv[1]), limits=SandboxLimits(wall_seconds=600.0))
sandbox.start()
threading.Thread(target=sandbox.run, args=("import time\\ntime.sleep(600)",), daemon=True).start()
time.sleep(0.5)
print(sandbox.backend._server.pid, sandbox.backend.hello().scratch, flush=True)
time.sleep(600)
"""


@pytest.mark.attack("sandbox: programs do not see or affect each other, and leave nothing behind")
@pytest.mark.parametrize("isolation", ["namespaces", "landlock"])
def test_client_that_is_killed_takes_everything_along(isolation: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, isolation], stdout=subprocess.PIPE, text=True
    ) as client:
        assert client.stdout is not None
        words = client.stdout.readline().split()
        server = int(words[0])
        everything = [server, *children(server)]
        assert len(everything) >= 2
        client.kill()
        client.wait()
    wait_until(lambda: not any(lives(pid) for pid in everything))


FORKING = """
import os, sys, warnings
warnings.simplefilter("ignore")  # that a process with threads is forked is what is tried
from visenv.sandbox import Sandbox
sandbox = Sandbox()
assert sandbox.run("1").result == "1"
server = sandbox.backend._server.pid
pid = os.fork()
if pid == 0:
    assert sandbox.run("2").result == "2"
    assert sandbox.backend._server.pid != server
    sys.exit(7)  # with all that is done at exit
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
assert sandbox.run("3").result == "3"
assert sandbox.backend._server.pid == server
print("done")
"""


def test_forked_client_has_a_server_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORKING],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


@pytest.mark.attack("sandbox: programs do not see or affect each other, and leave nothing behind")
def test_forgotten_sandbox_leaves_nothing_behind() -> None:
    sandbox = Sandbox()
    sandbox.start()
    pid = server_of(sandbox).pid
    assert lives(pid)
    del sandbox
    wait_until(lambda: not lives(pid))
    assert not Path(f"/proc/{pid}").exists()  # the zombie was removed too


@pytest.mark.attack("sandbox: programs do not see or affect each other, and leave nothing behind")
def test_directories_of_killed_clients_are_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from visenv.sandbox.guest import root

    monkeypatch.setattr(root, "_IN_MEMORY", tmp_path)
    monkeypatch.setattr(root, "_is_roomy", lambda *_: True)
    made = Path(root.make_scratch())
    left = made.with_name("visenv-sandbox-left-by-a-test")
    left.mkdir()
    (left / "1").mkdir()
    fresh = made.with_name("visenv-sandbox-fresh")
    fresh.mkdir()
    os.utime(left, (0, 0))
    again = Path(root.make_scratch())
    try:
        assert not left.exists()
        assert fresh.exists()  # its owner may be about to lock it
        assert made.exists()  # it is locked
    finally:
        for each in (fresh, made, again):
            each.rmdir()
