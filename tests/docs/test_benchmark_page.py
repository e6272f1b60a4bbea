"""Tests that the page of the benchmark shows the committed cells."""

from __future__ import annotations

import re

import pytest

from tests.docs.snippets import ROOT, snippets
from visenv.cli import _command
from visenv.cli.suite import CompareCommand

PAGE = ROOT / "docs" / "benchmark.md"

pytestmark = pytest.mark.component("torch", "transformers")


def test_results_are_the_table_of_the_committed_cells() -> None:
    from visenv.algos.comparison.cells import read_cells
    from visenv.algos.comparison.command import planned, summarized

    (words,) = snippets(PAGE)[-1].commands()
    made = _command("compare", words[2:])
    assert isinstance(made, CompareCommand)
    plans = planned(made.algorithms, made.tasks, made.seeds, made.num_generations, quick=False)
    _, text = summarized(read_cells(ROOT / made.out), plans)
    assert (ROOT / made.out / "results.md").read_text(encoding="utf-8") == text


def test_page_lists_the_tasks_of_the_suite() -> None:
    from visenv.algos.comparison.tasks import TASKS

    rows = re.findall(r"^\| `(\w+)` \| (.*) \| `(\w+)` \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows == [(name, task.ability, task.recipe) for name, task in TASKS.items()]
