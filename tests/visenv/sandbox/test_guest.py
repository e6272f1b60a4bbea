"""Tests each part of the server process separately."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.sandbox.guest import landlock, libraries, seccomp, syscalls, wire
from visenv.sandbox.guest.libraries import Libraries
from visenv.sandbox.outcome import Cleaner

ALLOW, KILL = 0x7FFF_0000, 0x8000_0000
EPERM, ENOSYS = 0x5_0000 | errno.EPERM, 0x5_0000 | errno.ENOSYS
PRETEND, UNSUPPORTED = 0x5_0000, 0x5_0000 | errno.EOPNOTSUPP


def judged(program: bytes, number: int, arguments: Sequence[int] = (), audit: int = 0) -> int:
    """Return the kernel's verdict on a call, by running `program` as linux/filter.h defines."""
    words = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=iIQ6Q", number, audit or syscalls.machine().audit, 0, *words)
    code = list(struct.iter_unpack("=HBBI", program))
    place = accumulator = 0
    while True:
        operation, jump_true, jump_false, operand = code[place]
        place += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, operand)
        elif operation == 0x54:
            accumulator &= operand
        elif operation == 0x06:
            return int(operand)
        else:
            holds = {
                0x15: accumulator == operand,
                0x35: accumulator >= operand,
                0x45: bool(accumulator & operand),
            }[operation]
            place += jump_true if holds else jump_false


@pytest.fixture(params=["x86_64", "aarch64"])
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of an architecture, and pretend that this machine has it; runs for both."""
    name: str = request.param
    monkeypatch.setattr(syscalls, "machine", lambda: syscalls.MACHINES[name])
    return name


def number(name: str) -> int:
    found = syscalls.number(name)
    assert found is not None
    return found


def test_filter_allows_what_is_listed_and_nothing_else(machine: str) -> None:
    program = seccomp.program(1, private=True)
    allowed = {n for name in seccomp.ALLOWED if (n := syscalls.number(name)) is not None}
    pretended = {n for name in seccomp.PRETENDED if (n := syscalls.number(name)) is not None}
    unsupported = {n for name in seccomp.UNSUPPORTED if (n := syscalls.number(name)) is not None}
    looked_at = {
        "futex": ALLOW, "mmap": ALLOW, "fallocate": ALLOW,
        "open": ALLOW, "openat": ALLOW, "fcntl": ALLOW, "ioctl": EPERM, "madvise": ALLOW,
        "clock_gettime": ALLOW, "clock_getres": ALLOW, "clock_nanosleep": ALLOW, "pipe2": ALLOW,
        "renameat2": ALLOW, "tgkill": EPERM, "clone": EPERM, "prlimit64": ALLOW, "uname": ALLOW,
        "prctl": EPERM, "clone3": ENOSYS, "chdir": ALLOW, "fchdir": ALLOW, "readlink": ALLOW,
            "readlinkat": ALLOW, "sched_getaffinity": ALLOW,
    }  # fmt: skip
    zeros = {
        n: what for name, what in looked_at.items() if (n := syscalls.number(name)) is not None
    }
    assert len(allowed) > 60
    for call in range(syscalls.NEWEST + 1):
        expected = ALLOW if call in allowed else PRETEND if call in pretended else EPERM
        expected = UNSUPPORTED if call in unsupported else zeros.get(call, expected)
        assert judged(program, call) == expected, call
    for call in (syscalls.NEWEST + 1, 1000, 0x3FFF_FFFF):
        assert judged(program, call) == ENOSYS
    for call in (0x4000_0000, 0x4000_0001, 0x7FFF_FFFF):
        assert judged(program, call) == (KILL if machine == "x86_64" else ENOSYS)
    for audit in (0x4000_0003, 0x4000_0028, 0xC000_003E, 0xC000_00B7, 1):  # i386, arm, …
        if audit != syscalls.MACHINES[machine].audit:
            assert judged(program, 0, audit=audit) == KILL


def test_calls_that_a_program_must_not_make_are_not_listed() -> None:
    never = syscalls.names("""
        mount umount2 pivot_root unshare setns chroot capset keyctl landlock_create_ruleset
        landlock_add_rule landlock_restrict_self
    """)
    assert not {*never} & {*seccomp.ALLOWED, *seccomp.PRETENDED, *seccomp.UNSUPPORTED}


THREAD = 0x3D_0F00
UPPER = 1 << 32
ARGUMENTS = [
    ("clone", (THREAD,), ALLOW),
    ("clone", (THREAD | 0x1000_0000,), EPERM),
    ("clone", (17,), EPERM),
    ("clone", (THREAD & ~0x1_0000,), EPERM),
    ("openat", (-100 & 0xFFFF_FFFF, 1, os.O_RDONLY), ALLOW),
    ("openat", (0, 1, os.O_WRONLY | os.O_TRUNC | os.O_CREAT), ALLOW),
    ("openat", (0, 1, os.O_RDWR | os.O_TRUNC), ALLOW),
    ("openat", (0, 1, os.O_RDONLY | os.O_TRUNC), EPERM),
    ("openat", (0, 1, os.O_RDONLY | os.O_TRUNC | UPPER), EPERM),
    ("openat", (0, 1, os.O_RDWR | os.O_TMPFILE), UNSUPPORTED),
    ("openat", (0, 1, os.O_RDONLY | os.O_DIRECTORY), ALLOW),
    ("fallocate", (0, 0), ALLOW),
    ("fallocate", (0, 1), EPERM),
    ("mmap", (0, 4096, 3, 0x22), ALLOW),  # MAP_PRIVATE | MAP_ANONYMOUS
    ("mmap", (0, 4096, 3, 0x01), ALLOW),  # MAP_SHARED, of a file
    ("mmap", (0, 4096, 3, 0x21), EPERM),
    ("mmap", (0, 4096, 3, 0x23), EPERM),  # MAP_SHARED_VALIDATE
    ("mmap", (0, 4096, 3, 0x4_0022), EPERM),  # MAP_HUGETLB
    ("futex", (1, 128 | 1), ALLOW),  # FUTEX_WAKE_PRIVATE
    ("futex", (1, 0), ALLOW),  # FUTEX_WAIT
    ("futex", (1, 256 | 9), ALLOW),
    ("futex", (1, 1), EPERM),  # FUTEX_WAKE
    ("futex", (1, 10), EPERM),  # FUTEX_WAKE_BITSET
    ("futex", (1, 5), EPERM),  # FUTEX_WAKE_OP
    ("fcntl", (1, 1), ALLOW),
    ("fcntl", (1, 1033), EPERM),
    ("fcntl", (1, 6), EPERM),
    ("ioctl", (0, 0x5401), ALLOW),
    ("ioctl", (0, 0x5412), EPERM),
    ("ioctl", (0, 0x5412 | UPPER), EPERM),
    ("prctl", (15,), ALLOW),
    ("prctl", (22,), EPERM),
    ("tgkill", (1, 7, 6), ALLOW),
    ("tgkill", (2, 7, 6), EPERM),
    ("prlimit64", (0, 9, 0, 1), ALLOW),
    ("prlimit64", (1, 9, 0, 1), EPERM),
    ("prlimit64", (0, 9, 1, 0), EPERM),
    ("prlimit64", (0, 9, UPPER, 0), EPERM),
    ("madvise", (0, 0, 12), EPERM),
    ("clock_gettime", (0xFFFF_FFFA,), EPERM),
    ("pipe2", (0, 0o2000000), ALLOW),
    ("pipe2", (0, 0o200), EPERM),
    ("renameat2", (0, 0, 0, 0, 4), EPERM),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), ARGUMENTS)
def test_filter_looks_at_arguments(
    name: str, arguments: tuple[int, ...], expected: int, machine: str
) -> None:
    program = seccomp.program(1, private=True)
    assert judged(program, number(name), arguments) == expected, machine


def test_filter_without_namespaces_allows_no_threads_and_no_name_of_the_host(machine: str) -> None:
    program = seccomp.program(4711, private=False)
    assert judged(program, number("clone"), (THREAD,)) == EPERM, machine
    assert judged(program, number("uname")) == EPERM
    assert judged(program, number("tgkill"), (4711, 4711, 6)) == ALLOW
    assert judged(program, number("tgkill"), (1, 1, 6)) == EPERM


def test_numbers_are_those_this_python_makes_calls_by() -> None:
    """Compare the table with `os` and the C library, by calls that return different values."""
    from visenv.sandbox.guest import kernel

    assert kernel.syscall("getpid") == os.getpid()
    assert kernel.syscall("getuid") == os.getuid()
    assert kernel.syscall("getppid") == os.getppid()
    assert kernel.syscall("umask", 0o22) == os.umask(0o22)


def test_architecture_without_a_table_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    syscalls.machine.cache_clear()
    fake = os.uname_result(("Linux", "host", "6", "1", "riscv64"))
    with monkeypatch.context() as patched:
        patched.setattr(os, "uname", lambda: fake)
        with pytest.raises(OSError, match="no table of system calls for riscv64"):
            syscalls.machine()
    syscalls.machine.cache_clear()


# ---------------------------------------------------------------------------- landlock


def test_ruleset_handles_all_access_rights_of_the_kernel() -> None:
    # ABI 1 has 13 rights for files (0 to 12), 2 adds REFER (13), 3 TRUNCATE (14), 5 IOCTL_DEV (15).
    handled = [landlock._handled(version) for version in range(1, 8)]
    assert handled == [0x1FFF, 0x3FFF, 0x7FFF, 0x7FFF, 0xFFFF, 0xFFFF, 0xFFFF]


def test_version_is_described() -> None:
    assert landlock.described(1) == "ABI 1: files"
    assert landlock.described(4) == "ABI 4: files, truncation, TCP"
    assert landlock.described(7) == "ABI 7: files, truncation, TCP, devices, signals"


def test_rights_do_not_hold_what_makes_links_devices_or_programs() -> None:
    never = (
        landlock.EXECUTE | landlock.MAKE_CHAR | landlock.MAKE_BLOCK | landlock.MAKE_SOCK
        | landlock.MAKE_FIFO | landlock.MAKE_SYM | landlock.IOCTL_DEV
    )  # fmt: skip
    assert not (landlock.READ | landlock.CHANGE | landlock.OWN) & never
    assert not landlock.CHANGE & (landlock.MAKE_REG | landlock.MAKE_DIR | landlock.REMOVE_FILE)


# --------------------------------------------------------------------------- libraries


@pytest.mark.parametrize(
    ("file", "granted"),
    [
        ("/v/lib/python3.11/site-packages/cv2/cv2.abi3.so", "/v/lib/python3.11/site-packages/cv2"),
        ("/v/lib/python3.11/site-packages/six.py", "/v/lib/python3.11/site-packages/six.py"),
        ("/usr/lib/python3/dist-packages/numpy/a/b.so", "/usr/lib/python3/dist-packages/numpy"),
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu"),
        ("/usr/lib64/libc.so.6", "/usr/lib64"),
        ("/home/someone/libextra.so", "/home/someone/libextra.so"),
    ],
)
def test_granted_paths_of_a_file(file: str, granted: str) -> None:
    assert libraries._granted(file) == granted


def test_hidden_paths_are_left_out_of_the_granted_ones_exactly(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    top = tmp_path_factory.mktemp("prefix")
    for name in ("json", "site-packages/numpy", "site-packages/answers", "config/site-packages"):
        (top / "lib" / name).mkdir(parents=True)
    (top / "lib/os.py").touch()
    found = Libraries(
        paths=(f"{top}/lib",),
        packages=(f"{top}/lib/site-packages/numpy",),
        hidden=(f"{top}/lib/config/site-packages", f"{top}/lib/site-packages"),
    )
    assert sorted(libraries.without_hidden(found)) == [
        f"{top}/lib/json",
        f"{top}/lib/os.py",
        f"{top}/lib/site-packages/numpy",
    ]


@given(st.sets(st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join)))
def test_outermost_paths_are_kept(paths: set[str]) -> None:
    rooted = {f"/{path}" for path in paths}
    kept = libraries._outermost(rooted)
    for path in rooted:
        assert sum(path == each or path.startswith(f"{each}/") for each in kept) == 1


# -------------------------------------------------------------------------------- text


def test_paths_of_the_host_lose_all_but_their_last_name() -> None:
    clean = Cleaner(["/home/me/venv", "/home/me/venv/lib/site-packages"], "/dev/shm/visenv-1")
    text = b'File "/home/me/venv/lib/site-packages/PIL/Image.py", /home/me/venv/bin, /home/me/venv2'
    assert clean(text) == 'File "site-packages/PIL/Image.py", venv/bin, /home/me/venv2'
    assert clean(b"/dev/shm/visenv-1/" + b"0f" * 16 + b"/a.jpg") == "/sandbox/work/a.jpg"
    assert clean(b"\xff\x00") == "\N{REPLACEMENT CHARACTER}\x00"


def test_cleaner_without_private_paths_changes_nothing() -> None:
    assert Cleaner([], "")(b"/usr/lib/python3.11/json") == "/usr/lib/python3.11/json"


@given(st.binary(max_size=200))
def test_cleaner_takes_any_bytes(content: bytes) -> None:
    assert isinstance(Cleaner(["/a/b"], "/c")(content), str)


@given(st.integers(-(1 << 31), (1 << 31) - 1), st.floats(0, 1e9), st.integers(0, 1 << 40))
def test_end_is_read_as_it_was_written(status: int, cpu: float, memory: int) -> None:
    end = wire.CellEnd(status, cpu, memory)
    assert wire.CellEnd.unpack(end.pack()) == end
