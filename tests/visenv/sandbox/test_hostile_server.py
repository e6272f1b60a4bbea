"""Tests attacks on the fork server and on other programs: no change outlives its program."""

from __future__ import annotations

import re
import secrets
import threading
import time
from ast import literal_eval
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.visenv.sandbox.probing import children, server_of
from tests.waiting import wait_until
from visenv.sandbox import Execution, LocalBackend, Sandbox, SandboxLimits
from visenv.types import Image

pytestmark = pytest.mark.attack(
    "sandbox: programs do not see or affect each other, and leave nothing behind"
)

Attack = Callable[..., Execution]

STATE = """
import random, builtins, json
(sorted(os.environ), os.listdir("."), len(sys.modules), sys.path, random.random(),
 float(np.random.rand()), json.dumps({"a": 1}), len(vars(builtins)), cv2.getNumThreads(),
 sys.getrecursionlimit(), Image.MAX_IMAGE_PIXELS, sys.stdout.encoding, hash("a"),
 int(np.zeros(3).sum()), cv2.imencode(".png", np.zeros((2, 2, 3), np.uint8))[0],
 np.geterr(), np.get_printoptions(), cv2.useOptimized(), float(cv2.randu(np.zeros(1), 0, 1)[0]),
 sorted(Image.OPEN), len(sys.meta_path), len(sys.path_hooks), sys.gettrace(), sys.getprofile(),
 sys.getswitchinterval(), sys.stdin.closed, __import__("signal").getitimer(0), os.umask(0o77),
 __import__("gc").isenabled(), __import__("locale").setlocale(0), __import__("warnings").filters,
 [__import__("signal").getsignal(n) for n in (2, 10, 14, 17)], __import__("resource").getrlimit(0))
"""
"""Returns all state that an earlier program could have changed."""

TAMPERING = {
    "environment and directory": """
os.environ['LEFT'] = '1'; os.mkdir('left') if os.access('.', 2) else 0
""",
    "modules": "sys.modules['json'] = None; del sys.modules['random']; sys.path.clear()",
    "builtins": "import builtins; builtins.left = 1; builtins.len = lambda each: 7",
    "libraries": "np.zeros = None; cv2.imencode = None; Image.open = None; cv2.setNumThreads(9)",
    "random states": "import random; random.seed(5); np.random.seed(5); np.random.rand(100)",
    "the interpreter": "sys.setrecursionlimit(50_000); sys.stdout = None; sys.exit = None",
    "a file": "open('path_to_output_image.jpg', 'w').write('left')",
    "a thread that stays": """
try:
    import threading, time
    threading.Thread(target=time.sleep, args=(1e6,)).start()
except RuntimeError:
    pass
""",
    "every object there is": """
import gc
for each in gc.get_objects():
    if isinstance(each, dict) and each is not globals() and "__builtins__" not in each:
        try:
            each.pop("left", None)
            each["left"] = 1
        except Exception:
            pass
""",
    "the server's code": """
import gc
for each in list(sys.modules.values()):
    if getattr(each, "__name__", "").startswith("guest"):
        for name in list(vars(each)):
            if not name.startswith("__"):
                setattr(each, name, None)
import os as system
system._exit(0)
""",
    "the server's objects": """
import gc, socket
for each in gc.get_objects():
    if isinstance(each, socket.socket):
        try:
            each.send(b"spawn")
        except OSError:
            pass
    elif type(each).__name__ in ("Server", "Setting"):
        try:
            vars(each).clear()
        except TypeError:
            pass
""",
    "memory of small integers": "ctypes.memset(id(7) + 24, 9, 1)\nos._exit(0)",
    "memory of the interpreter": "ctypes.memset(id(None), 0, 16)\nos._exit(0)",
    "memory of the libraries": "ctypes.memset(id(np.ndarray), 0, 64)\nos._exit(0)",
    "signals": "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    "settings of the libraries": """
np.seterr(all="raise"); np.set_printoptions(precision=1); cv2.setUseOptimized(False)
cv2.setRNGSeed(99); Image.OPEN.clear(); Image.MAX_IMAGE_PIXELS = 1
""",
    "how modules are found": "sys.meta_path.clear(); sys.path_hooks.clear(); sys.modules.clear()",
    "what is called at every step": """
import threading
for place in (sys, threading):
    place.settrace(lambda *a: None); place.setprofile(lambda *a: None)
sys.addaudithook(lambda *a: None); sys.setswitchinterval(9)
""",
    "what is called at the end": """
import atexit, gc, weakref
atexit.register(os.write, 1, b"left"); gc.callbacks.append(lambda *a: None); gc.disable()
weakref.finalize(os, os.write, 1, b"left")
""",
    "what is called by the clock": """
import signal
signal.signal(signal.SIGALRM, lambda *_: None); signal.setitimer(signal.ITIMER_REAL, 1, 1)
os.umask(0o777)
""",
    "how text is read and written": """
import codecs, copyreg, locale, warnings
codecs.register(lambda name: None); copyreg.dispatch_table.clear(); warnings.filters.clear()
sys.stdin.close(); sys.stdout.close()
""",
    "the server's loop, begun again": """
import gc
for each in gc.get_objects():
    if type(each).__name__ == "Server":
        for act in (each._spawn, each._reap, each.run):
            try:
                act()
            except OSError:
                pass
""",
    "the way out of the fork": """
os._exit = lambda *code: None
sys.modules["guest.cell"]._give_up = None
raise BaseException("out of the fork")
""",
    "its output": "os.set_blocking(1, False); os.dup2(0, 1); os.dup2(0, 2)",
}


@pytest.fixture(scope="module")
def pristine(attack: Attack) -> str:
    """Return the state of a program that runs after programs without side effects."""
    return attack(STATE, result=None).result


@pytest.mark.parametrize("name", TAMPERING)
def test_changes_of_a_program_end_with_it(
    name: str, attack: Attack, sandbox: Sandbox, pristine: str
) -> None:
    from_before = sandbox.backend
    assert isinstance(from_before, LocalBackend)
    server = server_of(sandbox).pid
    sandbox.run(
        f"import ctypes, os, sys\n{TAMPERING[name]}", limits=SandboxLimits(wall_seconds=5.0)
    )
    for _ in range(3):  # more than are kept ready: some were forked later
        assert attack(STATE, result=None).result == pristine
    assert server_of(sandbox).pid == server  # the same server made them


def test_program_has_no_way_to_the_server(attack: Attack) -> None:
    attack(
        """
import gc, socket
found = [each for each in gc.get_objects() if isinstance(each, socket.socket)]
def use(each):
    try:
        each.send(b"spawn")
    except OSError:
        return True
    return "sent"
len(found) > 0 and every(use(each) for each in found)
"""
    )


def test_server_shares_no_memory_with_programs(sandbox: Sandbox) -> None:
    maps = Path(f"/proc/{server_of(sandbox).pid}/maps").read_text()
    shared = [line for line in maps.splitlines() if re.search(" .w.s ", line)]
    assert len(maps) > 1000
    assert shared == []


def _memory(pid: int) -> bytes:
    """Return all memory that a process can write to."""
    parts = []
    with Path(f"/proc/{pid}/mem").open("rb") as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            place = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
            if place:
                start, end = (int(each, 16) for each in place.groups())
                memory.seek(start)
                parts.append(memory.read(end - start))
    return b"".join(parts)


def test_memory_that_programs_are_copied_from_has_no_trace_of_earlier_ones(
    sandbox: Sandbox,
) -> None:
    marker = secrets.token_hex(16)
    pixels = np.frombuffer(bytes.fromhex(marker) * 3, np.uint8).reshape(4, 4, 3)
    code = f"secret = '{marker}'\nprint(secret)\nsecret"
    execution = sandbox.run(code, {"image": Image.from_pixels(pixels.copy())})
    assert execution.result == repr(marker)
    server = server_of(sandbox).pid
    traces = (marker.encode(), bytes.fromhex(marker))
    memory = _memory(server)
    assert b"guest" in memory  # this is the memory of the server
    assert not any(trace in memory for trace in traces)
    # The process that ran the program may still be ending. The others wait for programs, so a trace
    # in one of them would stay.
    wait_until(lambda: not any(trace in held for held in _waiting(server) for trace in traces))


def _waiting(server: int) -> list[bytes]:
    """Return the memory of each child of the server; wait until there is a child."""
    held: list[bytes] = []
    while not held:
        for process in children(server):
            with suppress(OSError):  # it has just ended
                held.append(_memory(process))
    return held


def test_programs_at_the_same_time_do_not_see_each_other(sandbox: Sandbox, attack: Attack) -> None:
    hidden = """
import os, time
open("path_to_output_image.jpg", "w").write("ground truth")
os.environ["ANSWER"] = "42"
time.sleep(1)
"""
    looking = """
found = []
for top in ("/", "/sandbox", "/sandbox/work", "/dev/shm", "/tmp", "..", "../.."):
    for place, _, names in os.walk(top):
        for name in names:
            if name.endswith(".jpg") and os.path.realpath(place) != os.path.realpath("."):
                found.append(place)
(found, os.environ.get("ANSWER"), os.path.exists("path_to_input_image.jpg"))
"""
    first = threading.Thread(target=sandbox.run, args=(hidden,))
    first.start()
    try:
        while first.is_alive():
            attack(looking, "([], None, False)")
    finally:
        first.join()


def test_directories_of_others_stay_shut_though_their_names_be_known(
    sandbox: Sandbox, attack: Attack
) -> None:
    """Check directories of other programs on the host, whose random names the attacker is given."""
    hello = sandbox.backend.hello()  # type: ignore[attr-defined]
    if not hello.scratch:
        attack("os.listdir('/sandbox')", "['work']")
        return
    prying = """
scratch = {scratch!r}
others = [path for path in {known} if path != os.environ["HOME"] and os.path.isdir(path)]
name = "path_to_output_image.jpg"
outcomes = [denied(os.listdir, scratch)]
for other in others:
    outcomes += [denied(os.listdir, other), denied(open, f"{{other}}/{{name}}"),
                 denied(open, f"{{other}}/{{name}}", "w"), denied(os.mkdir, f"{{other}}/d")]
(len(others), every(outcomes))
"""
    most = 0
    while most == 0:  # until the attacker has run while another program did
        waiting = threading.Thread(target=sandbox.run, args=("import time\ntime.sleep(1)",))
        waiting.start()
        while waiting.is_alive():
            known = [str(path) for path in Path(hello.scratch).iterdir()]
            code = prying.format(scratch=hello.scratch, known=known)
            others, outcomes = literal_eval(attack(code, None).result)
            assert outcomes is True
            most = max(most, others)
        waiting.join()


def test_host_has_nothing_left_of_a_server(
    sandbox: Sandbox, open_files: Callable[[], Counter[str]]
) -> None:
    assert isinstance(sandbox.backend, LocalBackend)
    scratch, server = sandbox.backend.hello().scratch, server_of(sandbox).pid

    def state() -> tuple[int, ...]:
        """Return the numbers of processes, descriptors and directories of the cells kept ready."""
        counted = [f"/proc/{server}/fd", *([scratch] if scratch else [])]
        return (len(children(server)), *(len(list(Path(each).iterdir())) for each in counted))

    def less_or_equal(now: tuple[int, ...], then: tuple[int, ...]) -> bool:
        return all(one <= other for one, other in zip(now, then, strict=True))

    def settled() -> tuple[int, ...]:
        """Return the state after ended programs are removed and the cells kept ready are made."""
        seen = [state()]
        for _ in range(400):
            if seen[-1][0] == ready and seen[-10:] == [seen[-1]] * 10:
                break
            time.sleep(0.05)
            seen.append(state())
        return seen[-1]

    ready = 2
    before, opened = settled(), open_files()
    for _ in range(20):
        sandbox.run("open('path_to_output_image.jpg', 'w').write('x' * 1000)")
    after = settled()
    for _ in range(5):  # a busy machine may pause while it makes a cell
        if less_or_equal(after, before):
            break
        after = settled()
    assert less_or_equal(after, before), (after, before)
    assert open_files() <= opened


def test_limits_of_one_program_are_not_those_of_the_next(sandbox: Sandbox) -> None:
    tight = replace(
        SandboxLimits(), memory_bytes=8 << 20, threads=1, descriptors=16, disk_bytes=4096
    )
    assert sandbox.run("bytearray(64 << 20)", limits=tight).status == "memory"
    assert sandbox.run("len(bytearray(64 << 20))").result == str(64 << 20)
