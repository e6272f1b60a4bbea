"""Tests VLMEvalKit's TSV layout: one row of each data set, its score, and bad rows."""

from __future__ import annotations

import base64
import csv
import io
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

import visenv  # noqa: F401 - registers the environments
from visenv.envs.arm.datasets.vlmeval import VlmEval
from visenv.envs.arm.datasets.vlmeval_score import VlmEvalTruth, vlmeval_score, wemath_totals
from visenv.errors import DataError, UnknownNameError
from visenv.types import Episode, Failure, Sample

Row = dict[str, str]


def encoded(width: int = 40) -> str:
    """Return a noisy image in base64, which is longer than the index of a row."""
    pixels = np.random.default_rng(width).integers(0, 255, (30, width, 3), np.uint8)
    buffer = io.BytesIO()
    PIL.Image.fromarray(pixels).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def write(folder: Path, *rows: Row, name: str = "MMMU_DEV_VAL") -> Path:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with (folder / f"{name}.tsv").open("w", newline="") as file:
        table = csv.DictWriter(file, columns, delimiter="\t", restval="", lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    return folder


def row(index: int, **more: str) -> Row:
    return {"index": str(index), "image": encoded(), "question": "How much?", **more}


def only(folder: Path, made: Row) -> Sample:
    source = VlmEval(write(folder, made))
    assert source.problems == []
    return source[0]


CHOICES = "Choices:\n(A) 3\n(B) 5"


@pytest.mark.parametrize(
    ("made", "question", "options", "answer", "kind", "label"),
    [
        (  # MMMU
            {
                "question": "See <image 1>.",
                "A": "red",
                "B": "blue",
                "answer": "B",
                "category": "Art",
            },
            "See [original_image].\n(A) red\n(B) blue\nAnswer with the letter of the right option.",
            ("red", "blue"),
            "B",
            "choice",
            {"category": "Art"},
        ),
        ({"answer": "7 cm", "A": "", "B": ""}, "How much?", (), "7 cm", "open", {}),  # MMMU
        (  # MMMU: an option with the text "None" keeps its letter, and so do the options after it
            {"answer": "C", "A": "1", "B": "None", "C": "3", "D": "4", "E": "nan"},
            "How much?\n(A) 1\n(B) None\n(C) 3\n(D) 4\nAnswer with the letter of the right option.",
            ("1", "None", "3", "4"),
            "C",
            "choice",
            {},
        ),
        (  # MMMU: the last option has the text "None", and is right
            {"answer": "C", "A": "1", "B": "2", "C": "None", "D": "nan"},
            "How much?\n(A) 1\n(B) 2\n(C) None\nAnswer with the letter of the right option.",
            ("1", "2", "None"),
            "C",
            "choice",
            {},
        ),
        ({"answer": "B", "A": "nan", "B": "nan"}, "How much?", (), "B", "open", {}),
        (  # MathVista
            {
                "question": f"Which?\n{CHOICES}",
                "choices": "['3', '5']",
                "answer": "5",
                "answer_option": "B",
                "question_type": "multi_choice",
                "answer_type": "text",
                "task": "geometry",
            },
            f"Which?\n{CHOICES}",
            ("3", "5"),
            "B",
            "choice",
            {"task": "geometry"},
        ),
        (  # MathVista: the texts of the options occur in the question, but not as a list
            {
                "question": "AB is 35, CD is 3.",
                "choices": "['3', '5']",
                "answer_option": "B",
                "answer": "5",
            },
            "AB is 35, CD is 3.\n(A) 3\n(B) 5\nAnswer with the letter of the right option.",
            ("3", "5"),
            "B",
            "choice",
            {},
        ),
        (  # the question lists other texts as options
            {
                "question": "Which?\n(A) 35\n(B) 5",
                "choices": "['3', '5']",
                "answer_option": "B",
                "answer": "5",
            },
            "Which?\n(A) 35\n(B) 5\n(A) 3\n(B) 5\nAnswer with the letter of the right option.",
            ("3", "5"),
            "B",
            "choice",
            {},
        ),
        (
            {"answer": "14", "choices": "", "answer_type": "integer", "question_type": "free_form"},
            "How much?",
            (),
            "14",
            "number",
            {},
        ),
        (  # MathVision
            {"answer": "B", "choices": "['one', 'two']", "category": "algebra"},
            "How much?\n(A) one\n(B) two\nAnswer with the letter of the right option.",
            ("one", "two"),
            "B",
            "choice",
            {"category": "algebra"},
        ),
        ({"answer": "3/4", "choices": "[]"}, "How much?", (), "3/4", "open", {}),
        (  # MathVerse
            {
                "question": "See the image.",
                "question_for_eval": "How long is AB?\nChoices:\nA:2\nB:2√3",
                "answer": "B",
                "metadata": "{'problem_version': 'Vision Only', 'subfield': 'Length'}",
            },
            "See the image.",
            ("2", "2√3"),
            "B",
            "choice",
            {"problem_version": "Vision Only"},
        ),
        (  # LogicVista
            {"answer": "A, C", "skill": "inductive"},
            "How much?",
            (),
            "A, C",
            "letters",
            {"skill": "inductive"},
        ),
    ],
)
def test_row_of_each_data_set(
    tmp_path: Path,
    made: Row,
    question: str,
    options: tuple[str, ...],
    answer: str,
    kind: str,
    label: dict[str, str],
) -> None:
    sample = only(tmp_path, row(1, **made))
    truth = sample.truth_as(VlmEvalTruth)
    assert (sample.question, truth.options, sample.answers) == (question, options, (answer,))
    assert (truth.answer_kind, truth.labels) == (kind, label)
    assert sample.images[0].size == (40, 30)


def truth(kind: Any, answer: str, *options: str) -> Sample:
    return Sample("1", "?", (), (answer,), "", VlmEvalTruth(answer_kind=kind, options=options))


@pytest.mark.parametrize(
    ("answer", "sample", "score"),
    [
        ("(B)", truth("choice", "B", "red", "blue"), 1),
        ("blue", truth("choice", "B", "red", "blue"), 1),
        ("red", truth("choice", "B", "red", "blue"), 0),
        ("C and A", truth("letters", "A, C"), 1),
        ("A or C", truth("letters", "A, C"), 0),
        ("+14", truth("number", "14"), 1),
        ("1.4e1", truth("number", "14"), 1),
        ("−14", truth("number", "-14"), 1),
        ("-14", truth("number", "14"), 0),
        ("14 cm", truth("number", "14"), 1),
        ("14°", truth("number", "14"), 1),
        ("14 cats", truth("number", "14"), 0),
        ("9e99", truth("number", "14"), 0),
        (r"$\frac{3}{4}$", truth("open", "3/4"), 1),
        ("CA", truth("letters", "A, C"), 1),
        ("a; c", truth("letters", "A, C"), 1),
        ("A", truth("letters", "A, C"), 0),
        ("14", truth("number", "14"), 1),
        ("14.0", truth("number", "14"), 1),
        ("1,400", truth("number", "1400"), 1),
        ("-1,234,567.5", truth("number", "-1234567.5"), 1),
        ("$1,400", truth("open", "1400"), 1),
        ("1,2", truth("number", "12"), 0),
        ("1,2", truth("open", "12"), 0),
        ("12", truth("open", "1, 2"), 0),
        ("1,2", truth("open", "1,2"), 1),
        ("1,40", truth("number", "140"), 0),
        ("1400,000", truth("number", "1400000"), 0),
        ("14.1", truth("number", "14"), 0),
        ("+2.55", truth("number", "2.55"), 1),
        ("2.55e0", truth("number", "2.55"), 1),
        ("2.5E-1", truth("open", "1/4"), 1),
        (".5", truth("number", "0.5"), 1),
        ("5.", truth("number", "5"), 1),
        ("\u22122.55", truth("number", "-2.55"), 1),  # the minus sign of Unicode
        ("\u22122.55", truth("number", "2.55"), 0),
        ("2.55 cm", truth("number", "2.55"), 1),
        ("30°", truth("number", "30"), 1),
        ("50 %", truth("number", "50"), 1),
        ("9.8 m/s²", truth("number", "9.8"), 1),
        ("2 million", truth("number", "2"), 0),
        ("3k", truth("number", "3"), 0),
        ("5 cm", truth("open", "5"), 0),  # an open answer is compared as it is
        ("5 mm", truth("number", "5 cm"), 0),
        ("e5", truth("number", "5"), 0),
        ("2.55e400", truth("number", "2.55"), 0),
        (r"So \boxed{0.75}", truth("open", "3/4"), 1),
        ("0.7501", truth("open", "3/4"), 0),
        ("Seven  CM.", truth("open", "seven cm"), 1),
        ("", truth("open", "x"), 0),
        ("1/0", truth("open", "1"), 0),
        ("9" * 11_000, truth("number", "9"), 0),
    ],
)
def test_answer_is_scored_by_its_kind(answer: str, sample: Sample, score: int) -> None:
    assert vlmeval_score(answer, sample) == score


@given(st.text(), st.sampled_from(["choice", "letters", "number", "open"]))
def test_vlmeval_scores_any_answer(answer: str, kind: str) -> None:
    assert vlmeval_score(answer, truth(kind, "A", "x", "y")) in (0.0, 1.0)


def test_images_of_a_row_may_be_several_or_of_another_row(tmp_path: Path) -> None:
    two = row(1, image=str([encoded(40), encoded(50)]), answer="x", question="<image 2>?")
    again = row(2, image="1", answer="y")
    source = VlmEval(write(tmp_path, two, again))
    assert [image.size[0] for image in source[0].images] == [40, 50]
    assert [image.size[0] for image in source[1].images] == [40, 50]
    assert source[0].question == "[original_image_1]?"


def test_split_is_read_alone(tmp_path: Path) -> None:
    rows = [row(1, answer="x", split="dev"), row(2, answer="y", split="validation")]
    assert len(VlmEval(write(tmp_path, *rows))) == 2
    assert VlmEval(tmp_path, split="validation")[0].answers == ("y",)


def test_file_is_named_where_there_are_several(tmp_path: Path) -> None:
    write(tmp_path, row(1, answer="x"))
    write(tmp_path, row(1, answer="y"), name="WeMath")
    with pytest.raises(UnknownNameError, match="WeMath"):
        VlmEval(tmp_path)
    assert VlmEval(tmp_path, name="WeMath")[0].id == "WeMath-1"
    with pytest.raises(UnknownNameError, match="WeMath"):
        VlmEval(tmp_path, name="WeMaths")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"image": ""}, "no image"),
        ({"image": "77"}, "no row has the index '77'"),
        ({"answer": ""}, "no answer"),
        ({"question": " "}, "no question"),
        ({"A": "x", "B": "y", "answer": "Q"}, "not among the options"),
        ({"A": "x", "B": "y", "answer": "AB"}, "not among the options"),
        ({"choices": "['a', "}, "expected a list"),
    ],
)
def test_row_that_is_invalid_is_listed(tmp_path: Path, changes: Row, problem: str) -> None:
    source = VlmEval(write(tmp_path, row(1, answer="x"), {**row(2, answer="x"), **changes}))
    assert len(source) == 1
    (listed,) = source.problems
    assert problem in listed.problem
    assert listed.row == 3


def test_file_without_the_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"Expected a \.tsv"):
        VlmEval(tmp_path)
    (tmp_path / "a.tsv").write_text("index\tquestion\n1\tx\n")
    with pytest.raises(DataError, match="no column image, answer"):
        VlmEval(tmp_path)


def test_row_is_played_and_the_oracle_is_right(tmp_path: Path) -> None:
    write(tmp_path, row(1, A="red", B="blue", answer="B"))
    env = gym.make("visenv/ArmVQA-v0", data=f"vlmeval:{tmp_path}", preset="eval")
    env.reset(options={"index": 0})
    base: Any = env.unwrapped
    *_, info = env.step(base.grammar.compose(base.oracle_turn()))
    assert info["step"].metrics["accuracy"] == 1.0


# ---------------------------------------------------------------------------- WeMath


def played(problem: str, **right: int) -> list[tuple[Episode, Sample]]:
    """Return episodes of the steps of one problem, right or wrong."""
    number = len(right) - 1
    made = []
    for step, hit in right.items():
        known = VlmEvalTruth(problem=problem, step=f"{number}steps_{step.strip('_')}")
        sample = Sample(f"{problem}-{step}", "?", (), ("A",), "", known)
        episode = Episode(
            env_id="e",
            seed=0,
            sample_id=sample.id,
            kind="",
            group=0,
            member=0,
            status="terminated",
            turns=(),
            metrics={"accuracy": float(hit)},
        )
        made.append((episode, sample))
    return made


def test_wemath_counts_complete_problems() -> None:
    episodes = [
        *played("mastered", _1=1, _2=1, _multi=1),
        *played("inadequate", _1=1, _2=1, _multi=0),
        *played("insufficient", _1=0, _2=1, _multi=0),
        *played("by rote", _1=0, _2=1, _multi=1),
        *played("all by rote", _1=0, _2=0, _3=0, _multi=1),
        *played("incomplete", _1=1, _multi=1),
        *played("of other steps", _1=1, _3=1, _multi=1),
        *played("without the whole", _1=1, _2=1, _3=1),
    ]
    # Strict: IG 1, IK 1, RM 2 of 5 problems; loose: "by rote" counts as mastered.
    totals = wemath_totals(episodes)
    assert totals == pytest.approx({"WeMath (strict)": 1 - 3.5 / 5, "WeMath (loose)": 1 - 2.5 / 5})
    assert wemath_totals([]) == {}
    # An aborted step is a wrong one: the first problem is then learned by rote, 1 of 5 more lost.
    gone = replace(
        episodes[0][0], status="aborted", failure=Failure("service", "server", "gone"), metrics={}
    )
    lost = wemath_totals([(gone, episodes[0][1]), *episodes[1:]])
    assert lost["WeMath (strict)"] == pytest.approx(1 - 4.5 / 5)


@given(st.binary(max_size=300))
def test_bytes_after_the_header_are_rows_or_problems(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        good = f"1\t{encoded()}\tHow much?\tx\n".encode()
        header = b"index\timage\tquestion\tanswer\n"
        (Path(folder) / "a.tsv").write_bytes(header + good + content)
        source = VlmEval(folder)
        assert source[0].answers == ("x",)
