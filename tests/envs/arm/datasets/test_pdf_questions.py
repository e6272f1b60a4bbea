"""Tests a folder of PDFs with a file of questions: the samples, and the listed problems."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.documents import Library
from visenv.envs.arm.datasets.pdf_questions import PdfQuestions
from visenv.errors import DataError
from visenv.types import Sample

pytestmark = pytest.mark.component("pypdfium2", "reportlab")

ANSWERS = {"answer": "right", "wrong_answers": ["wrong a", "wrong b", "wrong c"]}
GOOD = {"id": 1, "document": "minutes", "question": "Who?", **ANSWERS}
JUDGED = {
    "id": "j",
    "document": "plan.pdf",
    "question": "Why?",
    "candidates": ["a", "b"],
    "verdict": 2,
}


def pdf(pages: int) -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(200, 300))
    for page in range(1, pages + 1):
        canvas.drawString(20, 20, f"leaf {page}")
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


MINUTES, PLAN = pdf(3), pdf(1)


def fill(folder: Path, lines: list[Any], documents: str = "") -> Path:
    """Write two documents and these rows, given as objects or as text; return the folder."""
    place = folder / documents
    place.mkdir(parents=True, exist_ok=True)
    (place / "minutes.pdf").write_bytes(MINUTES)
    (place / "plan.pdf").write_bytes(PLAN)
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (folder / "questions.jsonl").write_text(text)
    return folder


def every(source: PdfQuestions) -> list[Sample]:
    return [source[index] for index in range(len(source))]


def test_answer_and_three_wrong_ones_give_three_samples(tmp_path: Path) -> None:
    row = {**GOOD, "evidence_pages": [2, 3], "gold_query": "who wrote"}
    source = PdfQuestions(fill(tmp_path, [row]))
    single, pair, four = every(source)
    assert [sample.id for sample in (single, pair, four)] == ["1/single", "1/pair", "1/4-way"]
    assert [sample.kind for sample in (single, pair, four)] == ["single", "pair", "4-way"]
    assert single.answers == (str(single.ground_truth.candidates == ("right",)),)
    for sample, count in ((pair, 2), (four, 4)):
        candidates = sample.ground_truth.candidates
        assert len(set(candidates)) == count
        assert candidates[int(sample.answers[0]) - 1] == "right"
        assert sample.ground_truth.document == "minutes"
        assert sample.ground_truth.evidence_pages == (2, 3)
        assert sample.ground_truth.gold_query == "who wrote"
        assert sample.question == "Who?"
        assert sample.images == ()
    assert isinstance(source.library, Library)
    assert source.library.document("minutes").page_text(2) == "leaf 2"


def test_samples_are_fewer_with_fewer_wrong_answers(tmp_path: Path) -> None:
    row = {**GOOD, "wrong_answers": ["no"], "kind": "people"}
    made = every(PdfQuestions(fill(tmp_path, [row])))
    assert [(sample.id, sample.kind) for sample in made] == [
        ("1/single", "people"),
        ("1/pair", "people"),
    ]


def test_candidates_are_taken_as_they_are(tmp_path: Path) -> None:
    single = {**JUDGED, "id": 7, "candidates": ["c"], "verdict": False}
    one, two = every(PdfQuestions(fill(tmp_path, [JUDGED, single])))
    assert (one.id, one.answers, one.kind) == ("j", ("2",), "")
    assert one.ground_truth.candidates == ("a", "b")
    assert one.ground_truth.document == "plan"
    assert one.ground_truth.evidence_pages == ()
    assert (two.id, two.answers) == ("7", ("False",))


def test_order_is_seeded_and_favors_no_place(tmp_path: Path) -> None:
    rows = [{**GOOD, "id": number} for number in range(400)]
    fill(tmp_path, rows)
    source = PdfQuestions(tmp_path)
    answers = [sample.answers for sample in every(source)]
    assert answers == [sample.answers for sample in every(PdfQuestions(tmp_path))]
    assert answers != [sample.answers for sample in every(PdfQuestions(tmp_path, seed="1"))]
    # 400 draws of probability 1/2 and 1/4: mean 200 and 100, five standard deviations 50 and 43.
    for first, outcomes in ((0, {"True", "False"}), (1, {"1", "2"}), (2, {"1", "2", "3", "4"})):
        counts = [answers[first::3].count((outcome,)) for outcome in outcomes]
        mean = 400 / len(outcomes)
        assert all(abs(count - mean) < 50 for count in counts)
    wrong = {
        sample.ground_truth.candidates[0]
        for sample in every(source)
        if sample.answers == ("False",)
    }
    assert wrong == {"wrong a", "wrong b", "wrong c"}


def test_documents_may_lie_in_a_folder_of_their_own(tmp_path: Path) -> None:
    inside = PdfQuestions(fill(tmp_path / "one", [GOOD], documents="documents"))
    assert len(inside) == 3
    fill(tmp_path / "two", [GOOD], documents="elsewhere")
    assert len(PdfQuestions(tmp_path / "two", documents=tmp_path / "two" / "elsewhere")) == 3
    with pytest.raises(DataError, match="There is no folder"):
        PdfQuestions(tmp_path / "two", documents=tmp_path / "nowhere")


def without(*keys: str) -> dict[str, Any]:
    return {key: value for key, value in GOOD.items() if key not in keys}


BAD: list[tuple[Any, str]] = [
    ("{", "not JSON"),
    ("[" * 100_000, "not JSON"),
    ("3", "expected an object, got int"),
    (without("id"), "no id: None"),
    ({**GOOD, "id": True}, "no id: True"),
    ({**GOOD, "id": "first/pair"}, "the id first/pair/single was used before"),
    (without("question"), "no question: None"),
    ({**GOOD, "question": " "}, "no question"),
    (without("document"), "no document: None"),
    ({**GOOD, "document": "minuts"}, "no document called 'minuts'. Did you mean 'minutes'"),
    ({**GOOD, "document": "../minutes"}, "no document called"),
    ({**GOOD, "document": "torn"}, "The document 'torn' is not a PDF"),
    (without("answer"), "no answer: None"),
    (without("wrong_answers"), "wrong_answers must be a list of texts, got None"),
    ({**GOOD, "wrong_answers": []}, "wrong_answers must be a list of texts"),
    ({**GOOD, "wrong_answers": ["a", 3]}, "must contain only texts"),
    ({**GOOD, "wrong_answers": ["a", "a"]}, "must all differ"),
    ({**GOOD, "wrong_answers": ["right"]}, "must all differ"),
    ({**JUDGED, "candidates": "ab"}, "candidates must be a list"),
    ({**JUDGED, "verdict": 3}, "a number from 1 to 2, got 3"),
    ({**JUDGED, "verdict": True}, "a number from 1 to 2, got True"),
    ({**JUDGED, "candidates": ["a"], "verdict": 1}, "True or False, got 1"),
    (
        {"id": "j", "document": "plan", "question": "?", "candidates": ["a"]},
        "True or False, got None",
    ),
    ({**GOOD, "evidence_pages": [4]}, "page numbers, 1 to 3, got"),
    ({**GOOD, "evidence_pages": [0]}, "page numbers, 1 to 3"),
    ({**GOOD, "evidence_pages": [True]}, "page numbers, 1 to 3"),
    ({**GOOD, "evidence_pages": 2}, "page numbers, 1 to 3"),
    ({**GOOD, "gold_query": 5}, "no gold_query: 5"),
    ({**GOOD, "kind": ""}, "no kind: ''"),
]


def test_rows_that_are_invalid_are_listed_with_their_line_and_the_others_are_read(
    tmp_path: Path,
) -> None:
    first = {**JUDGED, "id": "first/pair/single"}
    fill(tmp_path, [first, "", *(row for row, _ in BAD), {**GOOD, "id": "last"}])
    (tmp_path / "torn.pdf").write_bytes(MINUTES[:80])
    source = PdfQuestions(tmp_path)
    assert [sample.id for sample in every(source)] == [
        *("first/pair/single", "last/single", "last/pair", "last/4-way"),
    ]
    file = str(tmp_path / "questions.jsonl")
    assert [(each.file, each.row) for each in source.problems] == [
        (file, line) for line in range(3, len(BAD) + 3)
    ]
    for problem, (_, message) in zip(source.problems, BAD, strict=True):
        assert message in problem.problem


def test_folder_without_questions_or_without_a_good_row(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"Expected questions\.jsonl .* it holds nothing"):
        PdfQuestions(tmp_path)
    fill(tmp_path, ["{", GOOD | {"id": None}])
    with pytest.raises(
        DataError, match=r"No row .* can be used\. The first problem: .*jsonl:1: not"
    ):
        PdfQuestions(tmp_path)
    with pytest.raises(DataError, match="There is no folder"):
        PdfQuestions(tmp_path / "gone")


def test_pdf_questions_pickle(tmp_path: Path) -> None:
    source = PdfQuestions(fill(tmp_path, [GOOD]))
    copy = pickle.loads(pickle.dumps(source))
    assert every(copy) == every(source)
    assert copy.library.document("minutes").page_text(1) == "leaf 1"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("questions")


@given(changes=st.dictionaries(st.sampled_from([*GOOD, *JUDGED, "evidence_pages"]), JSON))
def test_row_of_any_content_is_kept_or_listed(folder: Path, changes: dict[str, Any]) -> None:
    row = {**GOOD, **changes, "extra": changes}
    source = PdfQuestions(fill(folder, [{**JUDGED, "id": "good"}, row]))
    assert source[0].id == "good"
    assert (len(source) == 1) == (len(source.problems) == 1)


@given(content=st.binary(max_size=60))
def test_bytes_of_any_file_are_accounted_for(folder: Path, content: bytes) -> None:
    fill(folder, [])
    line = json.dumps({**JUDGED, "id": "good"}).encode()
    (folder / "questions.jsonl").write_bytes(line + b"\n" + content)
    source = PdfQuestions(folder)
    assert len(source) == 1
    lines = [line for line in content.split(b"\n") if line.strip()]
    assert len(source.problems) == len(lines)
