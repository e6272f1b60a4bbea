"""Applies the time limit of an executor only to calls that hang; no other call exceeds it."""

from __future__ import annotations

from typing import Any

import pytest

from visenv.rollout.worker_executors import WorkerSlot


def limit_only_calls_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the time limit from all calls of slots, except from turns that wait at a gate.

    On a slow machine, every call may take longer than a short limit.
    """
    call = WorkerSlot.call

    async def limited(slot: WorkerSlot, method: str, **arguments: Any) -> Any:
        limits = slot._limits
        if "kind: wait" not in arguments.get("text", ""):
            slot._limits = limits._replace(call=None)
        try:
            return await call(slot, method, **arguments)
        finally:
            slot._limits = limits

    monkeypatch.setattr(WorkerSlot, "call", limited)
