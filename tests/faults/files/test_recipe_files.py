"""Tests damaged files of the folder of a recipe: with a real model, by the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.outcomes import GOOD, NOT_NOTICED, REFUSED, Outcome
from tests.programs import run_python

pytestmark = [
    pytest.mark.component("torch", "transformers", "tensorboard"),
    pytest.mark.timeout(3600),
    pytest.mark.soak,
]

NOT_NOTICED_IN_A_REPORT = {
    ("recipe.json", "deleted"),
    ("results.json", "deleted"),
    *(("metrics.jsonl", damage) for damage in ("one bit", "another digit")),
    *(("episodes of a step", damage) for damage in ("empty", "another digit", "deleted")),
    *(("last weights", damage) for damage in ("empty", "half of the file", "one bit", "deleted")),
    ("last weights", "another digit"),
}
"""Damages of a finished run that `visenv view` cannot notice, or whose file it does not read."""


def test_no_damaged_file_of_a_recipe_changes_a_result_silently(
    tmp_path: Path, record_fault: Callable[[Outcome], None]
) -> None:
    done = run_python("-m", "tests.faults.files.recipe_files", tmp_path)
    assert done.returncode == 0, done.stderr
    found = [Outcome(**json.loads(line)) for line in done.stdout.splitlines()]
    for outcome in found:
        record_fault(outcome)
    known = {
        (f"{kind} of a finished run", f"{damage} (view)")
        for kind, damage in NOT_NOTICED_IN_A_REPORT
    }
    unnoticed = {(each.kind, each.fault) for each in found if each.result == NOT_NOTICED}
    assert unnoticed <= known
    assert [each for each in found if each.result not in (*GOOD, NOT_NOTICED)] == []
    refused = {(each.kind, each.fault) for each in found if each.result == REFUSED}
    assert ("model/model.safetensors", "one bit") in refused
    assert ("weights of the warm-up", "deleted") in refused
