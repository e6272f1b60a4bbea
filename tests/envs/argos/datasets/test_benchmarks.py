"""Tests benchmarks in their published layouts, with scores calculated by hand."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import PIL.Image
import pytest

import visenv  # noqa: F401  (registers the ids)
from visenv.data import open as data_sets
from visenv.envs.argos.datasets.hallusion_bench import verdict_of
from visenv.errors import DataError, UnknownNameError

PARQUET = pytest.mark.component("pyarrow")


def open_data(data: str) -> Any:
    """Return the source as Any."""
    return data_sets.open_data(data)


def png(seed: int = 0, side: int = 16) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    PIL.Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def write(path: Path, content: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


def blink(folder: Path) -> str:
    for task, answers in (("Counting", "AB"), ("Jigsaw", "B")):
        parquet(
            folder / task / "val-00000-of-00001.parquet",
            [
                {
                    "idx": f"val_{task}_{number}",
                    "sub_task": task,
                    "question": "Which?",
                    "image_1": {"bytes": png(number), "path": None},
                    "image_2": {"bytes": png(9), "path": None} if task == "Jigsaw" else None,
                    "image_3": None,
                    "image_4": None,
                    "choices": ["one", "two"],
                    "answer": f"({letter})",
                }
                for number, letter in enumerate(answers)
            ],
        )
        parquet(folder / task / "test-00000-of-00001.parquet", [{"idx": "t", "answer": "hidden"}])
    return f"blink:{folder}"


def mindcube(folder: Path) -> str:
    rows = [
        {
            "id": f"{setting}_group_{number}",
            "images": ["other_all_image/a/1.png", "other_all_image/a/2.png"],
            "question": "Where is it? A. Left B. Right C. Above",
            "gt_answer": "B",
        }
        for number, setting in enumerate(("rotation", "among", "around", "translation"))
    ]
    write(folder / "raw/MindCube_tinybench.jsonl", "\n".join(map(json.dumps, rows)))
    for name in "12":
        write(folder / f"data/other_all_image/a/{name}.png", png(int(name)))
    return f"mindcube:{folder}"


def cv_bench(folder: Path) -> str:
    for kind, sources in (("2D", ("ADE20K", "COCO", "COCO")), ("3D", ("Omni3D",))):
        parquet(
            folder / f"test_{kind.lower()}.parquet",
            [
                {
                    "idx": number,
                    "type": kind,
                    "task": "Count",
                    "image": {"bytes": png(number), "path": None},
                    "question": "How many?",
                    "choices": ["4", "5"],
                    "answer": "(A)",
                    "source": source,
                }
                for number, source in enumerate(sources)
            ],
        )
    return f"cv_bench:{folder}"


def counter_curate(folder: Path) -> str:
    rows = [
        {
            "id": "7",
            "image": "flickr30k/7.jpg",
            "conversations": [
                {"from": "human", "value": "<image>\nIs the cup left or right of the man?"},
                {"from": "gpt", "value": "left"},
            ],
        }
    ]
    write(folder / "llava_sample_data/test_left_right_.json", json.dumps(rows))
    write(folder / "images/7.jpg", png())
    return f"counter_curate:{folder}?split=left_right"


def sugar_crepe(folder: Path) -> str:
    for kind in ("add_att", "swap_obj"):
        row = {"filename": "1.jpg", "caption": "a red cup", "negative_caption": "a blue cup"}
        write(folder / f"{kind}.json", json.dumps({str(n): row for n in range(30)}))
    write(folder / "val2017/1.jpg", png())
    return f"sugar_crepe:{folder}"


def hallusion_bench(folder: Path) -> str:
    def row(figure: str, asked: str, answer: str, visual: str = "1") -> dict[str, Any]:
        return {
            "category": "VD",
            "subcategory": "chart",
            "visual_input": visual,
            "set_id": "0",
            "figure_id": figure,
            "question_id": asked,
            "question": "Is it so?",
            "gt_answer": answer,
            "filename": None if visual == "0" else "hallusion_bench/VD/1.png",
        }

    rows = [row("0", "0", "1", "0"), row("1", "0", "1"), row("1", "1", "0"), row("2", "0", "0")]
    write(folder / "HallusionBench.json", json.dumps(rows))
    write(folder / "hallusion_bench/VD/1.png", png())
    return f"hallusion_bench:{folder}"


def pixmo_count(folder: Path) -> str:
    encoded = png(3)
    digest = hashlib.sha256(encoded).hexdigest()
    rows = [
        {"image_url": "u", "image_sha256": name, "count": 3, "label": "dogs"}
        for name in (digest, "0" * 64, "1" * 64)
    ]
    parquet(folder / "data/train-00000.parquet", rows)
    write(folder / f"images/{digest}.png", encoded)
    write(folder / f"images/{'1' * 64}.png", encoded)
    return f"pixmo_count:{folder}"


def video_r1(folder: Path) -> str:
    rows = [
        {
            "problem_id": 1,
            "problem": "Which color?",
            "data_type": "image",
            "problem_type": "multiple choice",
            "options": ["A. red", "B. blue"],
            "solution": "<answer>B</answer>",
            "path": "./Chart/1.png",
            "data_source": "ChartQA",
        },
        {
            "problem_id": 2,
            "problem": "How many?",
            "data_type": "video",
            "problem_type": "numerical",
            "options": [],
            "solution": "<answer>3</answer>",
            "path": "./clips/a.avi",
            "data_source": "CLEVRER",
        },
    ]
    write(folder / "Video-R1-260k.json", json.dumps(rows))
    write(folder / "Chart/1.png", png())
    movie(folder / "clips/a.avi", 40)
    return f"video_r1:{folder}"


def movie(path: Path, frames: int, rate: float = 10.0) -> None:
    import cv2

    path.parent.mkdir(parents=True, exist_ok=True)
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), rate, (32, 24))
    for number in range(frames):
        writer.write(np.full((24, 32, 3), 5 * number, np.uint8))
    writer.release()


MAKERS: list[Any] = [
    pytest.param(make, marks=PARQUET if make in (blink, cv_bench, pixmo_count) else ())
    for make in (
        blink,
        mindcube,
        cv_bench,
        counter_curate,
        sugar_crepe,
        hallusion_bench,
        pixmo_count,
        video_r1,
    )
]


@pytest.mark.parametrize("make", MAKERS)
def test_set_is_played_in_its_published_layout(make: Callable[[Path], str], tmp_path: Path) -> None:
    data = make(tmp_path)
    env = gym.make("visenv/ArgosImage-v0", data=data)
    source = open_data(data)
    for index in range(min(len(source), 3)):
        if make is pixmo_count and index == 1:
            continue  # the row has the hash of another image
        _, info = env.reset(seed=0, options={"index": index})
        base: Any = env.unwrapped
        assert info["step"].messages[0].images == base.sample.images
        _, reward, *_ = env.step(f"<think></think><answer>{base.sample.answers[0]}</answer>")
        assert reward == 1.0
        env.reset(seed=0, options={"index": index})
        assert env.step("<think></think><answer>neither</answer>")[1] in (0.0, 1.0)


@PARQUET
def test_blink_reads_val_and_averages_over_tasks(tmp_path: Path) -> None:
    source = open_data(blink(tmp_path))
    assert [source[index].answers for index in range(3)] == [("one",), ("two",), ("two",)]
    assert [len(source[index].images) for index in range(3)] == [1, 1, 2]
    scored = [(source[0], 1.0), (source[1], 0.0), (source[2], 1.0)]
    assert source.summary(scored) == {"Counting": 0.5, "Jigsaw": 1.0, "total": 0.75}


def test_mindcube_leaves_translation_out_of_the_total(tmp_path: Path) -> None:
    source = open_data(mindcube(tmp_path))
    assert source[0].question == "Where is it?"
    assert source[0].ground_truth.options == ("Left", "Right", "Above")
    summary = source.summary([(source[n], float(n < 2)) for n in range(4)])
    assert summary["total"] == pytest.approx(2 / 3)
    assert summary["translation"] == 0.0


@PARQUET
def test_cv_bench_averages_sources_and_then_2d_and_3d(tmp_path: Path) -> None:
    source = open_data(cv_bench(tmp_path))
    summary = source.summary(zip(source, (1.0, 1.0, 0.0, 0.0), strict=True))
    assert summary == {"ADE20K": 1.0, "COCO": 0.5, "2D": 0.75, "3D": 0.0, "total": 0.375}


def test_hallusion_bench_groups_figures_and_pairs(tmp_path: Path) -> None:
    source = open_data(hallusion_bench(tmp_path))
    samples = [source[index] for index in range(4)]
    assert samples[0].images == ()
    assert [source.score("It depends", sample) for sample in samples] == [1.0, 0.0, 0.0, 0.0]
    summary = source.summary(zip(samples, (1.0, 1.0, 1.0, 0.0), strict=True))
    # Figures 1 (right) and 2 (wrong); pairs: question 0 of all figures (wrong), question 1 (right).
    assert summary == {"aAcc": 0.75, "fAcc": 0.5, "qAcc": 0.5}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("Yes, it is.", "yes"),
        ("no", "no"),
        ("** No **", "no"),
        ("Nothing", "unclear"),
        ("", "unclear"),
    ],
)
def test_hallusion_bench_reads_the_first_word(answer: str, said: str) -> None:
    assert verdict_of(answer) == said


def test_sugar_crepe_puts_the_true_caption_on_either_side(tmp_path: Path) -> None:
    source = open_data(sugar_crepe(tmp_path))
    first = [sample.ground_truth.options[0] == "a red cup" for sample in source]
    assert len(source) == 60
    assert 15 < sum(first) < 45
    again = open_data(f"sugar_crepe:{tmp_path}")
    assert [sample.ground_truth for sample in again] == [sample.ground_truth for sample in source]


@PARQUET
def test_pixmo_count_refuses_an_image_with_other_bytes(tmp_path: Path) -> None:
    source = open_data(pixmo_count(tmp_path))
    assert len(source) == 2
    assert "no file" in source.problems[0].problem
    assert source[0].answers == ("3",)
    with pytest.raises(DataError, match="SHA-256"):
        source[1]


def test_video_r1_shows_32_evenly_spaced_frames(tmp_path: Path) -> None:
    data = video_r1(tmp_path)
    assert open_data(data)[0].answers == ("blue",)
    env = gym.make("visenv/ArgosVideo-v0", data=f"{data}?media=video")
    _, info = env.reset(seed=0)
    (video,) = info["step"].messages[0].videos
    assert len(video.frames) == 32
    assert (video.times[0], video.times[-1]) == (0.0, 3.9)
    assert video.frames[-1].pixels.mean() == pytest.approx(5 * 39, abs=4)
    assert env.step("<think></think><answer>3</answer>")[1] == 1.0
    with pytest.raises(UnknownNameError, match="260k"):
        open_data(f"{data}?split=160k")


def test_video_r1_opens_a_video_when_its_sample_is_asked_for(tmp_path: Path) -> None:
    data = video_r1(tmp_path)
    (tmp_path / "clips/a.avi").write_bytes(b"no video")
    source = open_data(f"{data}?media=video")
    assert (len(source), source.problems) == (1, [])
    with pytest.raises(DataError, match=r"a\.avi"):
        source[0]
    assert len(source.problems) == 1
    movie(tmp_path / "clips/a.avi", 4)
    assert source[0].ground_truth.times == pytest.approx((0.0, 0.1, 0.2, 0.3))
    assert source[0].ground_truth.labels == {"source": "CLEVRER"}


def test_row_that_cannot_be_used_is_listed(tmp_path: Path) -> None:
    data = mindcube(tmp_path)
    file = tmp_path / "raw/MindCube_tinybench.jsonl"
    good = file.read_text().splitlines()[0]
    broken = ["{", "[]", good.replace('"B"', '"Z"'), good.replace("rotation", "other"), good]
    file.write_text("\n".join(broken))
    source = open_data(data)
    assert len(source) == 1
    assert len(source.problems) == 4
