"""Tests that the death of an engine's own process ends every wait on it."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from visenv.errors import PolicyError

pytestmark = pytest.mark.component("vllm", "torch", "transformers")


class StandIn:
    """Stands in for `Engine`: a call waits for its process until `fail_calls`, as in vLLM."""

    is_inside = False

    def __init__(self) -> None:
        self.version = 0
        self.lost = False
        self.transfer = SimpleNamespace(broken=False)
        self.called = threading.Event()
        self._reply: Future[Any] = Future()

    def load(self, delivery: Any, adapter: Any) -> None:
        self._wait()

    def sleep(self) -> None:
        self._wait()

    def wake(self) -> bool:
        self._wait()
        return False

    def interrupt(self) -> list[Any]:
        return []

    def forget_images(self) -> None:
        pass

    def close(self) -> None:
        pass

    def fail_calls(self, error: Exception) -> None:
        self._reply.set_exception(error)

    def _wait(self) -> None:
        self.called.set()
        self._reply.result()


CALLS: dict[str, Callable[[Any], None]] = {
    "load": lambda thread: thread.load(None, 1),
    "load_adapter": lambda thread: thread.load_adapter(None, 1, None),
    "sleep": lambda thread: thread.sleep(),
    "wake": lambda thread: thread.wake(),
}


@pytest.mark.parametrize("name", CALLS)
def test_call_ends_when_the_process_of_the_engine_has_ended(name: str) -> None:
    from visenv.policies.vllm.thread import EngineThread

    before = set(threading.enumerate())
    engine = StandIn()
    made: Any = lambda: engine  # noqa: E731
    thread = EngineThread(made, 512, 600.0, math.inf)

    def end() -> None:
        engine.called.wait()
        engine.lost = True

    ending = threading.Thread(target=end)
    ending.start()
    with pytest.raises(PolicyError, match="died: its process has ended"):
        CALLS[name](thread)
    ending.join()
    thread.close()
    assert set(threading.enumerate()) <= before


PROGRAM = """
import json, os, signal, sys, threading, time
from visenv.errors import PolicyError
from visenv.policies.transformers import TransformersPolicy
from visenv.policies.vllm import VLLMPolicy

def process_of(policy):
    manager = policy._present.engine._engine.engine_core.resources.engine_manager
    return manager.processes[0].pid

if __name__ == "__main__":  # vLLM spawns its processes
    options = {"kv_cache_memory_bytes": 64 * 2**20}
    policy = VLLMPolicy(sys.argv[1], context=512, options=options)
    weights = TransformersPolicy(sys.argv[1], threads=1).network.model.state_dict()
    found = []
    for version in range(1, 1 + int(sys.argv[2])):
        policy.load(weights.items(), version)
        engine = policy._present.engine
        send = engine.transfer._call
        def killing(name, given):
            os.kill(process_of(policy), signal.SIGKILL)
            return send(name, given)
        engine.transfer._call = killing
        since = time.monotonic()
        try:
            policy.load(weights.items(), version)
        except PolicyError as error:
            found.append([str(error), time.monotonic() - since, threading.active_count()])
    policy.close()
    print(json.dumps(found), flush=True)
"""


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_engine_that_is_killed_during_transfers_leaves_no_thread(
    qwen3_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "engine.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, tmp_path / "engine.py", qwen3_folder, "20"],
        env=os.environ | {"VLLM_ENABLE_V1_MULTIPROCESSING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    deaths = json.loads(done.stdout.splitlines()[-1])
    assert len(deaths) == 20
    assert all("process has ended" in reason or "died" in reason for reason, _, _ in deaths)
    assert max(seconds for _, seconds, _ in deaths) < 60  # the time-out is 600 s
    assert deaths[-1][2] <= deaths[0][2] + 1
