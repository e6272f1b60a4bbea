"""Tests LLaVA-Critic: four forms of conversation, and rows with none of them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from visenv.envs.arm.datasets.llava_critic import LLaVACritic
from visenv.errors import DataError, UnknownNameError

BRACKETS = (
    "<image>\nYou are given an image and a question.\nQuestion: [What is [red] here?]\n"
    "The first response: [A car.\nIt is red.]\nThe second response: [A [small] boat.]\nASSISTANT:\n"
)
ARENA = (
    "<image>\n<|User Prompt|>\nWhat is this?\n\n<|The Start of Assistant A's Answer|>\nA cat.\n"
    "<|The End of Assistant A's Answer|>\n\n<|The Start of Assistant B's Answer|>\nA dog.\n"
    "<|The End of Assistant B's Answer|>"
)
SCORES = (
    "<image>\n[Question]\nWhat is this?\n\n[Assistant 1]\nA cat.\n\n[End of Assistant 1]\n\n"
    "[Assistant 2]\nA dog.\n\n[End of Assistant 2]\n\n[System]\nJudge them."
)
CAPTION = (
    "<image>\nJudge the caption.\nText Caption: A red car on a road.\n"
    "From 0 to 100, how good is it?\nWrite Final Score: n."
)


def row(human: str, gpt: str, identity: Any = "a1", **changes: Any) -> dict[str, Any]:
    turns = [{"from": "human", "value": human}, {"from": "gpt", "value": gpt}]
    made = {"id": identity, "source": "svit", "image": "a.png", "conversations": turns}
    return {**made, **changes}


def write(folder: Path, *rows: Any, kind: str = "pairwise") -> Path:
    (folder / "images").mkdir(exist_ok=True)
    PIL.Image.new("RGB", (40, 30)).save(folder / "images" / "a.png")
    (folder / f"{kind}.json").write_text(json.dumps(rows))
    return folder


@pytest.mark.parametrize(
    ("human", "gpt", "kind", "question", "candidates", "answer"),
    [
        (
            BRACKETS,
            "Both name a colour.\nThe better response: [second].",
            "brackets",
            "What is [red] here?",
            ["A car.\nIt is red.", "A [small] boat."],
            "2",
        ),
        (
            BRACKETS.replace("The first response", "Response 1").replace(
                "The second response", "Response 2"
            ),
            "The better response: [1]",
            "brackets",
            "What is [red] here?",
            ["A car.\nIt is red.", "A [small] boat."],
            "1",
        ),
        (
            ARENA,
            "I answer too. [[A=B]]? No.\n[[B>>A]]",
            "arena",
            "What is this?",
            ["A cat.", "A dog."],
            "2",
        ),
        (ARENA, "[[A>B]]", "arena", "What is this?", ["A cat.", "A dog."], "1"),
        (
            SCORES,
            "8 6.5\nThe first is right.",
            "two scores",
            "What is this?",
            ["A cat.", "A dog."],
            "1",
        ),
        (SCORES, "3, 9", "two scores", "What is this?", ["A cat.", "A dog."], "2"),
        (
            CAPTION,
            "It is a car.\nFinal Score: 50",
            "caption",
            "From 0 to 100, how good is it?",
            ["A red car on a road."],
            "True",
        ),
        (
            CAPTION,
            "Final Score: 90 at first.\nFinal Score: 49.5",
            "caption",
            "From 0 to 100, how good is it?",
            ["A red car on a road."],
            "False",
        ),
    ],
)
def test_forms_of_llava_critic(
    tmp_path: Path,
    human: str,
    gpt: str,
    kind: str,
    question: str,
    candidates: list[str],
    answer: str,
) -> None:
    source = LLaVACritic(write(tmp_path, row(human, gpt)))
    assert source.problems == []
    sample = source[0]
    assert sample.kind == kind
    assert sample.question == question
    assert sample.ground_truth.candidates == tuple(candidates)
    assert sample.answers == (answer,)
    assert sample.ground_truth.source == "svit"
    assert sample.images[0].size == (40, 30)


def test_caption_keeps_its_score(tmp_path: Path) -> None:
    write(tmp_path, row(CAPTION, "Final Score: 85", 7), kind="pointwise")
    source = LLaVACritic(tmp_path, kind="pointwise")
    assert source[0].id == "llava_critic-pointwise-7"
    assert (source[0].ground_truth.score, source[0].ground_truth.rating) == (85.0, (0, 100))


@pytest.mark.component("pyarrow")
def test_hub_layout(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    buffer = io.BytesIO()
    PIL.Image.new("RGB", (40, 30)).save(buffer, "PNG")
    image = {"bytes": buffer.getvalue(), "path": "a.png"}
    for kind, made in (
        ("pairwise", row(ARENA, "[[A>B]]")),
        ("pointwise", row(CAPTION, "no score")),
    ):
        (tmp_path / kind).mkdir()
        shard = tmp_path / kind / "train-00000-of-00001.parquet"
        parquet.write_table(pa.Table.from_pylist([{**made, "image": image}]), shard)
    assert LLaVACritic(tmp_path)[0].images[0].size == (40, 30)
    with pytest.raises(DataError, match="no Final Score from 0 to 100"):
        LLaVACritic(tmp_path, kind="pointwise")
    with pytest.raises(UnknownNameError, match="Did you mean 'pointwise'"):
        LLaVACritic(tmp_path, kind="pointwse")


GOOD = row(ARENA, "[[A>B]]", "good")


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ([1], "expected an object"),
        (row("Which is better?", "the first"), "none of the forms"),
        (row(BRACKETS, "They are equally good."), "no better response, or a draw"),
        (row(BRACKETS, "The better response: [neither]"), "no better response, or a draw"),
        (row(ARENA, "[[A=B]]"), "or a draw"),
        (row(ARENA, "A"), "no verdict such as [[A>B]]"),
        (row(SCORES, "7 7"), "a draw: 7 and 7"),
        (row(SCORES, "The first wins"), "does not begin with two scores"),
        (row(CAPTION, "Final Score: 101"), "no Final Score from 0 to 100"),
        (row(CAPTION, "Final Score: -1"), "no Final Score from 0 to 100"),
        (row(ARENA, "[[A>B]]", conversations=[]), "conversations must be two turns"),
        (row(ARENA, "[[A>B]]", conversations=["a", "b"]), "a row must be an object"),
        (row(ARENA, ""), "no value"),
        (row(ARENA, "[[A>B]]", None), "no id"),
        (row(ARENA, "[[A>B]]", "good"), "used before"),
        (row(ARENA, "[[A>B]]", image="gone.png"), "there is no image"),
    ],
)
def test_row_that_is_invalid_is_listed_and_the_others_are_read(
    tmp_path: Path, bad: Any, problem: str
) -> None:
    source = LLaVACritic(write(tmp_path, GOOD, bad))
    assert len(source) == 1
    (listed,) = source.problems
    assert listed.row == 2
    assert problem in listed.problem


def test_markers_without_end_are_read_once(tmp_path: Path) -> None:
    # A reader that tries every pair of markers would exceed the time limit.
    hostile = [
        "Question: [" * 20_000,
        "Question: [" + "] \n" * 60_000,
        "Question: [a]\nResponse 1: [b]\nResponse 2: [" + "[" * 100_000,
        "[Question]" * 20_000 + "[Assistant 1]" * 20_000,
        "Text Caption:" * 20_000,
    ]
    rows = [row(text, "8 6", number) for number, text in enumerate(hostile)]
    source = LLaVACritic(write(tmp_path, GOOD, *rows))
    assert [problem.row for problem in source.problems] == [2, 3, 4, 5, 6]


def test_pairs_in_both_orders_have_the_verdict_turned(tmp_path: Path) -> None:
    write(tmp_path, row(ARENA, "[[B>A]]"), row(CAPTION, "Final Score: 80", "a2"))
    source = LLaVACritic(tmp_path, orders="both")
    assert source.problems == []
    pair, swapped, caption = (source[place] for place in range(3))
    assert pair.ground_truth.candidates == ("A cat.", "A dog.")
    assert swapped.ground_truth.candidates == ("A dog.", "A cat.")
    assert (pair.answers, swapped.answers) == (("2",), ("1",))
    assert swapped.id == f"{pair.id}/swapped"
    assert swapped.images[0].size == pair.images[0].size == (40, 30)
    # a single response cannot be swapped
    assert caption.ground_truth.candidates == ("A red car on a road.",)
    assert len(source) == 3


def test_order_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="both"):
        LLaVACritic(write(tmp_path, row(ARENA, "[[B>A]]")), orders="botch")
