"""Makes sandboxes with both kinds of isolation, and runs attacks in them."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from visenv.errors import ConfigurationError
from visenv.sandbox import Execution, LocalBackend, Sandbox, SandboxLimits
from visenv.sandbox.local import Isolation

PRELUDE = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
REFUSED = {errno.EPERM, errno.EACCES, errno.ENOENT, errno.EROFS, errno.EXDEV, errno.ENOSYS,
           errno.EOPNOTSUPP}
def denied(act, *arguments, **named):
    try:
        got = act(*arguments, **named)
    except OSError as error:
        return error.errno in REFUSED or f"errno {error.errno}"
    return f"got {got!r}"
def call(what, *arguments):
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    ctypes.set_errno(0)
    number = isinstance(what, int)
    done = libc.syscall(ctypes.c_long(what), *words) if number else getattr(libc, what)(*words)
    if done == -1:
        raise OSError(ctypes.get_errno(), "")
    return done
def every(outcomes):
    outcomes = list(outcomes)
    return all(outcome is True for outcome in outcomes) or outcomes
"""
"""`denied` is True where the kernel refused; `call` calls a C function or a system call."""

LIMITS = SandboxLimits(wall_seconds=30.0, cpu_seconds=20, memory_bytes=512 << 20)
"""Limits far above the needs of honest programs: only an attack or a fault reaches them."""


@pytest.fixture(scope="session", params=["namespaces", "landlock"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Yield a sandbox with each of the two kinds of isolation."""
    isolation: Isolation = request.param
    backend = LocalBackend(isolation=isolation, ahead=2)
    with Sandbox(backend, limits=LIMITS, workers=4) as made:
        try:
            made.start()
        except ConfigurationError as error:
            if os.environ.get("CI") == "true":  # as for components in tests/conftest.py
                raise
            pytest.skip(f"{isolation} cannot be tried on this machine: {error}")
        yield made


@pytest.fixture
def open_files() -> Callable[[], Counter[str]]:
    """Return a function that counts the open memfds, sockets and pipes of this process."""

    def count() -> Counter[str]:
        gc.collect()
        found: Counter[str] = Counter()
        for each in Path("/proc/self/fd").iterdir():
            with suppress(FileNotFoundError):  # another thread has closed it
                found[str(each.readlink()).partition(":")[0]] += 1
        return Counter({kind: found[kind] for kind in ("/memfd", "socket", "pipe")})

    return count


@pytest.fixture(scope="session")
def mode(sandbox: Sandbox) -> str:
    """Return the kind of isolation of the sandbox."""
    assert isinstance(sandbox.backend, LocalBackend)
    found = sandbox.backend.hello().mode
    assert found is not None
    return found


@pytest.fixture(scope="session")
def attack(sandbox: Sandbox) -> Callable[..., Execution]:
    """Return a function that runs a program after `PRELUDE`, and checks its status and its result.

    The result is `repr` of its last expression. None as the result or the status allows any value.
    """

    def run(
        code: str,
        result: str | None = "True",
        status: str | None = "ok",
        limits: SandboxLimits = LIMITS,
    ) -> Execution:
        execution = sandbox.run(PRELUDE + code, limits=limits)
        if status is not None:
            assert execution.status == status, execution
        if result is not None:
            assert execution.result == result, execution
        return execution

    return run
