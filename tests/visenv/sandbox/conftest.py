"""Sandboxes of both kinds, and what attacks on them are written with."""

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
"""`denied` is True where the kernel refused; `call` makes a call of the C library or the kernel."""

LIMITS = SandboxLimits(wall_seconds=30.0, cpu_seconds=20, memory_bytes=512 << 20)
"""Nothing here is meant to take long: a limit that is reached is an attack's, or a fault."""


@pytest.fixture(scope="session", params=["namespaces", "landlock"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A sandbox in each of the two ways programs are isolated."""
    isolation: Isolation = request.param
    backend = LocalBackend(isolation=isolation, ahead=2)
    with Sandbox(backend, limits=LIMITS, workers=4) as made:
        try:
            made.start()
        except ConfigurationError as error:
            if os.environ.get("CI") == "true":  # as tests/conftest.py has it of components
                raise
            pytest.skip(f"{isolation} cannot be tried on this machine: {error}")
        yield made


@pytest.fixture
def open_files() -> Callable[[], Counter[str]]:
    """Counts what this process has open of the kinds that executions pass around."""

    def count() -> Counter[str]:
        gc.collect()
        found: Counter[str] = Counter()
        for each in Path("/proc/self/fd").iterdir():
            with suppress(FileNotFoundError):  # another thread's, closed meanwhile
                found[str(each.readlink()).partition(":")[0]] += 1
        return Counter({kind: found[kind] for kind in ("/memfd", "socket", "pipe")})

    return count


@pytest.fixture(scope="session")
def mode(sandbox: Sandbox) -> str:
    """How that sandbox isolates programs."""
    assert isinstance(sandbox.backend, LocalBackend)
    found = sandbox.backend.hello().mode
    assert found is not None
    return found


@pytest.fixture(scope="session")
def attack(sandbox: Sandbox) -> Callable[..., Execution]:
    """Run a program after `PRELUDE`; it must come to the one end and the one result there is.

    The result is `repr` of its last expression. None, for it or the status, is anything.
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
