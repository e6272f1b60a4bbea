"""Tests damaged files of the folder of a recipe: with a real model, by the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.outcomes import GOOD, REFUSED, Outcome
from tests.programs import run_python

pytestmark = [
    pytest.mark.component("torch", "transformers", "tensorboard"),
    pytest.mark.timeout(3600),
    pytest.mark.soak,
]


def test_no_damaged_file_of_a_recipe_changes_a_result_silently(
    tmp_path: Path, record_fault: Callable[[Outcome], None]
) -> None:
    done = run_python("-m", "tests.faults.files.recipe_files", tmp_path)
    assert done.returncode == 0, done.stderr
    found = [Outcome(**json.loads(line)) for line in done.stdout.splitlines()]
    for outcome in found:
        record_fault(outcome)
    assert [each for each in found if each.result not in GOOD] == []
    refused = {(each.kind, each.fault) for each in found if each.result == REFUSED}
    assert ("model/model.safetensors", "one bit") in refused
    assert ("weights of the warm-up", "deleted") in refused
