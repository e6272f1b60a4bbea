"""Tests the reward of Libero: one term, calculated from the events."""

from __future__ import annotations

import pytest

from visenv.envs.libero.rewards import reward_terms, success_score
from visenv.types import EventLog, ToolCalled


def chunk(success: bool) -> ToolCalled:
    return ToolCalled(0, "act", {"actions": []}, ok=True, detail={"success": success})


REFUSED = ToolCalled(0, "act", {"actions": "up"}, ok=False, reason="not a list")


@pytest.mark.parametrize(
    ("events", "score"),
    [
        ([], 0.0),
        ([REFUSED], 0.0),
        ([chunk(success=False)], 0.0),
        ([chunk(success=True)], 1.0),
        ([chunk(success=False), chunk(success=True)], 1.0),
        ([chunk(success=True), REFUSED], 1.0),
        ([chunk(success=True), chunk(success=False)], 0.0),
    ],
)
def test_success_is_that_of_the_last_chunk_carried_out(
    events: list[ToolCalled], score: float
) -> None:
    assert success_score(EventLog(events)) == score
    assert [(term.name, term.weight) for term in reward_terms()] == [("success", 1.0)]
