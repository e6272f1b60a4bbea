"""Tests VL-RewardBench: order of two responses, groups, parquet and JSON Lines, bad rows."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from visenv.envs.arm.datasets.vl_rewardbench import VLRewardBench, group_of
from visenv.errors import DataError, UnknownNameError

Row = dict[str, Any]


def encoded() -> bytes:
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (40, 30)).save(buffer, "PNG")
    return buffer.getvalue()


def row(identity: str, **changes: Any) -> Row:
    made = {
        "id": identity,
        "query": "Which is it?",
        "response": ["good one", "bad"],
        "human_ranking": [0, 1],
        "query_source": "RLAIF-V",
        "models": ["a", "b"],
        "image": "a.png",
    }
    return {**made, **changes}


def lines(folder: Path, *rows: Any) -> Path:
    (folder / "images").mkdir(exist_ok=True)
    (folder / "images" / "a.png").write_bytes(encoded())
    written = [each if isinstance(each, str) else json.dumps(each) for each in rows]
    (folder / "vl_rewardbench.jsonl").write_text("\n".join(written))
    return folder


def best(source: VLRewardBench, index: int) -> str:
    """Return the response that the sample marks as the best."""
    sample = source[index]
    text: str = sample.ground_truth.candidates[int(sample.answers[0]) - 1]
    return text


def test_order_is_decided_by_the_id_alone(tmp_path: Path) -> None:
    # First byte of the SHA-256 of each id: for "RLAIF-V-1" it is 0x02, even, and its responses keep
    # their order; for "mathverse_12" it is 0x23, odd, and they are swapped.
    rows = [row("RLAIF-V-1"), row("mathverse_12"), row("RLAIF-V-2", human_ranking=[1, 0])]
    source = VLRewardBench(lines(tmp_path, *rows))
    assert source[0].ground_truth.candidates == ("good one", "bad")
    assert source[0].answers == ("1",)
    assert source[1].ground_truth.candidates == ("bad", "good one")
    assert source[1].answers == ("2",)
    assert [best(source, index) for index in range(3)] == ["good one", "good one", "bad"]
    again = VLRewardBench(tmp_path)
    assert [again[index] for index in range(3)] == [source[index] for index in range(3)]


def test_order_of_lmms_eval(tmp_path: Path) -> None:
    # Lengths 8 + 3 = 11 are odd: the responses are swapped. 4 + 4 = 8 is even: no swap.
    rows = [row("x-1"), row("x-2", response=["same", "size"], human_ranking=[1, 0])]
    source = VLRewardBench(lines(tmp_path, *rows), compat="lmms_eval")
    assert source[0].ground_truth.candidates == ("bad", "good one")
    assert source[0].answers == ("2",)
    assert source[1].ground_truth.candidates == ("same", "size")
    assert source[1].answers == ("2",)


def test_order_favors_no_place(tmp_path: Path) -> None:
    rows = [row(f"row-{n}", response=["r" * (n % 7 + 1), "s" * (n % 5 + 1)]) for n in range(200)]
    lines(tmp_path, *rows)
    for compat in ("", "lmms_eval"):
        source = VLRewardBench(tmp_path, compat=compat)
        firsts = sum(source[index].answers == ("1",) for index in range(200))
        assert 70 < firsts < 130  # 100 expected; the standard deviation is 7.1


@pytest.mark.parametrize(
    ("identity", "group"),
    [
        ("mathverse_12", "reasoning"),
        ("mmmu_pro_validation-3", "reasoning"),
        ("hallucination_pair-1", "hallucination"),
        ("RLAIF-V-1", "hallucination"),
        ("RLHF-V-9", "hallucination"),
        ("wildvision-battle-7", "general"),
        ("VLFeedback-1", "general"),
        ("new-7", "general"),
    ],
)
def test_groups(identity: str, group: str) -> None:
    assert group_of(identity) == group


@pytest.mark.component("pyarrow")
def test_hub_layout(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    image = {"bytes": encoded(), "path": None}
    rows = [row("mathverse_12", image=image), row("RLAIF-V-1", image=None), row("", image=image)]
    (tmp_path / "data").mkdir()
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "data/test-00000-of-00001.parquet")
    (tmp_path / "data" / "train-00000-of-00001.parquet").write_bytes(b"a copy nobody needs")
    source = VLRewardBench(tmp_path)
    assert [str(problem.problem) for problem in source.problems] == ["no id: ''"]
    sample = source[0]
    assert sample.images[0].size == (40, 30)
    assert (sample.kind, sample.ground_truth.source) == ("reasoning", "RLAIF-V")
    with pytest.raises(DataError, match="no image under image"):
        _ = source[1]


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("{", "not JSON"),
        ({"response": ["one"]}, "response must be two texts"),
        ({"response": "ab"}, "response must be two texts"),
        ({"response": ["a", None]}, "response must be two texts"),
        ({"human_ranking": [0, 0]}, "human_ranking must be"),
        ({"human_ranking": [1, 2]}, "human_ranking must be"),
        ({"human_ranking": None}, "human_ranking must be"),
        ({"query": ""}, "no query"),
        ({"id": 7}, "no id"),
        ({"image": None}, "no image under image"),
        ({"image": "gone.png"}, "there is no image"),
        ({"image": "../a.png"}, "leads out"),
    ],
)
def test_row_that_is_invalid_is_listed_and_the_others_are_read(
    tmp_path: Path, bad: Any, problem: str
) -> None:
    line = bad if isinstance(bad, str) else row("x-2", **bad)
    source = VLRewardBench(lines(tmp_path, row("x-1"), line, row("x-3")))
    assert len(source) == 2
    (listed,) = source.problems
    assert listed.row == 2
    assert problem in listed.problem


def test_id_that_is_no_unicode(tmp_path: Path) -> None:
    source = VLRewardBench(
        lines(
            tmp_path,
            '{"id": "\\ud800", "query": "q", "response": ["a", "b"],'
            ' "human_ranking": [0, 1], "image": "a.png"}',
        )
    )
    assert len(source) == 1


def test_unknown_mode_or_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'lmms_eval'"):
        VLRewardBench(tmp_path, compat="lmms")
    with pytest.raises(DataError, match=r"Expected data/test-\*\.parquet or"):
        VLRewardBench(tmp_path)
