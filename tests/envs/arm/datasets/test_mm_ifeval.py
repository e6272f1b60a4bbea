"""Tests MM-IFEval: constraints with our names of checks, TSV and JSON Lines, bad rows."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from visenv.checks import CHECKS
from visenv.envs.arm.datasets.mm_ifeval import MMIFEval, check_of
from visenv.envs.arm.ground_truth import ConstraintCheck
from visenv.errors import DataError, ImageError

COLUMNS = ("index", "id", "image", "instruction", "tag", "constraints", "answer", "infer_type")
Row = dict[str, Any]


def rule(name: str, *parameters: Any) -> Row:
    return {"func": name, "params": list(parameters)}


def constraint(*functions: Row, method: str = "rule_based") -> Row:
    judge = {"method": method, "verify_funcs": list(functions)}
    return {"key": "length", "value": "Use 10 to 20 words.", "judge": judge}


WORDS = rule("check_whether_response_word_count_in_range", 10, 20)
KEYWORDS = rule("check_whether_total_keyword_in_list_metioned_in_range", ["#cat"], 1, 3)


def encoded() -> str:
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (40, 30)).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def row(number: int, **changes: Any) -> Row:
    made = {
        "id": f"C-{number}",
        "image": "a.png",
        "instruction": "Describe the picture.",
        "tag": "C-Level",
        "constraints": [constraint(WORDS)],
        "answer": None,
        "infer_type": "main",
    }
    return {**made, **changes}


def lines(folder: Path, *rows: Any) -> Path:
    (folder / "images").mkdir(exist_ok=True)
    PIL.Image.new("RGB", (40, 30)).save(folder / "images" / "a.png")
    written = [each if isinstance(each, str) else json.dumps(each) for each in rows]
    (folder / "mmif.jsonl").write_text("\n".join(written))
    return folder


def table(folder: Path, *rows: Row) -> Path:
    """Write the TSV as pandas does: with doubled quotes inside a quoted field."""

    def cell(value: Any) -> str:
        text = value if isinstance(value, str) else "" if value is None else json.dumps(value)
        return '"' + text.replace('"', '""') + '"' if '"' in text else text

    written = [
        "\t".join(cell({"index": str(n), **each}.get(column)) for column in COLUMNS)
        for n, each in enumerate(rows)
    ]
    (folder / "MM-IFEval.tsv").write_text("\n".join(["\t".join(COLUMNS), *written]) + "\n")
    return folder


def test_checks_have_our_names(tmp_path: Path) -> None:
    judged = constraint(method="direct_gpt") | {"key": "tone", "value": "Be kind."}
    source = MMIFEval(lines(tmp_path, row(1, constraints=[constraint(WORDS, KEYWORDS), judged])))
    assert source.problems == []
    sample = source[0]
    assert (sample.id, sample.kind) == ("mm_ifeval-C-1", "C-Level")
    assert sample.question == "Describe the picture."
    assert sample.answers == ()
    assert sample.images[0].size == (40, 30)
    first, second = sample.ground_truth.constraints
    assert (first.text, first.method) == ("Use 10 to 20 words.", "rule_based")
    assert first.checks == (
        ConstraintCheck(
            name="check_whether_response_word_count_in_range",
            arguments={"lower_bound": 10, "upper_bound": 20},
        ),
        ConstraintCheck(
            name="check_whether_total_keyword_in_list_mentioned_in_range",
            arguments={"keywords": ["#cat"], "lower_bound_times": 1, "upper_bound_times": 3},
        ),
    )
    assert (second.key, second.text) == ("tone", "Be kind.")
    assert (second.method, second.checks) == ("direct_gpt", ())


def test_question_with_an_answer(tmp_path: Path) -> None:
    asked = row(1, tag="P-Level", instruction="", question="What is it?", answer="A cat")
    source = MMIFEval(lines(tmp_path, asked | {"constraints": []}))
    assert source[0].question == "What is it?"
    assert (source[0].answers, source[0].kind) == (("A cat",), "P-Level")


def test_table(tmp_path: Path) -> None:
    rows = [
        row(0, image=encoded()),
        row(1, image="0", instruction="Say it\tin two\nlines."),
        row(2, image="0", infer_type="aux_cmp_gpt"),
        row(3, image="9"),
        row(4, image=base64.b64encode(b"no image" * 20).decode()),
        row(5, image="!" * 100),
    ]
    rows[1]["instruction"] = 'Say "hello".'
    source = MMIFEval(table(tmp_path, *rows))
    assert [source[n].id for n in (0, 1)] == ["mm_ifeval-C-0", "mm_ifeval-C-1"]
    assert source[1].question == 'Say "hello".'
    assert source[1].images[0].size == (40, 30)  # the image of row 0
    assert source[1].ground_truth == source[0].ground_truth
    (missing,) = source.problems
    assert (missing.row, missing.problem) == (5, "no row has the index '9', to take its image")
    with pytest.raises(ImageError, match=r"MM-IFEval\.tsv:6"):
        _ = source[2]
    with pytest.raises(DataError, match=r"MM-IFEval\.tsv:7.* is not Base64 text"):
        _ = source[3]


def test_constraints_written_as_python(tmp_path: Path) -> None:
    source = MMIFEval(lines(tmp_path, row(1, constraints=repr([constraint(WORDS)]))))
    assert len(source[0].ground_truth.constraints[0].checks) == 1


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("{", "not JSON"),
        ({"constraints": []}, "the tag C-Level must have constraints"),
        ({"constraints": "[__import__('os')]"}, "expected a list"),
        ({"constraints": "[" * 5_000}, "expected a list"),
        ({"constraints": [7]}, "expected an object"),
        ({"constraints": [{"key": "k", "value": "v"}]}, "judge.method must be one of"),
        ({"constraints": [constraint()]}, "rule_based without verify_funcs"),
        ({"constraints": [constraint(rule("check_nothing"))]}, "unknown rule function"),
        ({"constraints": [constraint(rule(WORDS["func"], 1))]}, "takes lower_bound, upper_bound"),
        ({"constraints": [constraint(rule(WORDS["func"], 1, 2, 3))]}, "takes lower_bound"),
        ({"constraints": [constraint(WORDS) | {"value": ""}]}, "no value"),
        ({"tag": "P-Level"}, "a P-Level row must have an answer"),
        ({"tag": ""}, "no tag"),
        ({"instruction": None}, "no question"),
        ({"id": None}, "neither id nor index"),
        ({"id": "C-1"}, "used before"),
        ({"image": "gone.png"}, "there is no image"),
    ],
)
def test_row_that_is_invalid_is_listed_and_the_others_are_read(
    tmp_path: Path, bad: Any, problem: str
) -> None:
    line = bad if isinstance(bad, str) else row(2, **bad)
    source = MMIFEval(lines(tmp_path, row(1), line, row(3)))
    assert len(source) == 2
    (listed,) = source.problems
    assert listed.row == 2
    assert problem in listed.problem


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (WORDS, {"lower_bound": 10, "upper_bound": 20}),
        (
            rule("check_whether_each_keyword_in_list_metioned_in_range", ["a", "b"], 0, 2),
            {"keywords": ["a", "b"], "lower_bound_times": 0, "upper_bound_times": 2},
        ),
        (
            rule("check_whether_each_paragraph_sentence_number_in_range_list", [[1, 2], [3, 3]]),
            {"ranges": [[1, 2], [3, 3]]},
        ),
        (rule("check_number_precision_in_response", 2), {"precision": 2}),
        (rule("check_whether_has_no_arabic_number_in_response"), {}),
        (
            {"func": WORDS["func"], "params": {"upper_bound": 20, "lower_bound": 10}},
            {"lower_bound": 10, "upper_bound": 20},
        ),
        ({"func": "check_whether_has_no_arabic_number_in_response"}, {}),
    ],
)
def test_parameters_by_place_or_by_name(function: Row, arguments: Row) -> None:
    check = check_of(function)
    assert check.name == function["func"].replace("metioned", "mentioned")
    assert check.arguments == arguments


def test_checks_are_found_under_their_names() -> None:
    assert len(CHECKS) == 19
    for name, made in CHECKS.items():
        given = [_SAMPLE[parameter] for parameter in made.arguments.model_fields]
        assert check_of(rule(name, *given)).name == name


_SAMPLE: Row = {
    "lower_bound": 1,
    "upper_bound": 2,
    "ranges": [[1, 2]],
    "substrings": ["x"],
    "substring": "x",
    "keywords": ["x"],
    "lower_bound_times": 0,
    "upper_bound_times": 1,
    "precision": 2,
}


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (None, "must be an object"),
        (7, "must be an object"),
        ([], "must be an object"),
        ("check", "must be an object"),
        ({"func": None}, "unknown rule function"),
        ({"params": []}, "unknown rule function"),
        (rule("check_whether_response_word_count_in_rnge", 1, 2), "Did you mean 'check_whether"),
        (rule(WORDS["func"], 20, 10), "swap them"),
        (rule(WORDS["func"], "10", 20), "lower_bound"),
        (rule(WORDS["func"], -1, 20), "lower_bound"),
        ({"func": WORDS["func"], "params": {"lower_bound": 1}}, "upper_bound"),
        ({"func": WORDS["func"], "params": "10, 20"}, WORDS["func"]),
    ],
)
def test_unknown_rule_function_is_refused(bad: Any, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        check_of(bad)
