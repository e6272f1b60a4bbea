"""Sandboxes of both kinds, and what attacks on them are written with."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from visenv.errors import ConfigurationError
from visenv.sandbox import Execution, Limits, LocalBackend, Sandbox
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

LIMITS = Limits(wall_seconds=30.0, cpu_seconds=20, memory_bytes=512 << 20)
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
            pytest.skip(f"{isolation} cannot be tried on this machine: {error}")
        yield made


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

    The result is `repr` of its last expression, None if it does not matter.
    """

    def run(
        code: str, result: str | None = "True", status: str = "ok", limits: Limits = LIMITS
    ) -> Execution:
        execution = sandbox.run(PRELUDE + code, limits=limits)
        assert execution.status == status, execution
        if result is not None:
            assert execution.result == result, execution
        return execution

    return run
