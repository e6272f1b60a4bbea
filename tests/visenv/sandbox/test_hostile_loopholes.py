"""Tests attacks that use allowed calls to evade the limits; each was found by experiments."""

from __future__ import annotations

import io
import os
import struct
import threading
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import PIL.Image
import pytest

from tests.visenv.sandbox.probing import chunk
from visenv.sandbox import Execution, Sandbox, SandboxLimits
from visenv.sandbox.guest import libraries, wire

Attack = Callable[..., Execution]

UNCOUNTED = {
    # Shared memory is kept while one page of it is mapped, but only that page is counted.
    "shared memory": """
import mmap
every([denied(mmap.mmap, -1, 4096), denied(call, 9, 0, 4096, 3, 0x21, -1, 0),
       denied(call, 9, 0, 4096, 3, 0x23, -1, 0)])
""",
    "a device that is memory": "every(denied(os.open, '/dev/zero', how) for how in (0, 2))",
    "pages set aside by others": """
every(denied(call, 9, 0, 1 << 21, 3, 0x40022 | size << 26, -1, 0) for size in (0, 21, 30))
""",
    "files without a name": """
every(denied(os.open, place, os.O_TMPFILE | os.O_RDWR, 0o600) for place in (".", "/", "/dev"))
""",
    "room beyond the end of a file": """
file = os.open("path_to_output_image.jpg", os.O_RDWR | os.O_CREAT)
every(denied(call, "fallocate", file, mode, 0, 1 << 40) for mode in (1, 2, 3, 8, 16, 32, 64))
""",
    "larger pipes": """
import fcntl
every(denied(fcntl.fcntl, end, 1031, 1 << 20) for end in os.pipe())
""",
    "memory of its results": """
every(denied(os.pwrite, number, bytes(1), os.fstat(number).st_size) for number in (3, 4, 5))
""",
}


@pytest.mark.attack(
    "sandbox: a program cannot exceed its limits of time, memory, files, threads and output"
)
@pytest.mark.parametrize("name", UNCOUNTED)
def test_memory_that_no_limit_would_count_is_refused(name: str, attack: Attack) -> None:
    attack(UNCOUNTED[name], limits=SandboxLimits(disk_bytes=1 << 30, wall_seconds=30.0))


PAGE = """
import time
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
page = libc.mmap(None, 4096, 1, 1, os.open(os.__file__, os.O_RDONLY), 0)
word = ctypes.c_uint.from_address(page).value
print("mapped", flush=True)
"""
WAITING = """
seconds = (ctypes.c_long * 2)(1, 0)
try:
    print(call(202, ctypes.c_void_p(page), 0, word, seconds, None, 0))
except OSError as error:
    print(errno.errorcode[error.errno])
"""
RINGING = """
ends = time.monotonic() + 0.5
outcomes = set()
while time.monotonic() < ends:
    for how in (1, 3, 4, 5, 10):  # FUTEX_WAKE, REQUEUE, CMP_REQUEUE, WAKE_OP, WAKE_BITSET
        outcomes.add(denied(call, 202, ctypes.c_void_p(page), how, 9, None, None, -1))
outcomes == {True}
"""


@pytest.mark.attack("sandbox: programs do not see or affect each other, and leave nothing behind")
def test_programs_cannot_ring_each_other_up_by_a_page_of_a_library(attack: Attack) -> None:
    waited: list[Execution] = []
    waiting = threading.Thread(target=lambda: waited.append(attack(PAGE + WAITING, result=None)))
    waiting.start()
    while waiting.is_alive():
        attack(PAGE + RINGING)
    waiting.join()
    assert waited[0].stdout == "mapped\nETIMEDOUT\n"


STREAMS = {
    "none": "sys.stdout = None",
    "none at all": "del sys.stdout, sys.stderr, sys.__stdout__",
    "closed": "sys.stdout.close()",
    "closed below": "os.close(1)",
    "another": "import io\nsys.stdout = io.StringIO()\nprint('lost')",
    "one that raises": "class Stream:\n    def flush(self): 1 / 0\nsys.stdout = Stream()",
    "one that leaves": "class Stream:\n    def flush(self): sys.exit(3)\nsys.stdout = Stream()",
    "strict": "sys.stdout.reconfigure(encoding='ascii', errors='strict')",
}


@pytest.mark.attack(
    "sandbox: your process takes a result once, and decodes no file that a program wrote"
)
@pytest.mark.parametrize("name", STREAMS)
def test_closed_streams_do_not_change_the_result(name: str, attack: Attack) -> None:
    execution = attack(f"print('said', end='')\n{STREAMS[name]}\n6 * 7", "42")
    assert execution.stdout in ("said", "")
    assert execution.stdout == "said" or name in ("none at all", "closed below")


@pytest.mark.attack(
    "sandbox: your process takes a result once, and decodes no file that a program wrote"
)
def test_stream_of_before_can_be_had_back(attack: Attack) -> None:
    code = (
        "import io\nsys.stdout = io.StringIO()\nsys.stdout = sys.__stdout__\nprint('back', end='')"
    )
    assert attack(code, "").stdout == "back"


UNSPEAKABLE = {
    "leaving with what has no name": """
class Code:
    def __str__(self): raise KeyboardInterrupt
raise SystemExit(Code())
""",
    "leaving with what compares badly": """
class Code:
    def __eq__(self, other): raise ValueError
raise SystemExit(Code())
""",
    "a traceback that raises": """
class Bad(Exception):
    __traceback__ = property(lambda self: 1 / 0)
raise Bad
""",
    "notes that raise": """
class Bad(Exception):
    @property
    def __notes__(self): raise KeyboardInterrupt
raise Bad
""",
    "no way to tell": "import traceback\ntraceback.format_exception = None\n1 / 0",
}


@pytest.mark.attack(
    "sandbox: your process takes a result once, and decodes no file that a program wrote"
)
@pytest.mark.parametrize("name", UNSPEAKABLE)
def test_exception_that_cannot_be_shown_is_one_like_others(name: str, attack: Attack) -> None:
    execution = attack(UNSPEAKABLE[name], result="", status="error")
    assert execution.error == "The program raised an exception that cannot be shown."
    assert execution.stdout == ""


SPEAKABLE = {
    "no string": ("class Bad(Exception):\n    def __str__(self): 1 / 0\nraise Bad", "Bad: <exc"),
    "a cycle of causes": (
        "a, b = KeyError(1), KeyError(2)\na.__cause__ = b\nraise b from a",
        "KeyE",
    ),
    "a result without a name": (
        "class X:\n    def __repr__(self): sys.exit(4)\nX()",
        "SystemExit: 4",
    ),
    "a result whose name is none": (
        "class X:\n    __repr__ = lambda s: 5\nX()",
        "TypeError: __repr__",
    ),
    "a tracer that raises": ("sys.settrace(lambda *a: 1 / 0)\ndef f(): pass\nf()", "ZeroDivisionE"),
}


@pytest.mark.attack(
    "sandbox: your process takes a result once, and decodes no file that a program wrote"
)
@pytest.mark.parametrize("name", SPEAKABLE)
def test_exception_of_any_kind_is_reported(name: str, attack: Attack) -> None:
    code, told = SPEAKABLE[name]
    execution = attack(code, result="", status="error")
    assert execution.error.rpartition("\n")[2].startswith(told), execution.error


SABOTAGE = {
    "its end": "os._exit = lambda *code: None",
    "its report": "sys.modules['guest.wire'].REPORT = 1",
    "every function": "import builtins\nbuiltins.len = builtins.str = builtins.open = None",
    "every act": "sys.addaudithook(lambda *event: 1 / 0)",
    "every moment": """
import signal
signal.signal(signal.SIGALRM, lambda *_: 1 / 0)
signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
""",
}


@pytest.mark.attack(
    "sandbox: your process takes a result once, and decodes no file that a program wrote"
)
@pytest.mark.parametrize("name", SABOTAGE)
def test_report_that_a_program_spoils_is_none(name: str, attack: Attack) -> None:
    execution = attack(SABOTAGE[name] + "\n6 * 7", None, status=None)
    whole, crashed = ("ok", "42"), ("crashed", "")
    # The timer may be too late to spoil the report, or stop the program before its report.
    expected = {"its end": [whole], "every moment": [whole, ("error", ""), crashed]}
    assert (execution.status, execution.result) in expected.get(name, [crashed])
    assert execution.image is None


RAISED = {9: "memory", 15: "crashed", 19: "wall", 11: "crashed", 24: "crashed", 31: "crashed"}


@pytest.mark.attack("sandbox: a program opens no socket, starts no process and sends no signal")
@pytest.mark.parametrize("number", RAISED)
def test_signals_to_itself_end_or_stop_only_itself(number: int, attack: Attack, mode: str) -> None:
    """Check signals; process 1 of a namespace receives only those that it has a handler for."""
    status = "ok" if mode == "namespaces" else RAISED[number]
    code = f"import signal\nsignal.raise_signal({number})\n1"
    limits = SandboxLimits(wall_seconds=0.5 if status == "wall" else 30.0)
    attack(code, None, status=status, limits=limits)
    attack("1 + 1", "2")


# -------------------------------------------------------- images, and changes while they are read


def png(width: int, height: int, *chunks: tuple[bytes, bytes], rows: int = 4) -> bytes:
    """Return a gray PNG with additional chunks, and with this number of rows of 4 pixels."""
    parts = [chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))]
    parts += [chunk(*each) for each in chunks]
    parts += [chunk(b"IDAT", zlib.compress(bytes(5 * rows))), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@cache
def bomb() -> bytes:
    """Return 200 MiB of zeros, compressed."""
    return zlib.compress(bytes(200 << 20), 9)


def pages(kind: str, count: int) -> bytes:
    buffer = io.BytesIO()
    made = [PIL.Image.new("L", (4, 4), number) for number in range(count)]
    made[0].save(buffer, kind, save_all=True, append_images=made[1:])
    return buffer.getvalue()


def pages_without_end() -> bytes:
    """Return a TIFF whose first page names itself as the next page."""
    content = bytearray(pages("TIFF", 1))
    (first,) = struct.unpack_from("<I", content, 4)
    (entries,) = struct.unpack_from("<H", content, first)
    struct.pack_into("<I", content, first + 2 + 12 * entries, first)
    return bytes(content)


FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "a colour profile that is a bomb": (
        lambda: png(4, 4, (b"iCCP", b"a\0\0" + bomb())),
        "ValueError",
    ),
    "a text that is a bomb": (lambda: png(4, 4, (b"zTXt", b"a\0\0" + bomb())), "ValueError"),
    "a billion pixels in a column": (lambda: png(1, 10**9), "1x1000000000 = 1,000,000,000 pixels"),
    "a billion pixels in a row": (lambda: png(10**9, 1), "1000000000x1 = 1,000,000,000 pixels"),
    "no pixels": (lambda: png(0, 0), "UnidentifiedImageError"),
    "many pages": (lambda: pages("TIFF", 50), ""),
    "pages without end": (pages_without_end, ""),
    "many frames": (lambda: pages("GIF", 50), ""),
    "an image, then a program": (lambda: png(4, 4) + b"<script>alert(1)</script>", ""),
}


@pytest.mark.attack(
    "sandbox: your process takes a result once, and decodes no file that a program wrote"
)
@pytest.mark.parametrize("name", FILES)
def test_file_is_read_no_further_than_an_image(name: str, sandbox: Sandbox) -> None:
    content, problem = FILES[name][0](), FILES[name][1]
    code = "import shutil\nshutil.copy('given.bin', 'path_to_output_image.jpg')\n0"
    limits = SandboxLimits(wall_seconds=30.0, memory_bytes=256 << 20)
    execution = sandbox.run(code, {"given.bin": content}, limits=limits)
    assert execution.status == "ok", execution
    assert problem in execution.image_problem
    assert (execution.image is None) == bool(problem)
    if execution.image is not None:
        assert execution.image.size == (4, 4)


CHANGED_WHILE_READ = """
import threading
def swap():
    while True:
        for name in ("small.png", "bomb.png"):
            with open("next", "wb") as file:
                file.write(open(name, "rb").read())
            os.replace("next", "path_to_output_image.jpg")
threading.Thread(target=swap).start()
while not os.path.exists("path_to_output_image.jpg"):
    pass
"""


@pytest.mark.attack(
    "sandbox: your process takes a result once, and decodes no file that a program wrote"
)
def test_image_that_changes_while_it_is_read_is_one_or_none(sandbox: Sandbox, mode: str) -> None:
    given = {"small.png": png(4, 4), "bomb.png": png(50_000, 50_000)}
    limits = SandboxLimits(wall_seconds=30.0)
    for _ in range(5):
        execution = sandbox.run("import os" + CHANGED_WHILE_READ, given, limits=limits)
        if mode == "landlock":  # this mode allows no threads
            assert "RuntimeError: can't start new thread" in execution.error
            return
        assert execution.status == "ok", execution
        taken = execution.image and execution.image.size
        assert taken == (4, 4) or (taken is None and "50000x50000" in execution.image_problem)


@pytest.mark.attack(
    "sandbox: your process takes a result once, and decodes no file that a program wrote"
)
def test_report_that_changes_while_it_is_read_is_one_of_them(sandbox: Sandbox) -> None:
    """Check that the result is one of the two whole reports: writes end before it is read."""
    one, other = (wire.ProgramReport(result=letter * 60_000).pack() for letter in (b"a", b"b"))
    code = f"""
import os
one, other = {one!r}, {other!r}
os.pwrite(3, one, 0)
os.closerange(1, 3)
while True:
    try:
        os.pwrite(3, other, 0), os.pwrite(3, one, 0)
    except OSError:
        pass
"""
    limits = SandboxLimits(wall_seconds=30.0)
    for _ in range(3):
        execution = sandbox.run(code, limits=limits)
        assert execution.status == "ok"
        assert execution.result in ("a" * 60_000, "b" * 60_000)


# ------------------------------------------------------------------- information about others


@pytest.mark.attack("sandbox: a program reads and changes nothing of the host")
def test_links_and_directories_of_the_host_cannot_be_found_out(attack: Attack, mode: str) -> None:
    """Check that a private root hides the host; without namespaces the calls are refused."""
    refused = "{'EINVAL'}, {'EPERM'}"
    nothing_there = "{'ENOENT'}, {'ENOENT'}"
    execution = attack(
        """
def kind(act, *arguments):
    try:
        act(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"
({kind(os.readlink, path) for path in ("/proc/self/exe", "/proc/1/cwd")},
 {kind(os.chdir, path) for path in ("/root/.ssh", "/proc", "/etc/ssl", "/var/log")})
""",
        result=None,
    )
    assert execution.result == f"({refused if mode == 'landlock' else nothing_there})"


@pytest.mark.attack("sandbox: programs do not see or affect each other, and leave nothing behind")
def test_names_of_directories_cannot_be_guessed(attack: Attack, mode: str) -> None:
    """Check that names are secret, since they would reveal the size of another program's image."""
    names = {attack("os.path.basename(os.environ['HOME'])", result=None).result for _ in range(3)}
    if mode == "namespaces":
        assert names == {"'work'"}  # each program has its own file system
    attack("""
import re
parent, name = os.path.split(os.environ["HOME"])
near = [f"{parent}/{number}" for number in range(2000)]
seen = [path for path in near if os.path.exists(path)]
not seen and denied(os.listdir, parent) is not False or seen
""")


@pytest.mark.attack("sandbox: programs do not see or affect each other, and leave nothing behind")
def test_name_of_a_directory_is_long_and_random(sandbox: Sandbox, mode: str) -> None:
    if mode == "namespaces":
        return  # all names are equal, and no program sees another's directory
    code = (
        "import os\nlen(os.path.basename(os.environ['HOME'])), len(set(os.environ['HOME'][-32:]))"
    )
    results = [sandbox.run(code).result for _ in range(3)]
    assert all(result.startswith("(32, ") for result in results)


READING = """
import numpy
place = os.path.dirname(numpy.__file__)
names = [f"{place}/{name}" for name in ("__config__.py", "dtypes.py", "exceptions.py")]
"""


@pytest.mark.attack("sandbox: programs do not see or affect each other, and leave nothing behind")
def test_program_does_not_see_which_files_another_has_read() -> None:
    """Check the access times of library files, which could transfer one bit for each file."""
    import os
    from pathlib import Path

    import numpy as np

    from visenv.sandbox import LocalBackend

    place = Path(np.__file__).parent
    files = [place / name for name in ("__config__.py", "dtypes.py", "exceptions.py")]
    for file in files:  # as after an installation: the last read is before the last write
        written = file.stat().st_mtime
        os.utime(file, (written - 100, written))
    with Sandbox(LocalBackend(isolation="landlock", ahead=0)) as sandbox:
        looking = f"import os{READING}[os.stat(name).st_atime_ns for name in names]"
        before = sandbox.run(looking).result
        sandbox.run(f"import os{READING}open(names[0]).read(), open(names[2]).read()")
        assert sandbox.run(looking).result == before != ""


@pytest.mark.attack("sandbox: programs do not see or affect each other, and leave nothing behind")
def test_program_does_not_see_which_links_another_has_followed(tmp_path: Path) -> None:
    """Check the access times of links in a library, each of which could transfer one bit."""
    package = tmp_path / "linked"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "target.txt").write_text("text")
    links = [package / f"link{number}" for number in range(3)]
    for link in links:
        link.symlink_to("target.txt")
        written = link.lstat().st_mtime
        os.utime(link, (written - 100, written), follow_symlinks=False)
    libraries.read_all([str(package)])
    before = [link.lstat().st_atime_ns for link in links]
    for link in links[:2]:
        link.stat()  # follows the link
    assert [link.lstat().st_atime_ns for link in links] == before


@pytest.mark.attack("sandbox: programs do not see or affect each other, and leave nothing behind")
def test_program_cannot_list_processes_by_their_affinity(attack: Attack) -> None:
    attack("bool(os.sched_getaffinity(0)) and denied(os.sched_getaffinity, 2)")
