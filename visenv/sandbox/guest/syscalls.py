"""Lists the numbers of Linux system calls for x86-64 and 64-bit ARM.

The numbers are those of the kernel's headers ``asm/unistd_64.h`` and ``asm-generic/unistd.h``; None
is a call that the architecture does not have. ARM has only the newer calls: ``openat``, but no
``open``.
"""

from __future__ import annotations

import os
from functools import cache
from typing import NamedTuple


class Architecture(NamedTuple):
    """Holds the properties of an architecture for a seccomp filter.

    Attributes:
        column: The column of the architecture in `TABLE`.
        audit: ``AUDIT_ARCH_*`` of ``linux/audit.h``, by which the kernel identifies the kind of a
            call.
        x32: Whether the numbers from 0x40000000 are a second set of the same calls, as on x86-64.
    """

    column: int
    audit: int
    x32: bool


MACHINES = {
    "x86_64": Architecture(0, 0xC000003E, x32=True),
    "aarch64": Architecture(1, 0xC00000B7, x32=False),
}

NEWEST = 469
"""``file_setattr`` (Linux 6.17). Higher numbers did not exist when this was written."""

# fmt: off
TABLE: dict[str, tuple[int | None, int | None]] = {
    # reading and writing open files
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66),
    "pread64": (17, 67), "pwrite64": (18, 68), "preadv": (295, 69), "pwritev": (296, 70),
    "lseek": (8, 62),
    "close": (3, 57), "close_range": (436, 436), "dup": (32, 23), "dup2": (33, None),
    "dup3": (292, 24), "pipe": (22, None), "pipe2": (293, 59),
    "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72),
    "ftruncate": (77, 46), "fallocate": (285, 47), "fsync": (74, 82), "fdatasync": (75, 83),
    "fcntl": (72, 25), "ioctl": (16, 29),
    # paths
    "open": (2, None), "openat": (257, 56), "stat": (4, None), "fstat": (5, 80),
    "lstat": (6, None), "newfstatat": (262, 79), "statx": (332, 291), "access": (21, None),
    "faccessat": (269, 48), "faccessat2": (439, 439), "readlink": (89, None),
    "readlinkat": (267, 78), "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50),
    "getdents": (78, None), "getdents64": (217, 61), "mkdir": (83, None), "mkdirat": (258, 34),
    "rmdir": (84, None), "unlink": (87, None), "unlinkat": (263, 35), "rename": (82, None),
    "renameat": (264, 38), "renameat2": (316, 276), "umask": (95, 166),
    # modes, times and extended attributes of files
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "getxattr": (191, 8),
    "lgetxattr": (192, 9), "fgetxattr": (193, 10), "listxattr": (194, 11), "llistxattr": (195, 12),
    "flistxattr": (196, 13),
    # memory
    "mmap": (9, 222), "munmap": (11, 215), "mprotect": (10, 226), "mremap": (25, 216),
    "madvise": (28, 233), "msync": (26, 227), "brk": (12, 214),
    # threads, signals and exit
    "clone": (56, 220), "clone3": (435, 435), "futex": (202, 98), "set_robust_list": (273, 99),
    "rseq": (334, 293), "sched_yield": (24, 124), "sched_getaffinity": (204, 123),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132), "tgkill": (234, 131), "alarm": (37, None), "setitimer": (38, 103),
    "getitimer": (36, 102), "restart_syscall": (219, 128), "exit": (60, 93),
    "exit_group": (231, 94), "prctl": (157, 167),
    # identities and times
    "getpid": (39, 172), "gettid": (186, 178), "getppid": (110, 173), "getuid": (102, 174),
    "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177), "getresuid": (118, 148),
    "getresgid": (120, 150), "getgroups": (115, 158), "uname": (63, 160), "getrlimit": (97, 163),
    "prlimit64": (302, 261), "getrusage": (98, 165), "times": (100, 153), "time": (201, None),
    "gettimeofday": (96, 169), "clock_gettime": (228, 113), "clock_getres": (229, 114),
    "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "getrandom": (318, 278),
    "getcpu": (309, 168),
    # calls for the server only
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "unshare": (272, 97),
    "setns": (308, 268), "chroot": (161, 51), "capset": (126, 91), "keyctl": (250, 219),
    "landlock_create_ruleset": (444, 444), "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
}
# fmt: on


def names(text: str) -> tuple[str, ...]:
    """Return the names in a text, which is a readable form of a long list."""
    return tuple(text.split())


@cache
def machine() -> Architecture:
    """Return the architecture of this process.

    Raises:
        OSError: If there is no table for it.
    """
    name = os.uname().machine
    if name not in MACHINES:
        raise OSError(f"no table of system calls for {name}, only for {', '.join(MACHINES)}")
    return MACHINES[name]


def number(name: str) -> int | None:
    """Return the number of a call on this architecture, None if it does not exist there."""
    return TABLE[name][machine().column]
