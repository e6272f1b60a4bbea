"""Tests the score of MMLongBench-Doc: golden values of its script, and inputs that made it fail."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.envs.arm.answer_judge import AnswerJudged
from visenv.envs.arm.datasets.mmlongbench import FORMATS, MMLongBench, mmlongbench_score
from visenv.errors import ConfigurationError, DataError
from visenv.types import Answered, Episode, Failure, Message, Turn

GOLDEN = [  # reference, answer, format, score of the official script
    ("5", "5.0", "Int", 1),
    ("5", "five", "Int", 0),
    ("0.25", "25%", "Float", 1),
    ("10%", "0.1", "Float", 1),
    ("100", "100.9", "Float", 1),
    ("100", "101.1", "Float", 0),
    ("Paris", "paris, France", "Str", 0),
    ("hello", "helo", "Str", 0.8),
    ("3 kg", "3kg", "Str", 0.75),
    ("['a','b']", "['b','a']", "List", 1),
    ("['a','b']", "['a']", "List", 0),
]


@pytest.mark.parametrize(("reference", "answer", "form", "score"), GOLDEN)
def test_golden_values(reference: str, answer: str, form: str, score: float) -> None:
    assert mmlongbench_score(answer, reference, form) == pytest.approx(score)


@pytest.mark.parametrize(
    ("reference", "answer", "form", "score"),
    [
        ("5", "5.9", "Int", 1),  # truncated to a whole number, as in the script
        ("5", "inf", "Int", 0),
        ("5", "nan", "Int", 0),
        ("five", "five", "Int", 0),  # the reference is no number
        ("$1,5", "1.5", "Float", 0),
        ("1.005", "$1.0 (about)", "Float", 1),  # brackets and signs are removed; 0.5 % apart
        ("0.333", "33.3", "Float", 1),
        ("5", "inf", "Float", 0),
        ("5", "nan", "Float", 0),
        ("nan", "nan", "Float", 0),
        ("Not answerable", "not answerable", "None", 1),
        ("https://w.wiki/6gb", "https://w.wiki/6gc", "Str", 0),  # a link is right or wrong
        ("https://w.wiki/6gb", "HTTPS://w.wiki/6gb", "Str", 1),
        ("page 12", "page 13", "Str", 0),
        ("2024-05-01", "2024-05-02", "Str", 0),
        ("10:30 a.m.", "10:31 a.m.", "Str", 0),
        ("a@b.org", "a@c.org", "Str", 0),
        ("train.py", "train.p", "Str", 0),
        ("'quoted'", "quoted (in brackets)", "Str", 1),
        ("['White', '10%']", "['10', 'white']", "List", 1),  # sorted: "10" first, and as a number
        ("['White', '10%']", "['11', 'white']", "List", 0),
        ("['red', 'blue']", "['redd', 'blue']", "List", 0.75),  # the lowest: 1 - 1/4
        ("[]", "[]", "List", 1),
        ("red", "red", "List", 1),
        ("['red']", "[__import__('os')]", "List", 0),  # never evaluated
        ("['red']", "[" * 9_000, "List", 0),
        ("hello", "x" * 10_001, "Str", 0),
    ],
)
def test_mmlongbench_score_by_hand(reference: str, answer: str, form: str, score: float) -> None:
    assert mmlongbench_score(answer, reference, form) == pytest.approx(score)


def test_unknown_format_is_named() -> None:
    with pytest.raises(DataError, match="must be one of Int, Float"):
        mmlongbench_score("a", "a", "Text")


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from(FORMATS))
def test_mmlongbench_score_of_any_answer_lies_in_0_to_1(
    answer: str, reference: str, form: str
) -> None:
    assert 0 <= mmlongbench_score(answer, reference, form) <= 1


@given(st.sampled_from(["(", ")", "[", "'", " ", "1", "%", "$"]), st.integers(1, 10_000))
def test_long_runs_of_one_character(character: str, count: int) -> None:
    for form in FORMATS:
        assert 0 <= mmlongbench_score(character * count, "12", form) <= 1


Row = dict[str, Any]


def row(**changes: Any) -> Row:
    made = {
        "doc_id": "PH_2016.06.08-Final.pdf",
        "doc_type": "Research report / Introduction",
        "question": "How many charts are there?",
        "answer": "6",
        "evidence_pages": "[2, 3]",
        "evidence_sources": "['Chart', 'Pure-text (Plain-text)']",
        "answer_format": "Int",
    }
    return {**made, **changes}


ABSENT = {"answer": "Not answerable", "answer_format": "None", "evidence_pages": "[]"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pages = tmp_path / "data" / "documents"
    pages.mkdir(parents=True)
    for page in (1, 2, 3):
        image = PIL.Image.new("RGB", (60, 80))
        image.save(pages / f"PH_2016.06.08-Final_{page}.jpg")
    return tmp_path


def write(folder: Path, *rows: Any) -> Path:
    (folder / "data" / "samples.json").write_text(json.dumps(rows))
    return folder


def answered(sample_id: str, answer: str | None) -> Episode:
    events = () if answer is None else (Answered(0, answer),)
    turn = Turn((Message("user", ("?",)),), "text", 0.0, events, "stop")
    status, reason = ("truncated", "turns") if answer is None else ("terminated", "")
    return Episode("e", sample_id, "", 0, 0, 0, (turn,), status, reason)  # type: ignore[arg-type]


def test_rows_and_kinds(folder: Path) -> None:
    source = MMLongBench(write(folder, row(), row(evidence_pages="[2]"), row(**ABSENT)))
    assert source.problems == []
    sample = source[0]
    assert sample.question == "How many charts are there?"
    assert sample.answers == ("6",)
    assert sample.images == ()
    assert sample.ground_truth.document == "PH_2016.06.08-Final"
    assert sample.ground_truth.evidence_pages == (2, 3)
    assert sample.ground_truth.evidence_sources == ("Chart", "Pure-text (Plain-text)")
    assert [source[n].kind for n in range(3)] == ["cross-page", "single-page", "unanswerable"]
    assert sample.ground_truth.labels == {
        "pages": "cross-page",
        "document type": "Research report / Introduction",
    }
    assert source.library is not None
    assert len(source.library.document(sample.ground_truth.document)) == 3


def test_score_depends_on_the_format(folder: Path) -> None:
    source = MMLongBench(write(folder, row(), row(answer="25%", answer_format="Float")))
    assert [source.score(each, source[0]) for each in ("6", "6.0", "7", "six")] == [1, 1, 0, 0]
    assert source.score("0.25", source[1]) == 1


def test_f1_by_hand(folder: Path) -> None:
    source = MMLongBench(write(folder, row(), row(), row(answer="7"), row(**ABSENT), row(**ABSENT)))
    ids = [source[index].id for index in range(5)]
    said = ["6", "Not answerable", None, "not answerable", "5"]
    episodes = [answered(each, answer) for each, answer in zip(ids, said, strict=True)]
    # One of the 3 answerable questions is right: recall 1/3. Answers other than "not answerable":
    # "6", no answer, "5", so precision 1/3. F1 = 2 x 1/3 x 1/3 / (2/3) = 1/3.
    assert source.totals(episodes) == {"F1": pytest.approx(1 / 3)}
    # Without the last answer: precision 1/2, F1 = 2 x 1/3 x 1/2 / (5/6) = 0.4.
    assert source.totals(episodes[:4]) == {"F1": pytest.approx(0.4)}
    assert source.totals(episodes[2:3]) == {"F1": 0.0}
    # An aborted episode counts like one without an answer, even if its row was never read.
    failure = Failure("data", "ImageError", "a.jpg is broken")
    lost: dict[str, Any] = {"status": "aborted", "reason": "", "failure": failure, "turns": ()}
    gone = replace(episodes[2], sample_id="", index=2, **lost)
    assert source.totals([*episodes[:2], gone, *episodes[3:]]) == {"F1": pytest.approx(1 / 3)}
    assert source.totals(episodes[3:]) == {}  # no answerable question
    assert source.totals([answered("of another set", "6")]) == {}


def test_f1_counts_as_answered_what_the_judge_extracted(folder: Path) -> None:
    source = MMLongBench(write(folder, row(), row(), row(**ABSENT), row(**ABSENT)))
    said = ["There are 6", "It is not told", "It is not told", "I see 5"]
    extracted = ["6", "Not answerable", "Not answerable", "5"]
    episodes = []
    for place, (answer, short) in enumerate(zip(said, extracted, strict=True)):
        sample = source[place]
        score = source.score(short, sample)
        events = (Answered(0, answer), AnswerJudged(0, score, short))
        episode = answered(sample.id, answer)
        turn = replace(episode.turns[0], events=events)
        episodes.append(replace(episode, turns=(turn,), metrics={"accuracy": score}))
    # Of 2 answerable questions 1 is right: recall 1/2. Answered: "6" and "5", so precision 1/2.
    assert source.totals(episodes) == {"F1": pytest.approx(0.5)}
    # Without the last answer, the precision is 1: F1 = 2 x 1/2 / (3/2) = 2/3.
    assert source.totals(episodes[:3]) == {"F1": pytest.approx(2 / 3)}


@pytest.mark.component("pyarrow")
def test_hub_layout(folder: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    shard = folder / "data" / "train-00000-of-00001.parquet"
    parquet.write_table(pa.Table.from_pylist([row(), row(doc_id="gone.pdf")]), shard)
    source = MMLongBench(folder, documents=folder / "data" / "documents")
    assert source[0].ground_truth.evidence_pages == (2, 3)
    (problem,) = source.problems
    assert problem.row == 2
    assert "There is no document called 'gone.pdf'" in problem.problem


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("text", "expected an object, got str"),
        ([1], "expected an object"),
        (row(doc_id=None), "no doc_id"),
        (row(doc_id="../samples.json"), "There is no document"),
        (row(doc_id="x" * 10_000), "There is no document"),
        (row(question=""), "no question"),
        (row(answer=None), "no answer"),
        (row(answer=""), "no answer"),
        (row(answer_format="Text"), "answer_format must be one of"),
        (row(evidence_pages="[-1]"), "must be page numbers from 1"),
        (row(evidence_pages="['5']"), "must be page numbers from 1"),
        (row(evidence_pages="[5"), "expected a list"),
        (row(evidence_pages="__import__('os').getcwd()"), "expected a list"),
        (row(evidence_pages="[" * 5_000), "expected a list"),
        (row(evidence_sources="Chart"), "expected a list"),
    ],
)
def test_row_that_is_invalid_is_listed_and_the_others_are_read(
    folder: Path, bad: Any, problem: str
) -> None:
    source = MMLongBench(write(folder, row(), bad, row()))
    assert len(source) == 2
    (listed,) = source.problems
    assert (Path(listed.file).name, listed.row) == ("samples.json", 2)
    assert problem in listed.problem


def test_published_rows_with_impossible_pages_are_kept(folder: Path) -> None:
    # Three published rows name page 0, and five name pages beyond the end of their document.
    rows = [row(evidence_pages=f"{pages}") for pages in ([0], [2, 9], [9])]
    source = MMLongBench(write(folder, *rows))
    assert source.problems == []
    truths = [source[place].ground_truth.evidence_pages for place in range(3)]
    assert truths == [(), (2,), ()]
    assert [source[place].kind for place in range(3)] == [
        *("single-page", "cross-page", "single-page")
    ]


def test_missing_folder_of_documents_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "samples.json").write_text(json.dumps([row()] * 312))
    with pytest.raises(DataError, match=r"^There is no folder of documents in .*\?documents="):
        MMLongBench(tmp_path)


def test_links_that_lead_out_are_named_and_can_be_followed(folder: Path, tmp_path: Path) -> None:
    write(folder, row(doc_id="linked.pdf"))
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    PIL.Image.new("RGB", (60, 80)).save(outside / "page.jpg")
    (folder / "data" / "documents" / "linked_1.jpg").symlink_to(outside / "page.jpg")
    with pytest.raises(DataError, match=r"1 links lead out .*'linked_1\.jpg'.*follow_links=true"):
        MMLongBench(folder)
    assert len(MMLongBench(folder, follow_links="true")) == 1
    with pytest.raises(ConfigurationError, match="follow_links must be true or false"):
        MMLongBench(folder, follow_links="perhaps")


def test_file_that_is_no_list_is_named(folder: Path) -> None:
    (folder / "data" / "samples.json").write_text('{"rows": 3}')
    with pytest.raises(DataError, match=r"samples\.json must be a list of objects, or an object"):
        MMLongBench(folder)


def test_f1_takes_the_accuracy_that_was_scored_in_the_episode(folder: Path) -> None:
    source = MMLongBench(write(folder, row()))
    sample = source[0]
    episode = answered(sample.id, "There are 6 of them")
    assert source.totals([episode]) == {"F1": 0.0}
    judged = replace(episode, metrics={"accuracy": 1.0})
    assert source.totals([judged]) == {"F1": 1.0}
