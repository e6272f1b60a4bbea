"""Tests that the loader reads the files of `visenv data distort`, and that the command resumes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import ClassVar

import numpy as np
import PIL.Image
import pytest

from visenv.cli import main
from visenv.envs.arft.coding.curation.distort import Distort, plan_lines
from visenv.envs.arft.coding.ground_truth import Distortion, Legibility
from visenv.envs.arft.coding.world import PLANS, DistortedRows, DistortedWorld, Problems, apply
from visenv.envs.arft.coding.world.kinds import WHOLE, Strengths
from visenv.envs.arft.coding.world.plans import Plan
from visenv.envs.arft.datasets.mat_coding import MatCoding
from visenv.errors import ConfigurationError
from visenv.types import Image, Pixels, QuestionTruth, Sample


def clean(name: str) -> Sample:
    pixels = np.random.default_rng(len(name)).integers(30, 220, (12, 16, 3), np.uint8)
    truth = QuestionTruth(target_box=(4, 4, 8, 8), options=("a", "b"))
    return Sample(name, f"What is {name}?", (Image.from_pixels(pixels),), ("a",), "", truth)


class ToyPictures:
    """Draws images of a few pixels; its reader returns values for which a sample is accepted."""

    version: ClassVar[int] = 1
    crops: ClassVar[bool] = True
    legibility: ClassVar[Legibility] = "text"

    def strengths(self, problems: Problems) -> Strengths:
        return WHOLE

    def write(self, rng: np.random.Generator) -> str:
        return "x" * int(rng.integers(1, 6))

    def rewrite(self, rng: np.random.Generator, text: str) -> str:
        return self.write(rng)

    def draw(self, rng: np.random.Generator, text: str, small: bool) -> Sample:
        self.reads = [0.0, 1.0]
        self.small, sample = small, clean(text)
        self.pixels = sample.images[0].pixels
        return sample

    def share_read(self, sample: Sample, pixels: Pixels, place: object, native: bool) -> float:
        sound = pixels is self.pixels and not self.small
        return 1.0 if sound else self.reads.pop(0)


@pytest.mark.slow
def test_paper_s_test_set_is_built_and_read_back(tmp_path: Path) -> None:
    world = DistortedWorld(ToyPictures(), ToyPictures())
    step = Distort(tmp_path, source=world)
    account = step.run(plan_lines(PLANS["test"], 0), tmp_path / "MAT-Coding.jsonl")
    assert (account.kept, account.rows) == (200, 200)
    data = MatCoding(tmp_path)
    assert data.problems == []
    read = [data[place] for place in range(len(data))]
    assert Counter(sample.ground_truth.split for sample in read) == {"simple": 70, "hard": 130}
    assert Counter(tuple(sample.ground_truth.problems) for sample in read) == PLANS["test"]
    rows = [json.loads(line) for line in (tmp_path / "MAT-Coding.jsonl").read_text().splitlines()]
    for row, sample in zip(rows, read, strict=True):
        pixels = Image.from_file(tmp_path / row["ori_image_path"]).pixels
        for distortion in row["distortions"]:
            pixels = apply(pixels, Distortion(**distortion))
        assert (sample.images[0].pixels == pixels).all()
        assert [each.as_row() for each in sample.ground_truth.distortions] == row["distortions"]
        assert sample.ground_truth.options == ("a", "b")
        assert (sample.ground_truth.box is not None) == (row["type"] == ["crop"])


def test_data_set_is_distorted_row_by_row(tmp_path: Path) -> None:
    rows = DistortedRows([clean(f"{place}") for place in range(8)], seed=3)
    step = Distort(tmp_path, seed=3, source=rows)
    step.run(plan_lines(PLANS["train"], 3, 8, 8), tmp_path / "out.jsonl")
    data = MatCoding(tmp_path)
    for place in range(8):
        assert data[place].images == rows[place].images
        assert data[place].ground_truth == rows[place].ground_truth


def test_list_longer_than_the_plan_repeats_the_plan() -> None:
    plan: Plan = {("dark",): 2, ("none",): 1}
    lines = plan_lines(plan, 0, 9)
    assert Counter(line.row["problems"] for line in lines) == {"dark": 6, "none": 3}
    assert len({line.id for line in lines}) == 9


@pytest.mark.parametrize(("count", "rows"), [(0, None), (5, 4), (None, 100)])
def test_plan_cannot_be_larger_than_its_rows(count: int | None, rows: int | None) -> None:
    with pytest.raises(ConfigurationError, match="The number of samples must be"):
        plan_lines(PLANS["test"], 0, count, rows)


@pytest.mark.slow
def test_command_writes_a_set_and_resumes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "train.jsonl"
    words = ["data", "distort", "--problems", "dark", "--problems", "rotation90+noise"]
    words += ["--samples", "2", "--seed", "5"]
    assert main([*words, "--out", str(out)]) == 0
    assert "2 rows in" in capsys.readouterr().out
    first = out.read_bytes()
    rows = [json.loads(line) for line in first.splitlines()]
    assert Counter("+".join(row["type"]) for row in rows) == {"dark": 1, "rotation90+noise": 1}
    for row in rows:
        with PIL.Image.open(tmp_path / row["processed_image_path"]) as image:
            assert image.format == "PNG"
    out.unlink()
    assert main([*words, "--out", str(out)]) == 0
    assert out.read_bytes() == first
    again = tmp_path / "again" / "train.jsonl"
    again.parent.mkdir()
    assert main([*words, "--out", str(again)]) == 0
    assert again.read_bytes() == first


def test_command_explains_itself(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = str(tmp_path / "x.jsonl")
    assert main(["data", "distort", "--problems", "drak", "--out", out]) == 1
    assert "Did you mean 'dark'?" in capsys.readouterr().err
