"""Writes a few rows of each published data set with images, in its layout.

The rows are those of the tests of the loaders.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import PIL.Image

from tests.docs import page_setup
from tests.envs.argos.datasets import test_benchmarks


class PublishedSet(NamedTuple):
    """Describes a data set of a test.

    Attributes:
        env_id: The environment that plays it.
        write: Writes its rows in a folder.
        options: The options of its name, such as ``?split=train``.
    """

    env_id: str
    write: Callable[[Path], object]
    options: str = ""


def photo(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
    PIL.Image.fromarray(pixels).save(path)


def _vl_rewardbench(folder: Path) -> None:
    from tests.envs.arm.datasets.test_vl_rewardbench import lines, row

    lines(folder, row("RLAIF-V-1"))


def _llava_critic(folder: Path) -> None:
    from tests.envs.arm.datasets.test_llava_critic import BRACKETS, row, write

    write(folder, row(BRACKETS, "The better response: [1]"))


def _deepeyes(folder: Path) -> None:
    from tests.envs.arm.datasets.test_deepeyes import row, write

    write(folder, [row(0)])


def _visual_probe(folder: Path) -> None:
    from tests.envs.arm.datasets.test_large_images import probe, write_probe

    write_probe(folder, probe(0))


def _mm_ifeval(folder: Path) -> None:
    from tests.envs.arm.datasets.test_mm_ifeval import lines, row

    lines(folder, row(1))


def _vsr(folder: Path) -> None:
    photo(folder / "images" / "1.jpg")
    row = {"image": "1.jpg", "caption": "The cat is under the table.", "label": 1}
    splits = folder / "data" / "splits" / "random"
    splits.mkdir(parents=True)
    (splits / "test.jsonl").write_text(json.dumps({**row, "relation": "under"}))


def _tallyqa(folder: Path) -> None:
    photo(folder / "VG_100K_2" / "7.jpg")
    row = {"image": "VG_100K_2/7.jpg", "question": "How many dogs?", "question_id": 5, "answer": 3}
    (folder / "test.json").write_text(json.dumps([row]))


def _gqa(folder: Path) -> None:
    photo(folder / "images" / "n12.jpg")
    row = {"imageId": "n12", "question": "What is red?", "answer": "bus"}
    rows = {"01": {**row, "types": {"structural": "query"}}}
    (folder / "testdev_balanced_questions.json").write_text(json.dumps(rows))


def _mags(folder: Path) -> None:
    photo(folder / "images" / "a.png")
    row = {"id": "q1", "question": "How many?", "images": ["images/a.png"], "response": "4"}
    labels = {"kind": "counting", "dataset": "tallyqa", "difficulty": "hard"}
    (folder / "stage2.jsonl").write_text(json.dumps({**row, **labels}))


def _rows(folder: Path) -> None:
    photo(folder / "a.png")
    row = {"image": "a.png", "question": "How many?", "answer": "4"}
    (folder / "my.jsonl").write_text(json.dumps(row))


SETS = {
    "rows": PublishedSet("ArmVQA-v0", _rows),
    "textvqa": PublishedSet("ZoomVQA-v0", page_setup.DATA["textvqa"]),
    "vstar": PublishedSet("ArmVQA-v0", page_setup.DATA["vstar"]),
    "hrbench": PublishedSet("ArmVQA-v0", page_setup.DATA["hrbench"]),
    "armbench": PublishedSet("ArmZoom-v0", page_setup.DATA["armbench"]),
    "vl_rewardbench": PublishedSet("ArmPreference-v0", _vl_rewardbench),
    "llava_critic": PublishedSet("ArmPreference-v0", _llava_critic),
    "deepeyes": PublishedSet("ArmVQA-v0", _deepeyes),
    "visual_probe": PublishedSet("ArmVQA-v0", _visual_probe),
    "mme_realworld": PublishedSet("ArmVQA-v0", page_setup.DATA["mme_realworld"]),
    "vlmeval": PublishedSet("ArmVQA-v0", page_setup.DATA["vlmeval"], "?name=MathVista_MINI"),
    "mat_coding": PublishedSet("ArftCoding-v0", page_setup.DATA["mat_coding"]),
    "mat_search": PublishedSet("ArftSearch-v0", page_setup.DATA["mat_search"]),
    "mm_ifeval": PublishedSet("", _mm_ifeval),  # a source of the curation
    "vsr": PublishedSet("MagsZoom-v0", _vsr),
    "tallyqa": PublishedSet("MagsZoom-v0", _tallyqa),
    "gqa": PublishedSet("MagsZoom-v0", _gqa),
    "mags": PublishedSet("MagsZoom-v0", _mags, "?stage=2"),
    "blink": PublishedSet("ArgosImage-v0", test_benchmarks.blink),
    "mindcube": PublishedSet("ArgosImage-v0", test_benchmarks.mindcube),
    "cv_bench": PublishedSet("ArgosImage-v0", test_benchmarks.cv_bench),
    "counter_curate": PublishedSet(
        "ArgosImage-v0", test_benchmarks.counter_curate, "?split=left_right"
    ),
    "sugar_crepe": PublishedSet("ArgosImage-v0", test_benchmarks.sugar_crepe),
    "hallusion_bench": PublishedSet("ArgosImage-v0", test_benchmarks.hallusion_bench),
    "video_r1": PublishedSet("ArgosImage-v0", test_benchmarks.video_r1),
    "pixmo_count": PublishedSet("ArgosImage-v0", test_benchmarks.pixmo_count),
}
"""Maps the name of a data set with images to its description."""

WITHOUT_IMAGES = {
    *("rewardbench2", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle"),  # texts
    *("mp_docvqa", "mmlongbench", "pdf"),  # documents, whose pages are images of tools
    *("eb_alfred", "eb_habitat"),  # tasks of a simulator
}
"""Names of the data sets whose samples have no images."""
