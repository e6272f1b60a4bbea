"""Tests attacks on the kernel and on other processes: every call that a program does not need."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from visenv.sandbox import Execution, SandboxLimits
from visenv.sandbox.guest import seccomp, syscalls

pytestmark = pytest.mark.attack(
    "sandbox: a program opens no socket, starts no process and sends no signal"
)

Attack = Callable[..., Execution]

REFUSED = {
    # network
    "sockets of every family": """
import socket
every(denied(socket.socket, family, kind) for family in range(46) for kind in (1, 2, 3, 5))
""",
    "pairs of sockets": "import socket\ndenied(socket.socketpair)",
    "a connection": "import socket\ndenied(socket.create_connection, ('127.0.0.1', 80))",
    "a name looked up": """
import socket
isinstance(caught(socket.getaddrinfo, "localhost", 80), socket.gaierror)
""",
    # processes
    "fork": "denied(os.fork)",
    "vfork": "denied(call, 'vfork')",
    "a pseudo-terminal and fork": "denied(os.forkpty)",
    "clone without sharing": "denied(call, 'syscall', 56, 17, 0, 0, 0, 0)",
    "clone3": "denied(call, 435, ctypes.create_string_buffer(88), 88)",
    "another program": """
every(denied(os.execv, each, ['x']) for each in ('/bin/sh', sys.executable))
""",
    "a spawned program": "denied(os.posix_spawn, '/bin/true', ['true'], {})",
    "subprocess": "import subprocess\ndenied(subprocess.run, ['true'])",
    "a shell": "os.system('true') >> 8 == 127",
    "multiprocessing": """
import multiprocessing
denied(multiprocessing.Process(target=print).start)
""",
    "a program in memory": "denied(os.memfd_create, 'program')",
    "a program by descriptor": """
every([denied(call, 322, 4, b"", None, None, 0x1000), denied(os.execve, 4, ["x"], {})])
""",
    "a semaphore with a name": """
import multiprocessing
isinstance(caught(multiprocessing.Semaphore), OSError)
""",
    "another personality": "every(denied(call, 135, each) for each in (0, 0x40000, 0x400000))",
    "descriptors sent to others": "every(denied(call, n, 1, 0, 0) for n in (46, 47, 299, 307))",
    "faults and barriers": "every(denied(call, n, 0, 0, 0) for n in (323, 324, 424, 434))",
    "segments and ports": "every(denied(call, n, 0, 0, 0) for n in (154, 158, 172, 173))",
    "the disks' caches and swap": "every(denied(call, n, 0, 0, 0) for n in (162, 167, 306, 451))",
    "a secret in memory": "denied(call, 447, 0)",
    "leaving the session": "every([denied(os.setsid), denied(os.setpgid, 0, 0)])",
    # signals and inspection of other processes
    "signals": "every(denied(os.kill, pid, 9) for pid in (-1, 0, 1, 2, os.getppid(), os.getpid()))",
    "signals to groups": "denied(os.killpg, 0, 9)",
    "signals to threads": """
every(denied(call, 'tgkill', pid, pid, 9) for pid in (2, os.getppid() or 7, os.getpid() + 1))
""",
    "queued signals": "denied(call, 'sigqueue', os.getppid() or 1, 9, 0)",
    "processes by descriptor": "denied(os.pidfd_open, os.getpid())",
    "a signal by descriptor": "denied(call, 424, 0, 9, 0, 0)",
    "a descriptor of another process": "denied(call, 438, 0, 0, 0)",
    "memory of another process": """
every(denied(call, name, os.getppid() or 1, 0, 0, 0, 0, 0)
      for name in ("process_vm_readv", "process_vm_writev"))
""",
    "tracing": """
every(denied(call, 'ptrace', how, os.getppid() or 1, 0, 0) for how in (0, 16, 0x4206))
""",
    "comparing processes": "denied(call, 312, 1, os.getpid(), 0, 0, 0)",
    "advice for another process": "denied(call, 440, 0, 0, 0, 0, 0)",
    "limits of another process": """
import resource
denied(resource.prlimit, os.getppid() or 2, resource.RLIMIT_CPU)
""",
    # namespaces and mounts
    "namespaces of its own": "every(denied(call, 'unshare', 1 << bit) for bit in range(7, 32))",
    "a namespace of another": "denied(call, 'setns', 0, 0)",
    "a child in a user namespace": "denied(call, 56, 0x10000000 | 17, 0, 0, 0, 0)",
    "mounts": "denied(call, 'mount', b'none', b'/', b'tmpfs', 0, None)",
    "an unmount": "denied(call, 'umount2', b'/', 2)",
    "the new calls for mounts": "every(denied(call, n, 0, 0, 0, 0, 0) for n in range(428, 434))",
    "changing root": "every([denied(os.chroot, '.'), denied(call, 155, b'.', b'.')])",
    # privileges
    "becoming root": """
every(denied(act, 0) for act in (os.setuid, os.seteuid, os.setgid, os.setegid))
""",
    "joining groups": "denied(os.setgroups, [0])",
    "capabilities": "denied(call, 'capset', b'\\x22\\x05\\x08\\x20' + bytes(4), bytes(24))",
    "privileges by prctl": """
every(denied(call, 'prctl', option, 1, 0, 0, 0) for option in (1, 4, 8, 24, 28, 36, 38, 47, 59))
""",
    "another filter": "every([denied(call, 317, 1, 0, 0), denied(call, 'prctl', 22, 2, 0, 0, 0)])",
    "another ruleset": "denied(call, 444, 0, 0, 1)",
    "higher limits": """
import resource
def raise_one(which):
    resource.setrlimit(which, (resource.RLIM_INFINITY,) * 2)
every(isinstance(caught(raise_one, which), (PermissionError, ValueError)) for which in range(16))
""",
    "priority": "every([denied(os.nice, -5), denied(os.setpriority, 0, 0, -5)])",
    "scheduling": """
every([denied(os.sched_setscheduler, 0, 1, os.sched_param(1)),
       denied(os.sched_setaffinity, 0, [0])])
""",
    # calls that were used to attack kernels
    "io_uring": "every(denied(call, number, 8, 0, 0, 0, 0, 0) for number in (425, 426, 427))",
    "bpf": "denied(call, 321, 0, 0, 0)",
    "keys": "every(denied(call, n, b'user', b'a', b'b', 1, -3) for n in (248, 249, 250))",
    "userfaultfd": "denied(call, 323, 0)",
    "performance events": "denied(call, 298, ctypes.create_string_buffer(128), 0, -1, -1, 0)",
    "timers": "denied(call, 222, 0, 0, 0)",
    "splicing": """
r, w = os.pipe()
every([denied(os.sendfile, 3, 3, 0, 1), denied(os.splice, r, w, 1), denied(call, 278, w, 0, 0, 0)])
""",
    "notifications by pipe": "denied(os.pipe2, os.O_EXCL)",
    "watching files": "every(denied(call, number, 0, 0) for number in (253, 294, 300))",
    "files by handle": "every(denied(call, number, 0, 0, 0, 0, 0) for number in (303, 304))",
    "asynchronous input": """
every(denied(call, number, 0, 0, 0, 0, 0) for number in range(206, 211))
""",
    "module loading": "every(denied(call, n, 0, 0, 0, 0, 0) for n in (175, 176, 246, 313, 320))",
    "the machine": """
every(denied(call, n, 0, 0, 0, 0) for n in (163, 167, 168, 169, 170, 171, 172))
""",
    "clocks": "every([denied(call, 227, 0, 0), denied(call, 159, 0), denied(call, 305, 0, 0)])",
    "clocks of other processes": """
import time
every(denied(time.clock_gettime, (~pid << 3) | 2) for pid in (1, 2, os.getppid(), os.getpid() + 1))
""",
    "shared memory": """
every(denied(call, n, 7, 4096, 0o1777, 0) for n in ('shmget', 'semget', 'msgget'))
""",
    "POSIX message queues": "denied(call, 240, b'queue', 0o102, 0o600, 0)",
    "POSIX shared memory": """
from multiprocessing import shared_memory
denied(shared_memory.SharedMemory, create=True, size=10)
""",
    "typing into a terminal": """
import fcntl
every(denied(fcntl.ioctl, f, 0x5412, b'x') for f in range(3))
""",
    "controls of devices": """
import fcntl
every(denied(fcntl.ioctl, 0, code, 0) for code in range(99))
""",
    "owners, leases, seals, pipe sizes": """
import fcntl
every(denied(fcntl.fcntl, 1, command, 1) for command in (5, 6, 7, 8, 10, 1024, 1026, 1031, 1033))
""",
    "what pages are in memory": """
import mmap
page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE)
every([denied(call, 27, 0, 4096, bytes(1)), denied(page.madvise, 12)])
""",
    "a call nobody knows": "denied(call, 1000)",
}


@pytest.mark.parametrize("name", REFUSED)
def test_calls_that_are_not_needed_are_refused(name: str, attack: Attack) -> None:
    helper = """
def caught(act, *arguments):
    try:
        act(*arguments)
    except Exception as error:
        return error
"""
    attack(helper + REFUSED[name])


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are of x86-64")
def test_calls_that_are_not_on_the_list_are_refused(attack: Attack) -> None:
    looked_at = syscalls.names("""
        futex mmap fallocate open openat fcntl ioctl madvise clock_gettime clock_getres
        clock_nanosleep pipe2 renameat2 tgkill clone prlimit64 uname prctl
        chdir fchdir readlink readlinkat sched_getaffinity
    """)
    named = (*seccomp.ALLOWED, *seccomp.PRETENDED, *looked_at)
    listed = sorted(n for name in named if (n := syscalls.number(name)) is not None)
    # 335 and 336 (uretprobe, uprobe): new kernels exempt them from all filters, and kill callers at
    # any other place than the intended one.
    left_out = [*listed, 335, 336]
    attack(f"every(denied(call, n, 0, 0, 0, 0, 0, 0) for n in range(520) if n not in {left_out})")


MACHINE_CODE = """
import mmap
code = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex({program!r}))
address = ctypes.addressof(ctypes.c_char.from_buffer(code))
ctypes.CFUNCTYPE(ctypes.c_long)(address)()
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="machine code of x86-64")
@pytest.mark.parametrize(
    "program",
    [
        "b814000000cd80c3",  # mov eax, 20 (getpid of 32-bit programs); int 0x80; ret
        "b8270000400f05c3",  # mov eax, 0x40000027 (getpid of x32 programs); syscall; ret
    ],
    ids=["32 bit", "x32"],
)
def test_calls_made_as_by_another_architecture_kill(program: str, attack: Attack) -> None:
    execution = attack(MACHINE_CODE.format(program=program), result=None, status="crashed")
    assert "Bad system call" in execution.error


def test_threads_are_counted_or_refused(attack: Attack, mode: str) -> None:
    code = """
import threading, time
count = 0
try:
    for _ in range(500):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        count += 1
except RuntimeError:
    pass
count
"""
    # The C library reserves 64 MiB of address space for each thread.
    limits = SandboxLimits(memory_bytes=2 << 30, threads=16)
    attack(code, "16" if mode == "namespaces" else "0", limits=limits)


def test_aborting_is_allowed_and_ends_only_itself(attack: Attack) -> None:
    attack("os.abort()", result=None, status="crashed")
    attack("1 + 1", "2")
