"""Collects what happened after each fault, and writes the table of faults.

``VISENV_FAULTS=faults.md make soak ARGS=tests/faults`` writes the table to a file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.outcomes import Outcome, table

OUTCOMES = pytest.StashKey[list[Outcome]]()


@pytest.fixture
def record_fault(request: pytest.FixtureRequest) -> Callable[[Outcome], None]:
    """Return a function that adds an outcome to the table."""
    return request.config.stash.setdefault(OUTCOMES, []).append


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Append the table of this process to the file that the environment names."""
    found = session.config.stash.get(OUTCOMES, [])
    path = os.environ.get("VISENV_FAULTS")
    if found and path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(table(found) + "\n")
