"""Tests that photographs of installed packages are written and read back as TextVQA."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from visenv.data.open import open_data
from visenv.envs.zoom_vqa.datasets.textvqa import TextVQA

SCRIPT = Path(__file__).parents[2] / "examples" / "make_photo_vqa.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("photos") / "photo_vqa"
    subprocess.run([sys.executable, str(SCRIPT), "--out", str(out)], check=True)
    return out


@pytest.mark.component("scikit-image")
@pytest.mark.parametrize(("split", "questions", "photos"), [("train", 35, 8), ("val", 10, 3)])
def test_loader_reads_it_back(folder: Path, split: str, questions: int, photos: int) -> None:
    source = open_data(f"textvqa:{folder}?split={split}")
    assert isinstance(source, TextVQA)
    samples = [source[index] for index in range(len(source))]
    assert source.problems == []
    assert len(samples) == questions
    assert len({sample.ground_truth.image_id for sample in samples}) == photos
    for sample in samples:
        assert len(sample.answers) == 10, sample.question
        commonest, _ = Counter(sample.answers).most_common(1)[0]
        assert source.score(commonest, sample) == 1.0, sample.question
        assert sample.images[0].pixels.shape == (*sample.images[0].size[::-1], 3)
        assert sample.images[0].pixels.std() > 10  # a photograph, not a blank


@pytest.mark.component("scikit-image")
def test_train_and_val_share_no_photograph(folder: Path) -> None:
    train, val = (TextVQA(folder, split) for split in ("train", "val"))
    seen = {train[index].images[0].sha256 for index in range(len(train))}
    assert seen.isdisjoint(val[index].images[0].sha256 for index in range(len(val)))
