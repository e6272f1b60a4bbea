"""Tests attacks on scarce resources: memory, disk, time, descriptors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.environments import few
from visenv.sandbox import Execution, Sandbox, SandboxLimits

pytestmark = pytest.mark.attack(
    "sandbox: a program cannot exceed its limits of time, memory, files, threads and output"
)

Attack = Callable[..., Execution]

LIMITS = SandboxLimits(
    wall_seconds=30.0, cpu_seconds=20, memory_bytes=256 << 20, disk_bytes=4 << 20
)
SHORT = replace(LIMITS, wall_seconds=0.25)

MEMORY = {
    "one block": "bytearray(1 << 30)",
    "many blocks": "x = []\nwhile True: x.append(bytearray(32 << 20))",
    "an array": "np.ones((1 << 30,), np.uint8)",
    "a mapping": "import mmap\ntry: mmap.mmap(-1, 1 << 34)\nexcept OSError: raise MemoryError",
    "an image": "cv2.resize(np.zeros((9, 9, 3), np.uint8), (20000, 20000))",
    "a string": "'x' * (1 << 33)",
    "a power": "1 << (1 << 34)",
}


@pytest.mark.parametrize("name", MEMORY)
def test_memory_has_an_end(name: str, attack: Attack) -> None:
    execution = attack(MEMORY[name], result=None, status="memory", limits=LIMITS)
    assert execution.memory_bytes < LIMITS.memory_bytes + (100 << 20)


ENDLESS = {
    "in Python": "while True: pass",
    "asleep": "import time\ntime.sleep(3600)",
    "in a regular expression": "import re\nre.match('(a+)+$', 'a' * 50 + 'b')",
    "in arithmetic": "pow(3, 10**9)",
    "in C": "libc.pause.restype = None\nwhile True: libc.usleep(1000)",
    "waiting for input": "r, w = os.pipe()\nos.read(r, 1)",
    "in a repr": "class X:\n    def __repr__(self):\n        while True: pass\nX()",
    "in a traceback": """
class X(Exception):
    def __str__(self):
        while True: pass
raise X
""",
    "in a destructor": "class X:\n    def __del__(self):\n        while True: pass\nX()\n1",
    "in a thread": """
import threading
lock = threading.Lock()
lock.acquire()
lock.acquire()
""",
    "without heeding signals": """
import signal, time
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True: time.sleep(1)
""",
    "woken by alarms": """
import signal, time
signal.signal(signal.SIGALRM, lambda *_: signal.setitimer(signal.ITIMER_REAL, 0.01))
signal.setitimer(signal.ITIMER_REAL, 0.01)
while True: time.sleep(1)
""",
    "catching everything": """
while True:
    try:
        while True: pass
    except BaseException:
        pass
""",
    "with its output closed": "os.closerange(0, 3)\nwhile True: pass",
    "with everything closed": "os.closerange(0, 1000)\nwhile True: pass",
}


@pytest.mark.parametrize("name", few([*ENDLESS], 10))
def test_time_has_an_end(name: str, attack: Attack) -> None:
    execution = attack(ENDLESS[name], result=None, status="wall", limits=SHORT)
    assert execution.error == "The program was stopped: it ran for more than 0.25 s."
    assert execution.seconds >= 0.25


def test_cpu_time_is_limited_even_if_the_signal_is_ignored(attack: Attack) -> None:
    limits = replace(LIMITS, cpu_seconds=1)
    code = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    execution = attack(code, result=None, status="cpu", limits=limits)
    assert execution.cpu_seconds < 3.0


def test_output_before_a_timeout_is_reported(attack: Attack) -> None:
    code = "print('so far')\nwhile True: pass"
    limits = replace(LIMITS, wall_seconds=3.0)
    assert attack(code, result=None, status="wall", limits=limits).stdout == "so far\n"


def test_disk_has_an_end(attack: Attack, mode: str) -> None:
    code = """
written = 0
try:
    for number in range(100):
        with open(f"{number}.bin", "wb", buffering=0) as file:
            written += file.write(bytes(1 << 20))
except OSError:
    pass
written
"""
    attack(code, str(4 << 20) if mode == "namespaces" else "0", limits=LIMITS)


def test_file_size_is_limited(attack: Attack) -> None:
    code = """
def write():
    with open("path_to_output_image.jpg", "wb", buffering=0) as file:
        for _ in range(100):
            file.write(bytes(1 << 20))
try:
    write()
except OSError as error:
    print(error.strerror)
os.stat("path_to_output_image.jpg").st_size
"""
    assert attack(code, str(4 << 20), limits=LIMITS).stdout == "File too large\n"


def test_files_have_an_end(attack: Attack, mode: str) -> None:
    code = """
made = 0
try:
    while True:
        os.close(os.open(f"{made}", os.O_CREAT))
        made += 1
except OSError:
    pass
made
"""
    # A separate file system uses one entry for its root directory, in addition to the output.
    attack(code, "256" if mode == "namespaces" else "0")


def test_deep_tree_is_removed_with_everything_else(attack: Attack, mode: str) -> None:
    code = """
depth = 0
try:
    while True:
        os.mkdir("d")
        os.chdir("d")
        depth += 1
except OSError:
    pass
depth
"""
    attack(code, "256" if mode == "namespaces" else "0")
    attack("os.listdir('.')", "[]" if mode == "namespaces" else "['path_to_output_image.jpg']")


def test_descriptors_have_an_end(attack: Attack) -> None:
    code = """
count = 0
try:
    while True:
        os.dup(0)
        count += 1
except OSError:
    pass
count
"""
    attack(code, str(64 - 6))


FLOODS = {
    "standard output": "while True: print('x' * 1000)",
    "standard error": "while True: print('x' * 1000, file=sys.stderr)",
    "both, unbuffered": "while True: os.write(1, b'x' * 65536), os.write(2, b'y' * 65536)",
    "from C": "while True: libc.puts(b'x' * 1000)",
}


@pytest.mark.parametrize("name", FLOODS)
def test_output_has_an_end(name: str, attack: Attack) -> None:
    limits = replace(LIMITS, stdout_bytes=100_000)
    execution = attack(FLOODS[name], result=None, status="output", limits=limits)
    assert len(execution.stdout) == 100_000
    assert execution.error == "The program was stopped: it wrote over 100,000 bytes."


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("'x' * (5 << 20)", "ok"),
        ("raise ValueError('x' * (5 << 20))", "error"),
        ("raise ExceptionGroup('many', [ValueError('x' * 1000)] * 5000)", "error"),
    ],
    ids=["result", "error", "errors"],
)
def test_result_and_traceback_are_cut(code: str, status: str, attack: Attack) -> None:
    execution = attack(code, result=None, status=status)
    assert len(execution.result) <= 1 << 16
    assert len(execution.error) <= 1 << 16


CRASHES = {
    "a null pointer": ("ctypes.string_at(0)", "The program crashed: Segmentation fault or abort."),
    "the C stack": (
        """
items = (ctypes.c_int * 2)(2, 1)
sys.setrecursionlimit(1 << 30)
@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def again(a, b):
    libc.qsort(items, 2, 4, again)
    return 0
libc.qsort(items, 2, 4, again)
""",
        "The program crashed: Segmentation fault or abort.",
    ),
    "the end, at once": (
        "os._exit(0)",
        "The process ended before the program was finished.",
    ),
    "the end, with a code": (
        "os._exit(7)",
        "The process ended with exit code 7 before the program was finished.",
    ),
    "the C library's end": (
        "libc.exit(3)",
        "The process ended with exit code 3 before the program was finished.",
    ),
}


@pytest.mark.parametrize("name", CRASHES)
def test_crash_is_reported_with_the_output_before_it(name: str, attack: Attack) -> None:
    code, told = CRASHES[name]
    execution = attack("print('said')\n" + code, result=None, status="crashed")
    assert execution.error == told
    assert execution.stdout == "said\n"


def test_recursion_without_end_has_a_traceback_that_has_one(attack: Attack) -> None:
    execution = attack("def f(): f()\nf()", result=None, status="error")
    assert execution.error.endswith("RecursionError: maximum recursion depth exceeded")
    assert execution.error.count("\n") < 60


SOURCES = {
    "too many parentheses": "(" * 5000 + ")" * 5000,
    "a deep expression": "+".join(["1"] * 100_000),
    "a deep attribute": "a" + ".b" * 50_000,
    "a zero byte": "x = 1\0",
    "a lone surrogate": "x = '\udcff'",
    "no Python": "<code>```python\nimport cv2\n```",
    "half a line": "cv2.imwrite('path_to_output",
    "wrong indentation": "if True:\nx = 1",
    "an old syntax": "print 'hello'",
}


@pytest.mark.parametrize("name", SOURCES)
def test_source_that_cannot_be_compiled_is_an_error_like_others(
    name: str, sandbox: Sandbox
) -> None:
    execution = sandbox.run(SOURCES[name])
    assert execution.status in ("error", "memory")
    last = execution.error.rpartition("\n")[2]
    assert last.startswith(
        (
            "SyntaxError",
            "IndentationError",
            "RecursionError",
            "ValueError",
            "MemoryError",
            "UnicodeEncodeError",
        )
    )


def test_program_of_many_megabytes_is_not_run(sandbox: Sandbox) -> None:
    execution = sandbox.run("#" * ((1 << 20) + 1))
    assert execution.status == "refused"
    assert execution.error == "The code has 1,048,577 bytes; at most 1,048,576 are run."
    assert sandbox.run("#" * (1 << 20)).status == "ok"
