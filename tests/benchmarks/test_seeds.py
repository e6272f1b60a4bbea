"""Tests the table and the picture of several seeds of a recipe."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image

from tests.programs import load_program
from visenv.algos.experiment.curves import HeldOutPoint
from visenv.algos.experiment.results import Results
from visenv.algos.trainer.evaluation import HeldOutScore


@pytest.fixture(scope="module")
def seeds() -> ModuleType:
    return load_program("benchmarks/seeds.py")


def measured(path: Path, greedy: float, sampled: float, label: str = "after rl") -> Results:
    """Return results with one label of two environments; the second one scores 0.2 less."""
    results = Results(path)
    ways = {"greedy": greedy, "sampled": sampled}
    results.add(
        label,
        {
            name: {
                way: HeldOutScore(8, 0.0, {"accuracy": value - less}) for way, value in ways.items()
            }
            for name, less in (("scenes", 0.0), ("documents", 0.2))
        },
    )
    results.finish("rl", 60, 100 * greedy)
    return results


def test_table_has_the_mean_and_the_lowest_value_of_the_seeds(
    seeds: ModuleType, tmp_path: Path
) -> None:
    runs = {
        "seed-0": measured(tmp_path / "0.json", 0.9, 0.8),
        "seed-1": measured(tmp_path / "1.json", 0.8, 0.4),
    }
    measured(tmp_path / "1.json", 0.5, 0.6, "teacher")
    runs["seed-1"] = Results(tmp_path / "1.json")
    # An environment scores 0.2 less than the other one, so a mean over both is 0.1 less.
    assert seeds.score_table(runs, "accuracy").splitlines() == [
        "| accuracy, greedy / sampled | seed-0 | seed-1 | mean | lowest |",
        "|---|---|---|---|---|",
        "| after rl | 0.800 / 0.700 | 0.700 / 0.300 | 0.750 / 0.500 | 0.700 / 0.300 |",
        "| teacher | – / – | 0.400 / 0.500 | 0.400 / 0.500 | 0.400 / 0.500 |",
        "| seconds of rl | 90 | 50 | 70 |  |",
    ]


def test_runs_are_in_the_order_of_their_numbers(
    seeds: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = tuple(tmp_path / f"seed-{number}" for number in (10, 9, 0))
    for folder in folders:
        folder.mkdir()
        measured(folder / "results.json", 0.5, 0.5)
    seeds.main(seeds.SeedsOptions("zoom_tiny", folders))
    assert "| seed-0 | seed-9 | seed-10 |" in capsys.readouterr().out


def test_picture_has_a_line_for_each_phase_and_seed(seeds: ModuleType, tmp_path: Path) -> None:
    points = [HeldOutPoint(0, 0.0, 0.1), HeldOutPoint(64, 2.0, 0.9)]
    picture = tmp_path / "curves.png"
    seeds.draw_seeds([{"warm-up": points}], None, "accuracy", picture)
    one = picture.read_bytes()
    seeds.draw_seeds([{"warm-up": points, "rl": points[::-1]}], 0.5, "accuracy", picture)
    with Image.open(picture) as image:
        assert image.size == (910, 468)
    assert picture.read_bytes() != one
