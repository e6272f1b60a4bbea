"""Tests the time limits of a group of workers; hosts wait until the test releases them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from tests.waiting import LIMIT
from visenv.rollout.hosts import LocalEnvHost
from visenv.rollout.worker_group import WorkerGroup
from visenv.testing import toy
from visenv.types import Failure


class Host(LocalEnvHost):
    """Makes its environment, and answers a call, when the test sets the event."""

    def __init__(self) -> None:
        super().__init__(toy.make)
        self.may_open, self.may_answer = threading.Event(), threading.Event()

    @override
    def open(self) -> Failure | None:
        self.may_open.wait()
        return super().open()

    @override
    def call(self, method: str, arguments: Mapping[str, Any]) -> Any:
        self.may_answer.wait()
        return method


def test_time_limit_of_a_call_begins_when_the_environment_is_made() -> None:
    host = Host()
    group = WorkerGroup(1, lambda: host)
    group.call(0, "reset", {}, timeout=0.05)
    assert group.collect(timeout=0.2) == {}  # the limit has passed, and the worker still starts
    assert group.busy == {0}
    host.may_open.set()
    late = Failure("timeout", "timeout", "no reply within 0.05 s.")
    assert group.collect(timeout=None) == {0: late}
    host.may_answer.set()
    group.close(grace=LIMIT)
