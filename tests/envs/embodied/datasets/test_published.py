"""Tests EmbodiedBench's files: real layouts, subsampling, broken rows, hostile pickles."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from visenv.data.open import open_data
from visenv.envs.embodied.datasets.eb_alfred import EBAlfredTasks
from visenv.envs.embodied.datasets.eb_habitat import EBHabitatTasks
from visenv.envs.embodied.world.tasks import SUBSETS
from visenv.errors import ConfigurationError, DataError, UnknownNameError

TASK = "pick_and_place_simple-Mug-None-Shelf-1/trial_1"


def alfred(folder: Path, rows: int = 4) -> Path:
    splits = {
        name: [{"task": TASK, "repeat_idx": k % 2, "instruction": f"{name} {k}"}
               for k in range(rows)]
        for name in SUBSETS
    }  # fmt: skip
    (folder / "splits.json").write_text(json.dumps(splits))
    for repeat in range(2):
        file = folder / "json_2.1.0" / TASK / "pp" / f"ann_{repeat}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        annotation = {"scene": {"floor_plan": "FloorPlan1"}, "pddl_params": {"mrecep_target": ""},
                      "task_type": "pick_and_place_simple"}  # fmt: skip
        file.write_text(json.dumps(annotation))
    return folder


def habitat(folder: Path, rows: int = 4) -> Path:
    for name in SUBSETS:
        stem = "spatial_relationship" if name == "spatial" else name
        episodes = [{"instruction": f"{name} {k}", "scene_id": "v3_sc0"} for k in range(rows)]
        (folder / f"{stem}.pickle").write_bytes(pickle.dumps({"episodes": episodes}))
    return folder


def test_tasks_of_alfred_are_read_with_their_annotations(tmp_path: Path) -> None:
    source = EBAlfredTasks(alfred(tmp_path))
    assert len(source) == 24
    sample = source[4]
    assert (sample.question, sample.kind) == ("common_sense 0", "common_sense")
    truth: Any = sample.ground_truth
    assert (truth.scene, truth.task) == ("FloorPlan1", "pick_and_place_simple")
    assert json.loads(truth.content)["repeat_idx"] == 0


@pytest.mark.parametrize(("make", "cls"), [(alfred, EBAlfredTasks), (habitat, EBHabitatTasks)])
def test_ratio_takes_every_nth_task_of_a_subset(make: Any, cls: Any, tmp_path: Path) -> None:
    source = cls(make(tmp_path, rows=10), "spatial", 0.3)  # round(1 / 0.3) = 3
    questions = [source[index].question for index in range(len(source))]
    assert questions == ["spatial 0", "spatial 3", "spatial 6", "spatial 9"]
    for wrong in (0, 1.5, "x", float("nan")):
        with pytest.raises(ConfigurationError, match="down_sample_ratio"):
            cls(tmp_path, "spatial", wrong)
    with pytest.raises(UnknownNameError, match="subset"):
        cls(tmp_path, "spacial")


def test_sets_of_tasks_are_opened_by_name(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "h").mkdir()
    assert len(open_data(f"eb_alfred:{alfred(tmp_path / 'a')}?subset=base")) == 4
    assert len(open_data(f"eb_habitat:{habitat(tmp_path / 'h')}?subset=spatial")) == 4


def test_broken_row_is_listed_and_the_others_are_read(tmp_path: Path) -> None:
    splits = json.loads((alfred(tmp_path) / "splits.json").read_text())
    splits["base"] += [
        7,
        {"task": "../../etc", "repeat_idx": 0, "instruction": "x"},
        {"task": TASK, "repeat_idx": True, "instruction": "x"},
        {"task": TASK, "repeat_idx": 5, "instruction": "x"},
    ]
    (tmp_path / "splits.json").write_text(json.dumps(splits))
    source = EBAlfredTasks(tmp_path, "base")
    assert len(source) == 4
    assert [problem.row for problem in source.problems] == [5, 6, 7, 8]


def test_pointer_of_git_lfs_is_recognized(tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 295163\n"
    (habitat(tmp_path) / "base.pickle").write_text(pointer)
    with pytest.raises(DataError, match="git lfs pull"):
        EBHabitatTasks(tmp_path, "base")


class Hostile:
    @override
    def __reduce__(self) -> Any:
        return os.system, ("touch /tmp/visenv-was-here",)


@pytest.mark.attack("data: a pickle of a published data set runs no code")
@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps({"episodes": [Hostile()]}),
        pickle.dumps({"episodes": [{"instruction": print}]}),
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"\x80\x05",
        b"",
        b"cposix\nsystem\n.",
        pickle.dumps(3),
        b"\x80\x04Nr\xff\xff\xff\x7f.",  # 2 ** 31 object numbers, which would need 16 GiB
        b"\x80\x05\x96\xff\xff\xff\xff\x0f\x00\x00\x00.",  # 64 GiB of bytes
    ],
)
def test_pickle_with_code_or_without_episodes_is_refused(content: bytes, tmp_path: Path) -> None:
    (habitat(tmp_path) / "base.pickle").write_bytes(content)
    with pytest.raises(DataError):
        EBHabitatTasks(tmp_path, "base")
    assert not Path("/tmp/visenv-was-here").exists()


@pytest.mark.attack("data: a pickle of a published data set runs no code")
def test_objects_of_upstreams_classes_become_records(tmp_path: Path) -> None:
    # A pickle (protocol 0) of a list with one habitat.core.dataset.Episode with an instruction.
    written = (
        b"(lp0\nccopy_reg\n_reconstructor\np1\n(chabitat.core.dataset\nEpisode\np2\n"
        b"c__builtin__\nobject\np3\nNtRp4\n(dp5\nS'instruction'\np6\nS'Go.'\np7\nsba."
    )
    (habitat(tmp_path) / "base.pickle").write_bytes(written)
    with pytest.raises(DataError, match="copy"):  # protocol 0 needs a refused function
        EBHabitatTasks(tmp_path, "base")
    newer = (
        b"\x80\x02]chabitat.core.dataset\nEpisode\n)\x81}X\x0b\x00\x00\x00instructionX\x03\x00\x00"
        b"\x00Go.sba."
    )
    (tmp_path / "base.pickle").write_bytes(newer)
    assert EBHabitatTasks(tmp_path, "base")[0].question == "Go."


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"splits\.json"):
        EBAlfredTasks(tmp_path)
    with pytest.raises(DataError, match=r"base\.pickle"):
        EBHabitatTasks(tmp_path)
