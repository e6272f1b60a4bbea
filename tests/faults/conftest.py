"""Collects what happened after each fault, and writes the table of faults.

``VISENV_FAULTS=faults.md make pytest ARGS="tests/faults -m ''"`` adds the table to a file, after
the tables that the tests of processes add.
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


@pytest.fixture(scope="session")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    """Return the results of a run of the toy policy without a fault."""
    from tests.faults.runs import results, train

    folder = tmp_path_factory.mktemp("straight") / "run"
    return results(folder, train(folder))


@pytest.fixture
def record_fault(request: pytest.FixtureRequest) -> Callable[[Outcome], None]:
    """Return a function that adds an outcome to the table."""
    return request.config.stash.setdefault(OUTCOMES, []).append


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Add the table to the file that the environment names; a worker sends its outcomes."""
    found = session.config.stash.get(OUTCOMES, [])
    path = os.environ.get("VISENV_FAULTS")
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["faults"] = [asdict(each) for each in found]
    elif found and path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(table(found))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the outcomes of a worker that has ended."""
    found = getattr(node, "workeroutput", {}).get("faults", [])
    outcomes = node.config.stash.setdefault(OUTCOMES, [])
    outcomes.extend(Outcome(**each) for each in found)
