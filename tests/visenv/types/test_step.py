"""Tests `StepResult`: whether the episode has ended, and the reasons as text."""

from __future__ import annotations

import pytest

from visenv.types import Failure, StepResult, TurnRequest

AWAY = Failure("service", "judge", "away")


@pytest.mark.parametrize(
    ("result", "is_over", "aborted", "truncated_by"),
    [
        (StepResult(request=TurnRequest()), False, "", ""),
        (StepResult(terminated=True), True, "", ""),
        (StepResult(truncated_by="turns"), True, "", "turns"),
        (StepResult(failure=AWAY), True, "judge: away", ""),
    ],
)
def test_info_states_the_reason_of_an_early_end(
    result: StepResult, is_over: bool, aborted: str, truncated_by: str
) -> None:
    assert result.is_over == is_over
    assert result.info == {"step": result, "aborted": aborted, "truncated_by": truncated_by}
