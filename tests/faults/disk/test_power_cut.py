"""Tests that a run continues after a power cut: with a copy of the image of a mounted ext4.

The kernel keeps new files in its memory for up to half a minute. The image of a mounted file system
contains what a machine finds on its disk after a power cut.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from tests.faults.disk.small_disks import ext4, image_problem
from tests.faults.outcomes import SAME, Outcome
from tests.faults.runs import results, train
from visenv.algos.trainer import Callback, TrainerState
from visenv.files import write_text

pytestmark = pytest.mark.component("torch")

OTHERS = [
    "at the start",
    *(f"before checkpoint {step}" for step in (1, 2, 3, 4)),
    *(f"after checkpoint {step}" for step in (1, 3, 4)),
]
"""The moments of power cuts; a test of `make test` has one more."""


@pytest.fixture(autouse=True)
def _needs_a_mount() -> None:
    if image_problem():
        pytest.skip(f"an image of ext4 cannot be mounted: {image_problem()}")


class Cuts(Callback):
    """Copies the image of the disk at several moments of a run."""

    def __init__(self, image: Path, folder: Path) -> None:
        self._image, self._folder = image, folder

    def _cut(self, name: str) -> None:
        shutil.copyfile(self._image, self._folder / f"{name}.img")

    @override
    def on_train_begin(self, state: TrainerState) -> None:
        self._cut("at the start")

    @override
    def on_step_end(self, state: TrainerState, metrics: Any, groups: Any) -> None:
        self._cut(f"before checkpoint {state.step}")

    @override
    def on_save(self, state: TrainerState, path: Path) -> None:
        self._cut(f"after checkpoint {state.step}")


@pytest.mark.parametrize(
    "moments",
    [["after checkpoint 2"], pytest.param(OTHERS, marks=pytest.mark.soak)],
    ids=["one", "others"],
)
def test_run_continues_after_a_power_cut_at_any_moment(
    tmp_path: Path,
    moments: list[str],
    straight: tuple[Any, ...],
    record_fault: Callable[[Outcome], None],
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "cuts").mkdir()
    with ext4(tmp_path / "disk") as disk:
        callback = Cuts(tmp_path / "disk/disk.img", tmp_path / "cuts")
        train(disk / "run", callbacks=(callback,))
    cuts = sorted((tmp_path / "cuts").iterdir())
    assert len(cuts) == 9
    for image in (cut for cut in cuts if cut.stem in moments):
        (tmp_path / "after").mkdir(exist_ok=True)
        with ext4(tmp_path / "after", image) as disk:
            folder = disk / "run"
            saved = sorted(path.name for path in folder.glob("checkpoints/step_*"))
            words = image.stem.split()
            if words[0] == "after":
                assert saved[-1] == f"step_{int(words[-1]):06d}", image.stem
                rows = (folder / "metrics.jsonl").read_text().splitlines()
                steps = [json.loads(row)["step"] for row in rows]
                assert steps == [*range(1, int(words[-1]) + 1)], image.stem
            policy = train(folder, resume=folder.exists())
            assert results(folder, policy) == straight, image.stem
        record_fault(Outcome("ext4 disk", f"power cut {image.stem}", SAME))


def test_file_is_on_the_disk_when_it_has_its_name(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    with ext4(tmp_path / "disk") as disk:
        write_text(disk / "recipe.json", '{"name": "run"}')
        shutil.copyfile(tmp_path / "disk/disk.img", tmp_path / "cut.img")
    (tmp_path / "after").mkdir()
    with ext4(tmp_path / "after", tmp_path / "cut.img") as disk:
        assert (disk / "recipe.json").read_text() == '{"name": "run"}'
