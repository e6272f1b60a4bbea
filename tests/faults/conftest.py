"""Collects what happened after each fault, and writes the table of faults.

``VISENV_FAULTS=faults.md make soak ARGS=tests/faults`` writes the table to a file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.faults.outcomes import Outcome, table

OUTCOMES = pytest.StashKey[list[Outcome]]()


@pytest.fixture
def record_fault(request: pytest.FixtureRequest) -> Callable[[Outcome], None]:
    """Return a function that adds an outcome to the table."""
    return request.config.stash.setdefault(OUTCOMES, []).append


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the table to the file that the environment names; a worker sends its outcomes."""
    found = session.config.stash.get(OUTCOMES, [])
    path = os.environ.get("VISENV_FAULTS")
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["faults"] = [asdict(each) for each in found]
    elif found and path:
        Path(path).write_text(table(found), encoding="utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the outcomes of a worker that has ended."""
    found = getattr(node, "workeroutput", {}).get("faults", [])
    outcomes = node.config.stash.setdefault(OUTCOMES, [])
    outcomes.extend(Outcome(**each) for each in found)
