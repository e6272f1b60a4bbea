"""Builds a toy simulator in its own package, and the hosts that run it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from visenv.simulators.host import ChildHost, LocalSimulatorHost, SimulatorHost
from visenv.simulators.settings import IN_PROCESS, HostLimits, SimulatorSpec

TOY = '''
import os, sys, time
import numpy as np

from .behavior import misbehave


class Toy:
    """Counts; its picture has the count as its color."""

    def start(self, options):
        self.options = options
        print("the toy starts")
        misbehave(options.get("start"))
        return {"python": list(sys.version_info[:2]), "options": options}

    def reset(self, task):
        self.task, self.count = task, int(task.get("from", 0))
        misbehave(task.get("reset"))
        return {"count": self.count}

    def act(self, request):
        print("the toy acts", flush=True)
        self.count += request.get("add", 0)
        misbehave(request.get("do"))
        return {"count": self.count}

    def frames(self, request):
        side = request.get("side", 4)
        return {"view": np.full((side, side, 3), self.count % 256, np.uint8)}

    def snapshot(self):
        return self.count.to_bytes(8, "little")

    def restore(self, snapshot):
        self.count = int.from_bytes(snapshot, "little")
        return {"count": self.count}

    def close(self):
        if "closed" in self.options:
            open(self.options["closed"], "w").close()
'''

BEHAVIOR = """
import os, signal, subprocess, sys, time


def reply_fd():
    return int(sys.argv[2])


def header(text, arrays):
    import struct
    return struct.pack("<4sIQ", b"VSIM", text, arrays)


def misbehave(what):
    if what == "raise":
        raise RuntimeError("the toy broke")
    if what == "import":
        import no_such_package
    if what == "die":
        print("last words", file=sys.stderr, flush=True)
        os._exit(7)
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hang":
        time.sleep(600)
    if what == "pause":
        time.sleep(1)
    if what == "print":
        print("x" * 3_000_000, flush=True)
    if what == "gigabyte":
        os.write(reply_fd(), header(10, 2**30))
    if what == "bad json":
        os.write(reply_fd(), header(5, 0) + b"{nope")
    if what == "wrong size":
        text = b'{"id": 1, "results": [{}], "arrays": [["frame view", "uint8", [2, 2, 3]]]}'
        os.write(reply_fd(), header(len(text), 5) + text + b"12345")
    if what == "twice":
        text = b'{"id": 1, "results": [{"count": 1}], "arrays": []}'
        os.write(reply_fd(), header(len(text), 0) + text)
    if what == "noise":
        os.write(reply_fd(), b"hello, this is a line that a library printed\\n")
    if what == "memory":
        misbehave.kept = bytearray(b"x" * (300 * 2**20))
        time.sleep(30)
    if what == "grow":
        misbehave.kept = bytearray(b"x" * (200 * 2**20))
    if what == "grandchild":
        misbehave.kept = subprocess.Popen(["sleep", "600"])
        print("grandchild", misbehave.kept.pid, flush=True)
"""

Open = Callable[..., SimulatorHost]


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the toy simulator as the target of a spec."""
    package = tmp_path / "toyworld"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "simulator.py").write_text(TOY)
    (package / "behavior.py").write_text(BEHAVIOR)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield "toyworld.simulator:Toy"
    for name in [name for name in sys.modules if name.partition(".")[0] == "toyworld"]:
        del sys.modules[name]


@pytest.fixture
def spec(toy: str) -> Callable[..., SimulatorSpec]:
    """Return a function that makes specs of the toy."""

    def make(
        options: dict[str, Any] | None = None, *, place: str = "child", **limits: Any
    ) -> SimulatorSpec:
        interpreter = IN_PROCESS if place == "process" else sys.executable
        return SimulatorSpec.of(
            toy, options or {}, interpreter=interpreter, limits=HostLimits(**limits)
        )

    return make


@pytest.fixture
def open_host(spec: Callable[..., SimulatorSpec]) -> Iterator[Open]:
    """Yield a function that starts hosts of the toy; close the hosts at the end."""
    hosts: list[SimulatorHost] = []

    def make(options: dict[str, Any] | None = None, **settings: Any) -> SimulatorHost:
        made = spec(options, **settings)
        host: SimulatorHost = (
            LocalSimulatorHost(made) if made.interpreter == IN_PROCESS else ChildHost(made)
        )
        hosts.append(host)
        host.start()
        return host

    yield make
    for host in hosts:
        host.close()
