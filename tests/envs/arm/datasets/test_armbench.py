"""Tests ARMBench-VL: three tracks, four tags, documents, and each kind of bad row."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from visenv.envs.arm.datasets.armbench import RESPONSES, TRACKS, ARMBench
from visenv.envs.arm.ground_truth import ConstraintCheck, JudgingTruth
from visenv.errors import DataError, ImageError, UnknownNameError

PERCEPTION, DOCUMENT, FOLLOWING = TRACKS
Row = dict[str, Any]


def photo(path: Path, size: tuple[int, int] = (40, 30)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.new("RGB", size, (200, 30, 30)).save(path)


def row(number: Any, tag: str = "pair_rm", **changes: Any) -> Row:
    texts = [f"response {place}" for place in range(1, RESPONSES.get(tag, 2) + 1)]
    made = {
        "idx": number,
        "rm_tag": tag,
        "question": "<image>\nWhat colour is the door?",
        "preds": texts,
        "gt": "True" if tag == "single_rm" else 1,
        "images": ["shots/a.jpg"],
    }
    return {**made, **changes}


def write(folder: Path, track: str, *rows: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [each if isinstance(each, str) else json.dumps(each) for each in rows]
    (folder / f"{track}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    photo(tmp_path / "shots" / "a.jpg")
    for page in (1, 2):
        photo(tmp_path / "documents" / f"2023.report_{page}.jpg")
    return tmp_path


@pytest.mark.parametrize(
    ("tag", "gt", "answer"),
    [
        ("single_rm", "True", "True"),
        ("single_rm", "false", "False"),
        ("single_rm", True, "True"),
        ("pair_rm", 2, "2"),
        ("2-way-pair_rm", "1", "1"),
        ("4-way-pair_rm", 4, "4"),
    ],
)
def test_tags_of_all_tracks(folder: Path, tag: str, gt: Any, answer: str) -> None:
    source = ARMBench(write(folder, PERCEPTION, row(7, tag, gt=gt)))
    sample = source[0]
    assert source.problems == []
    assert sample.id == "armbench-fine_grained_perception-7"
    assert sample.question == "What colour is the door?"
    assert sample.ground_truth.candidates == tuple(
        f"response {n}" for n in range(1, RESPONSES[tag] + 1)
    )
    assert sample.answers == (answer,)
    assert sample.kind == tag
    assert sample.ground_truth.labels == {"track": PERCEPTION, "rm_tag": tag}
    assert [image.size for image in sample.images] == [(40, 30)]
    assert sample.ground_truth.document == ""


def test_row_keeps_all_its_images(folder: Path) -> None:
    PIL.Image.new("RGB", (50, 20)).save(folder / "shots" / "b.jpg")
    two = row(1, images=["shots/a.jpg", "shots/b.jpg"])
    source = ARMBench(write(folder, PERCEPTION, two, row(2, images=["shots/a.jpg", "gone.jpg"])))
    assert [image.size for image in source[0].images] == [(40, 30), (50, 20)]
    (problem,) = source.problems
    assert "there is no image" in problem.problem


def test_document_is_found_in_the_library(folder: Path) -> None:
    rows = [row(1, doc_id="2023.report.pdf"), row(2, doc_id="2023.report", images=[])]
    source = ARMBench(write(folder, DOCUMENT, *rows))
    for sample in (source[0], source[1]):
        assert sample.ground_truth.document == "2023.report"
        assert source.library is not None
        assert len(source.library.document(sample.ground_truth.document)) == 2
    assert source[1].images == ()


def test_documents_may_lie_elsewhere(folder: Path, tmp_path: Path) -> None:
    (folder / "documents").rename(tmp_path / "papers")
    write(folder, DOCUMENT, row(1, doc_id="2023.report.pdf"))
    assert len(ARMBench(folder, documents=tmp_path / "papers")) == 1
    with pytest.raises(DataError, match="there is no folder of documents"):
        ARMBench(folder)
    with pytest.raises(DataError, match="Did you mean"):
        ARMBench(folder, documents=tmp_path / "paper")


def test_first_constraint_is_the_one_that_is_judged(folder: Path) -> None:
    words = {"func": "check_whether_response_word_count_in_range", "params": [10, 20]}
    judged = {"method": "rule_based", "verify_funcs": [words]}
    constraints = [
        [{"value": "10 to 20 words", "judge": judged}, {"value": "no lists"}],
        [{"value": "in the style of a letter"}],
        [{"value": "odd", "judge": {"method": "rule_based", "verify_funcs": [{"func": "f"}]}}],
    ]
    rows = [row(n, "single_rm", constraints=each) for n, each in enumerate(constraints)]
    source = ARMBench(write(folder, FOLLOWING, *rows))
    truths = [source[index].truth_as(JudgingTruth) for index in range(3)]
    texts = ["10 to 20 words", "in the style of a letter", "odd"]
    assert [truth.constraint for truth in truths] == texts
    arguments = {"lower_bound": 10, "upper_bound": 20}
    name = "check_whether_response_word_count_in_range"
    assert truths[0].check == ConstraintCheck(name=name, arguments=arguments)
    assert truths[1].check is None
    assert truths[2].check is None  # the verdict is given without it


def test_copy_further_down_is_not_read(folder: Path) -> None:
    write(folder / "archive", PERCEPTION, row(1), row(2))
    assert len(ARMBench(folder)) == 2
    write(folder, PERCEPTION, row(3))
    assert len(ARMBench(folder)) == 1


def test_tracks_all_or_one(folder: Path) -> None:
    write(folder, PERCEPTION, row(1), row(2, "4-way-pair_rm", gt=3))
    write(folder / "jsonl", DOCUMENT, row(1, "single_rm", doc_id="2023.report.pdf"))
    source = ARMBench(folder)
    assert [source[index].kind for index in range(3)] == ["pair_rm", "4-way-pair_rm", "single_rm"]
    tracks = [source[index].ground_truth.labels["track"] for index in (0, 2)]
    assert tracks == [PERCEPTION, DOCUMENT]
    assert len(ARMBench(folder, track=DOCUMENT)) == 1
    with pytest.raises(DataError, match=r"Expected multimodal_instruction_following\.jsonl"):
        ARMBench(folder, track=FOLLOWING)
    with pytest.raises(UnknownNameError, match="Did you mean 'fine_grained_perception'"):
        ARMBench(folder, track="fine_grain")


def test_ids_of_every_type(folder: Path) -> None:
    rows = [row(1), row("relpos-cb8b258c"), row(2.5), row(None, id="late")]
    source = ARMBench(write(folder, PERCEPTION, *rows))
    assert [source[index].id.rpartition("perception-")[2] for index in range(4)] == [
        "1",
        "relpos-cb8b258c",
        "2.5",
        "late",
    ]


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("{broken", "not JSON"),
        ("[1]", "expected an object"),
        ("[" * 100_000, "not JSON"),
        ({"rm_tag": "3-way-pair_rm"}, "There is no rm_tag called '3-way-pair_rm'"),
        ({"rm_tag": None}, "no rm_tag"),
        ({"preds": "ab"}, "preds must be a list of texts"),
        ({"preds": ["a", 2]}, "preds must be a list of texts"),
        ({"preds": ["a", "b", "c"]}, "3 preds, but pair_rm has 2"),
        ({"gt": 3}, "a number from 1 to 2, got 3"),
        ({"gt": 0}, "a number from 1 to 2, got 0"),
        ({"gt": -1}, "a number from 1 to 2, got -1"),
        ({"gt": True}, "a number from 1 to 2, got True"),
        ({"gt": "9" * 5000}, "a number from 1 to 2"),
        ({"gt": None}, "a number from 1 to 2, got None"),
        ({"rm_tag": "single_rm", "preds": ["a"], "gt": 1}, "True or False, got 1"),
        ({"question": " "}, "no question"),
        ({"idx": True}, "neither idx nor id"),
        ({"idx": 1}, "used before"),
        ({"images": "shots/a.jpg"}, "images must be a list of names"),
        ({"images": ["gone.jpg"]}, "there is no image"),
        ({"images": ["../secret.jpg"]}, "leads out"),
        ({"images": ["a\0.jpg"]}, "leads out"),
        ({"doc_id": "2024.report.pdf"}, "There is no document called '2024.report.pdf'"),
        ({"doc_id": "../../etc/passwd"}, "There is no document"),
        ({"doc_id": 7}, "no doc_id"),
        ({"constraints": {"value": "x"}}, "no constraints"),
        ({"constraints": [{"value": ""}]}, "no value"),
        ({"constraints": ["short"]}, "a row must be an object"),
    ],
)
def test_row_that_is_invalid_is_listed_and_the_others_are_read(
    folder: Path, bad: Any, problem: str
) -> None:
    line = bad if isinstance(bad, str) else row(2, **bad)
    source = ARMBench(write(folder, PERCEPTION, row(1), line, row(3)))
    assert len(source) == 2
    (listed,) = source.problems
    assert (Path(listed.file).name, listed.row) == (f"{PERCEPTION}.jsonl", 2)
    assert problem in listed.problem
    assert len(listed.problem) < 1000


def test_instruction_following_needs_its_constraint(folder: Path) -> None:
    rows = [row(1, "single_rm"), row(2, "single_rm", constraints=[{"value": "be short"}])]
    source = ARMBench(write(folder, FOLLOWING, *rows))
    assert "no constraints" in source.problems[0].problem
    assert len(source) == 1


def test_broken_image_is_known_when_its_row_is_asked_for(folder: Path) -> None:
    (folder / "bad.jpg").write_bytes(b"no image")
    source = ARMBench(write(folder, PERCEPTION, row(1, images=["bad.jpg"]), row(2)))
    with pytest.raises(ImageError, match=r"jsonl:1: .*bad\.jpg"):
        _ = source[0]
    assert source[1].images[0].size == (40, 30)


def test_folder_without_the_benchmark_lists_its_content(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(DataError, match=r"fine_grained_perception\.jsonl.*it holds notes\.txt"):
        ARMBench(tmp_path)


def test_armbench_pickles(folder: Path) -> None:
    source = ARMBench(write(folder, DOCUMENT, row(1, doc_id="2023.report.pdf")))
    copy = pickle.loads(pickle.dumps(source))
    assert copy[0] == source[0]
    assert len(copy.library.document("2023.report")) == 2
