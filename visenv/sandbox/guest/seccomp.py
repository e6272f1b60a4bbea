"""Filters system calls: a program may make only the calls that are listed here.

The filter is classic BPF (``linux/filter.h``), which is assembled here without a compiler or a
library. Most calls are allowed by number. A few are allowed only with certain arguments; the filter
compares the lower 32 bits, which are those that the kernel reads. There are five kinds of refusal:

- pretended: returns 0 and does nothing, for modes and times of files. `shutil.copy` sets them and
  would fail otherwise, and Landlock does not control them.
- no link: reading a link without namespaces fails as for a file that is no link. Landlock does not
  control this call, which could read links of the host.
- not supported: extended attributes, which copying does not require.
- unknown: ``clone3`` (glibc then uses ``clone``, whose flags are visible in a register) and all
  calls newer than this list, so that libraries use older ones.
- forbidden: all other calls.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable
from functools import lru_cache

from . import kernel, syscalls

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, operand: a ``struct sock_filter``."""

# Codes: the sum of a class, a size or operation, and the source of the operand.
_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS: a word of struct seccomp_data
_EQUAL, _AT_LEAST, _ANY_BIT = 0x15, 0x35, 0x45  # BPF_JMP | BPF_JEQ, BPF_JGE, BPF_JSET | BPF_K
_AND = 0x54  # BPF_ALU | BPF_AND | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K

# struct seccomp_data: int nr; __u32 arch; __u64 instruction_pointer; __u64 args[6].
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16

# SECCOMP_RET_* of linux/seccomp.h; the lower 16 bits contain an errno.
_ALLOW: Instruction = (_RETURN, 0, 0, 0x7FFF_0000)
_KILL: Instruction = (_RETURN, 0, 0, 0x8000_0000)
_ERRNO = 0x0005_0000
_FORBIDDEN: Instruction = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
_UNKNOWN: Instruction = (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)
_NO_LINK: Instruction = (_RETURN, 0, 0, _ERRNO | errno.EINVAL)
_UNSUPPORTED: Instruction = (_RETURN, 0, 0, _ERRNO | errno.EOPNOTSUPP)
_PRETENDED: Instruction = (_RETURN, 0, 0, _ERRNO)

ALLOWED = syscalls.names("""
    read write readv writev pread64 pwrite64 preadv pwritev lseek close close_range dup dup2 dup3
    pipe poll ppoll select pselect6 ftruncate fsync fdatasync
    stat fstat lstat newfstatat statx access faccessat faccessat2 getcwd getdents getdents64
    mkdir mkdirat rmdir unlink unlinkat rename renameat umask
    munmap mprotect mremap msync brk
    set_robust_list rseq sched_yield rt_sigaction rt_sigprocmask
    rt_sigreturn sigaltstack alarm setitimer getitimer restart_syscall exit exit_group
    getpid gettid getppid getuid geteuid getgid getegid getresuid getresgid getgroups
    getrlimit getrusage times time gettimeofday nanosleep getrandom getcpu
""")

PRETENDED = syscalls.names("chmod fchmod fchmodat fchmodat2 utime utimes futimesat utimensat")

UNSUPPORTED = syscalls.names("""
    setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr
""")

# F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC. No locks: other programs and the
# host would see a lock on a library file. No leases, owners, seals or pipe sizes.
_FCNTL = (0, 1, 2, 3, 4, 1030)
# TCGETS (isatty), TIOCGWINSZ (terminal size), FIONBIO (os.set_blocking), FIONCLEX and FIOCLEX
# (inheritable descriptors).
_IOCTL = (0x5401, 0x5413, 0x5421, 0x5450, 0x5451)
# PR_SET_NAME and PR_GET_NAME: names of threads.
_PRCTL = (15, 16)
# MADV_NORMAL to MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE, MADV_NOHUGEPAGE. Not MADV_MERGEABLE, which
# would reveal the pages of other programs.
_MADVISE = (0, 1, 2, 3, 4, 8, 14, 15)
# The clocks of the system. Other numbers are clocks of processes and of devices.
_CLOCKS = range(12)
# No flag, O_NONBLOCK, O_CLOEXEC, both. O_EXCL would make a pipe for kernel notifications.
_PIPES = (0, 0o4000, 0o2000000, 0o2004000)
# Flags of clone in glibc's pthread_create: CLONE_VM | FS | FILES | SIGHAND | THREAD | SYSVSEM |
# SETTLS | PARENT_SETTID | CHILD_CLEARTID; musl adds CLONE_DETACHED.
_THREAD = (0x003D_0F00, 0x007D_0F00)
# FUTEX_WAIT, FUTEX_WAIT_BITSET and the latter with FUTEX_CLOCK_REALTIME: the C library uses them to
# wait for the end of a thread. Waking a thread requires FUTEX_PRIVATE_FLAG: all programs share the
# pages of libraries, and could signal each other by a word on such a page.
_WAITS, _FUTEX_PRIVATE = (0, 9, 9 | 256), 128
# MAP_SHARED; MAP_ANONYMOUS; MAP_HUGETLB, which uses pages reserved by another process.
_MAP_SHARED, _MAP_ANONYMOUS, _MAP_HUGETLB = 0x01, 0x20, 0x4_0000
_TMPFILE = 0o20000000  # __O_TMPFILE; O_TMPFILE also contains O_DIRECTORY

_X32 = 0x4000_0000  # __X32_SYSCALL_BIT
_ACCESS_MODE = 3  # O_ACCMODE


def program(own_pid: int, *, private: bool) -> bytes:
    """Return the filter in the format of the kernel, 8 bytes for each instruction.

    Args:
        own_pid: The only process that may receive signals; `abort` sends one.
        private: Whether the process has its own namespaces. Only then are threads limited, is the
            host name not that of the host, and does changing the directory reveal nothing.

    Raises:
        OSError: If there is no table of calls for the architecture.
    """
    machine = syscalls.machine()
    code: list[Instruction] = [(_LOAD, 0, 0, _ARCHITECTURE_AT), (_EQUAL, 1, 0, machine.audit)]
    code += [_KILL, (_LOAD, 0, 0, _NUMBER_AT)]
    if machine.x32:
        code += [(_AT_LEAST, 0, 1, _X32), _KILL]
    code += _each(ALLOWED, [_ALLOW])
    code += _each(PRETENDED, [_PRETENDED])
    code += _each(UNSUPPORTED, [_UNSUPPORTED])
    code += _each(["clone3"], [_UNKNOWN])
    code += _each(["uname", "chdir", "fchdir"], [_ALLOW if private else _FORBIDDEN])
    code += _each(["readlink", "readlinkat"], [_ALLOW if private else _NO_LINK])
    # With the number of another process, it tells whether that process exists.
    code += _each(["sched_getaffinity"], _one_of(0, (0, own_pid)))
    code += _each(["futex"], _waking())
    code += _each(["mmap"], _mapping())
    code += _each(["open"], _opening(1))
    code += _each(["openat"], _opening(2))
    # With another mode, it would reserve space that no limit on file sizes counts.
    code += _each(["fallocate"], _one_of(1, (0,)))
    code += _each(["fcntl"], _one_of(1, _FCNTL))
    code += _each(["ioctl"], _one_of(1, _IOCTL))
    code += _each(["prctl"], _one_of(0, _PRCTL))
    code += _each(["madvise"], _one_of(2, _MADVISE))
    code += _each(["clock_gettime", "clock_getres", "clock_nanosleep"], _one_of(0, _CLOCKS))
    code += _each(["pipe2"], _one_of(1, _PIPES))
    code += _each(["renameat2"], _one_of(4, (0,)))
    code += _each(["tgkill"], _one_of(0, (own_pid,)))
    code += _each(["clone"], _one_of(0, _THREAD if private else ()))
    code += _each(["prlimit64"], _reading_own_limits())
    code += [(_AT_LEAST, 0, 1, syscalls.NEWEST + 1), _UNKNOWN, _FORBIDDEN]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


class _Program(ctypes.Structure):
    """Mirrors ``struct sock_fprog``: the number of instructions, and their address."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def install(code: bytes) -> None:
    """Apply a filter to this thread.

    This is irreversible and needs ``no_new_privs`` or a capability.

    Raises:
        OSError: If the kernel has no seccomp filters or refuses this one.
    """
    buffer = ctypes.create_string_buffer(code, len(code))
    described = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    kernel.prctl(kernel.PR_SET_SECCOMP, kernel.SECCOMP_MODE_FILTER, ctypes.byref(described))


def _each(names: Iterable[str], body: list[Instruction]) -> list[Instruction]:
    """Return instructions that run `body` for each of these calls that this architecture has.

    The last instruction of `body` ends the filter, so that no later instruction is reached.
    """
    numbers = [number for name in names if (number := syscalls.number(name)) is not None]
    return [step for number in numbers for step in ((_EQUAL, 0, len(body), number), *body)]


def _argument(index: int, *, upper: bool = False) -> Instruction:
    """Load half of an argument; on both architectures, the lower half comes first."""
    return (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * index + 4 * upper)


def _one_of(index: int, values: Iterable[int]) -> list[Instruction]:
    """Allow the call if the argument is one of these values."""
    tests = [step for value in values for step in ((_EQUAL, 0, 1, value), _ALLOW)]
    return [_argument(index), *tests, _FORBIDDEN]


def _waking() -> list[Instruction]:
    """Allow all private futexes of this process, and waiting for shared ones."""
    return [_argument(1), (_ANY_BIT, 0, 1, _FUTEX_PRIVATE), _ALLOW, *_one_of(1, _WAITS)]


def _mapping() -> list[Instruction]:
    """Refuse memory that stays allocated, but in no address space, after most of it is unmapped."""
    return [
        _argument(3),
        (_ANY_BIT, 0, 1, _MAP_HUGETLB),
        _FORBIDDEN,
        (_ANY_BIT, 0, 2, _MAP_ANONYMOUS),
        (_ANY_BIT, 0, 1, _MAP_SHARED),
        _FORBIDDEN,
        _ALLOW,
    ]


def _opening(flags: int) -> list[Instruction]:
    """Refuse opening files without a name, and opening for reading with O_TRUNC.

    Landlock treats a file without a name as writing to an existing file, and no limit counts such
    files. Before ABI 3, Landlock permits O_RDONLY | O_TRUNC as reading.
    """
    return [
        _argument(flags),
        (_ANY_BIT, 0, 1, _TMPFILE),
        _UNSUPPORTED,
        (_ANY_BIT, 1, 0, os.O_TRUNC),
        _ALLOW,
        (_AND, 0, 0, _ACCESS_MODE),
        (_EQUAL, 0, 1, os.O_RDONLY),
        _FORBIDDEN,
        _ALLOW,
    ]


def _reading_own_limits() -> list[Instruction]:
    """Allow ``prlimit64(0, which, NULL, &old)``, which getrlimit of the C library uses."""
    must_be_zero = (_argument(0), _argument(2), _argument(2, upper=True))
    tests = [step for load in must_be_zero for step in (load, (_EQUAL, 1, 0, 0), _FORBIDDEN)]
    return [*tests, _ALLOW]


cached_program = lru_cache(maxsize=8)(program)
"""`program` with a cache, because the filter is the same for every process 1."""
