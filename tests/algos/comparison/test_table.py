"""Tests the table of a comparison."""

from __future__ import annotations

import pytest

from tests.algos.comparison.cells import make_cell
from visenv.algos.comparison.table import differences, rows_of, table

WANTED = [
    (label, "zoom_vqa", seed) for label in ("grpo", "rejection_sampling", "dapo") for seed in (0, 1)
]
CELLS = [
    *(make_cell("grpo", seed=seed, greedy=greedy) for seed, greedy in ((0, 0.8), (1, 0.9))),
    make_cell("rejection_sampling", seed=0, greedy=0.7),
]


def cells_of(text: str, label: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {label} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_table_has_the_means_of_each_task_and_marks_cells_that_were_not_run() -> None:
    text = table(rows_of(CELLS, WANTED), ["zoom_vqa", "house"])
    assert cells_of(text, "grpo") == [
        *("grpo", "0.850 / 0.425", "–", "2 of 2"),
        *("0.850 [0.800, 0.900]", "0.425 [0.400, 0.450]", "–", "–"),
    ]
    # One seed has no interval, so no difference is stated. Only seed 0 is in both rows.
    assert cells_of(text, "rejection_sampling") == [
        *("rejection_sampling", "0.700 / 0.350 (1 of 2 seeds)", "–", "1 of 2"),
        *("0.700", "0.350", "-0.100", "0.000"),
    ]
    assert cells_of(text, "dapo") == [
        *("dapo", "not run", "–", "0 of 2", "–", "–", "–", "–"),
    ]
    assert cells_of(text, "teacher")[1:4] == ["0.400 / 0.400", "–", "2"]
    assert cells_of(text, "SFT")[1] == "0.300 / 0.200"


def test_only_differences_that_the_intervals_separate_are_stated() -> None:
    rows = rows_of(CELLS, WANTED)
    text = table(rows, ["zoom_vqa"])
    said = [line for line in text.splitlines() if line.startswith("- ")]
    assert said == [
        "- teacher is lower than grpo: -0.450 [-0.500, -0.400] in the greedy IQM.",
        "- SFT is lower than grpo: -0.550 [-0.600, -0.500] in the greedy IQM.",
    ]
    assert differences(rows)["teacher"].probability == (0.0, 0.0, 0.0)
    alone = table(rows_of(CELLS[2:], []), ["zoom_vqa"])
    assert alone.endswith("No interval separates an algorithm from grpo.\n")


def test_algorithms_of_another_folder_are_compared_with_grpo_of_this_one() -> None:
    other = [make_cell("grpo", seed=seed, greedy=0.1) for seed in (0, 1)]
    rows = rows_of(CELLS, WANTED, other, " (old)")
    found = differences(rows)["grpo (old)"]
    assert found.cells == 2
    assert found.means.value == pytest.approx(0.1 - 0.85, abs=1e-12)
    assert "- grpo (old) is lower than grpo" in table(rows, ["zoom_vqa"])
