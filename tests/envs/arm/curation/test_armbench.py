"""Tests judging items: forms, orders, leaks, and that the benchmark's own loader reads them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.hostile_rows import hostile
from visenv.curation.writer import Writer
from visenv.envs.arm.curation import ArmBenchItems, MakePairs, ScriptedGenerator
from visenv.envs.arm.curation.armbench import FORMS, WrittenItem, leak
from visenv.envs.arm.curation.judging import arranged
from visenv.envs.arm.curation.rows import QuestionRow
from visenv.envs.arm.datasets.armbench import RESPONSES, ARMBench
from visenv.errors import ConfigurationError, UnknownNameError

QUESTION = {"question": "What colour is the hat?", "response": "red"}
LONG: dict[str, Any] = {
    "right": "Look at the head of the man: the hat there is red.",
    "wrong": ["Look at the head of the man: the hat there is blue."],
}
DESCRIPTION = {
    "question": "Describe the man in detail.",
    "right": "A tall man in a red hat.",
    "wrong": "A tall man in a blue hat.",
}
TRACK = "fine_grained_perception"


def bench(kit: Any, policy: Any, *tags: str, track: str = TRACK, **options: Any) -> ArmBenchItems:
    return ArmBenchItems(Writer(policy), kit.folder / "out" / f"{track}.jsonl", tags, **options)


def run(kit: Any, reply: Any, tag: str, row: Any = QUESTION, **options: Any) -> Any:
    (outcome,) = kit.run(bench(kit, kit.Replies(reply), tag, **options), [row])
    return outcome


# ---------------------------------------------------------------------------- items


def test_item_with_two_long_responses_has_the_layout_of_the_benchmark(kit: Any) -> None:
    outcome = run(kit, LONG, "2-way-pair_rm", {**QUESTION, "doc_id": "a.pdf", "kind": "colour"})
    (item,) = outcome.rows
    assert item["question"] == QUESTION["question"]
    assert sorted(item["preds"]) == sorted([LONG["right"], *LONG["wrong"]])
    assert item["preds"][item["gt"] - 1] == LONG["right"]
    assert (item["rm_tag"], item["idx"], item["images"]) == ("2-way-pair_rm", "r0", [])
    assert (item["doc_id"], item["kind"], item["answer"]) == ("a.pdf", "colour", "red")
    assert "response" not in item


def test_description_changes_the_question(kit: Any) -> None:
    (item,) = run(kit, DESCRIPTION, "pair_rm").rows
    assert item["question"] == "Describe the man in detail."
    assert item["preds"][item["gt"] - 1] == DESCRIPTION["right"]
    assert item["style"] == "description"


def test_item_with_four_responses_has_the_layout_of_the_benchmark(kit: Any) -> None:
    wrong = [f"Look at the head of the man: the hat there is {c}." for c in ("blue", "teal", "tan")]
    (item,) = run(kit, {**LONG, "wrong": wrong}, "4-way-pair_rm").rows
    assert sorted(item["preds"]) == sorted([LONG["right"], *wrong])
    assert item["preds"][item["gt"] - 1] == LONG["right"]


def test_single_response_is_right_in_half_of_the_items(kit: Any) -> None:
    step = bench(kit, kit.Replies(LONG), "single_rm", track="multimodal_long_document")
    items = [outcome.rows[0] for outcome in kit.run(step, [QUESTION] * 200)]
    for item in items:
        assert item["preds"] == ([LONG["right"]] if item["gt"] == "True" else LONG["wrong"])
    assert 75 < sum(item["gt"] == "True" for item in items) < 125


@pytest.mark.slow
def test_forms_are_drawn_by_their_shares(kit: Any) -> None:
    step = bench(kit, ScriptedGenerator())
    items = [outcome.rows[0] for outcome in kit.run(step, [QUESTION] * 550)]
    counts = Counter(item["rm_tag"] for item in items)
    for tag, form in FORMS[TRACK].items():  # 295, 163 and 92 of 550
        assert abs(counts[tag] - form.share) < 45
        assert all(len(each["preds"]) == form.responses for each in items if each["rm_tag"] == tag)


def test_right_response_stands_anywhere_equally_often(kit: Any) -> None:
    places = Counter(arranged("r", ["a", "b", "c"], seed)[1] for seed in range(2000))
    assert set(places) == {1, 2, 3, 4}
    # 500 ± 4 standard deviations of 19
    assert all(abs(count - 500) < 80 for count in places.values())
    assert arranged("r", ["a", "b", "c"], 5) == arranged("r", ["a", "b", "c"], 5)
    for seed in range(50):
        preds, gt = arranged("r", ["a", "b", "c"], seed)
        assert preds[gt - 1] == "r"
        assert sorted(preds) == ["a", "b", "c", "r"]


def test_forms_have_as_many_responses_as_the_layout_requires() -> None:
    for forms in FORMS.values():
        for tag, form in forms.items():
            assert RESPONSES[tag] == form.responses


# ---------------------------------------------------------------------------- dropped items


@pytest.mark.parametrize("answer", ["Yes", "no.", "TRUE", "A", "not answerable"])
def test_answer_that_could_be_guessed_drops_the_row_before_anything_is_written(
    kit: Any, answer: str
) -> None:
    policy = kit.Replies(LONG)
    (outcome,) = kit.run(bench(kit, policy, "2-way-pair_rm"), [{**QUESTION, "response": answer}])
    assert (outcome.status, outcome.reason) == ("dropped", "answer too simple")
    assert policy.sampling == []


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (
            {**LONG, "wrong": ["Look at the head: the hat there is not red but blue."]},
            "leak: a wrong response contains the right answer",
        ),
        (
            {**LONG, "right": "The correct answer, looking at the hat there, is red."},
            "leak: a response talks of correctness",
        ),
        (
            {**LONG, "wrong": ["Misleading light makes the hat on the man look blue."]},
            "leak: a response talks of correctness",
        ),
    ],
)
def test_leaks_drop_the_row(kit: Any, reply: Any, reason: str) -> None:
    outcome = run(kit, reply, "2-way-pair_rm")
    assert (outcome.status, outcome.reason) == ("dropped", reason)
    assert outcome.detail["right"] == reply["right"]  # the details contain the reply


def test_number_in_other_words_leaks_too() -> None:
    question = QuestionRow("How many?", (), "3")
    assert leak(
        WrittenItem("How many?", "There are three.", ["There are three, no: four."]), question
    )
    assert not leak(WrittenItem("How many?", "There are three.", ["There are 13."]), question)


@pytest.mark.parametrize(
    ("reply", "tag", "reason"),
    [
        ({**LONG, "right": "The hat is crimson."}, "2-way-pair_rm", "answer not stated"),
        ({**LONG, "wrong": ["Blue."]}, "2-way-pair_rm", "unequal length"),
        ({**LONG, "wrong": ["Blue. " * 30]}, "2-way-pair_rm", "unequal length"),
        ({**LONG, "wrong": [LONG["right"]]}, "2-way-pair_rm", "same response"),
        ({**LONG, "wrong": LONG["wrong"] * 3}, "4-way-pair_rm", "same response"),
        (LONG, "4-way-pair_rm", "wrong count"),
        (LONG, "pair_rm", "wrong shape"),
        ({**DESCRIPTION, "question": "What is there?"}, "pair_rm", "no describing question"),
        ({**DESCRIPTION, "wrong": "I'm sorry, I can't."}, "pair_rm", "refusal"),
        ("no", "pair_rm", "no JSON"),
    ],
)
def test_unusable_reply_is_asked_for_again_and_then_fails(
    kit: Any, reply: Any, tag: str, reason: str
) -> None:
    policy = kit.Replies(reply)
    (outcome,) = kit.run(bench(kit, policy, tag), [QUESTION])
    assert (outcome.status, outcome.reason) == ("failed", reason)
    assert len(policy.sampling) == 3


@pytest.mark.attack("data: a hostile row is reported, and the other rows are read")
def test_hostile_rows_are_accounted_for(kit: Any) -> None:
    rows = hostile({**QUESTION, "images": [str(kit.folder / kit.image())], "doc_id": "a.pdf"})
    outcomes = kit.run(bench(kit, ScriptedGenerator()), rows)
    assert {outcome.status for outcome in outcomes} == {"kept", "dropped", "failed"}


def test_armbench_without_a_writer_or_images() -> None:
    writer: Any = None
    with pytest.raises(UnknownNameError, match="Did you mean 'fine_grained_perception'"):
        ArmBenchItems(writer, Path("fine_grained.jsonl"))
    with pytest.raises(UnknownNameError, match="Did you mean '4-way-pair_rm'"):
        ArmBenchItems(writer, Path(f"{TRACK}.jsonl"), tags=("4-way",))
    with pytest.raises(ConfigurationError, match="made by checks"):
        ArmBenchItems(writer, Path("multimodal_instruction_following.jsonl"))
    with pytest.raises(ConfigurationError, match="above 1"):
        ArmBenchItems(writer, Path(f"{TRACK}.jsonl"), length_ratio=1)


# ---------------------------------------------------------------------------- reading


def test_benchmarks_loader_reads_what_was_made(kit: Any) -> None:
    rows = [
        {**QUESTION, "images": [str(kit.folder / kit.image(f"{k}.png", gray=k))]} for k in range(9)
    ]
    outcomes = kit.run(bench(kit, ScriptedGenerator()), rows, f"out/{TRACK}.jsonl")
    source = ARMBench(kit.folder / "out")
    assert len(source) == 9
    assert not source.problems
    for index, outcome in enumerate(outcomes):
        (item,) = outcome.rows
        sample = source[index]
        assert sample.id == f"armbench-{TRACK}-r{index}"
        assert sample.question == item["question"]
        assert sample.ground_truth.candidates == tuple(item["preds"])
        assert sample.answers == (str(item["gt"]),)
        assert sample.images[0].pixels[0, 0, 0] == index


def test_broken_image_fails_the_row(kit: Any) -> None:
    (kit.folder / "b.png").write_bytes(b"not a picture")
    row = {**QUESTION, "images": [str(kit.folder / "b.png")]}
    outcome = run(kit, LONG, "2-way-pair_rm", row)
    assert (outcome.status, outcome.reason) == ("failed", "cannot be read")


# ---------------------------------------------------------------------------- pairs as items

PAIR = {"question": "Which?", "chosen": "red", "rejected": "blue", "flaw": "attribute"}


def test_pairs_become_items_in_one_order_or_in_both(kit: Any) -> None:
    rows = [{**PAIR, "images": [str(kit.folder / kit.image())]}] * 60
    folder = kit.folder / "out"
    items = [each.rows[0] for each in kit.run(MakePairs(folder), rows, f"out/{TRACK}.jsonl")]
    assert 15 < sum(item["gt"] == 1 for item in items) < 45
    for item in items:
        assert item["preds"][item["gt"] - 1] == "red"
        assert sorted(item["preds"]) == ["blue", "red"]
        assert (item["rm_tag"], item["flaw"]) == ("pair_rm", "attribute")
        assert "chosen" not in item
    source = ARMBench(folder)
    assert len(source) == 60
    assert source[0].ground_truth.candidates == tuple(items[0]["preds"])
    both = kit.run(MakePairs(folder, both_orders=True), rows[:2], "out/both.jsonl")
    assert [(row["id"], row["preds"], row["gt"]) for row in both[1].rows] == [
        ("r1/1", ["red", "blue"], 1),
        ("r1/2", ["blue", "red"], 2),
    ]


@pytest.mark.attack("data: a hostile row is reported, and the other rows are read")
def test_hostile_pairs_are_accounted_for(kit: Any) -> None:
    rows = hostile({**PAIR, "images": [str(kit.folder / kit.image())]})
    outcomes = kit.run(MakePairs(kit.folder / "out"), rows)
    assert {outcome.status for outcome in outcomes} == {"kept", "failed"}
