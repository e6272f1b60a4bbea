"""Tests the evaluation of judges: agreement with exact ground truth, and probes to be rejected."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tiny_models import tiny_model
from tests.visenv.scorers.chat_server import ChatServer, said
from visenv import background
from visenv.cli import main
from visenv.errors import DataError, ServiceError
from visenv.scorers import JsonScore, Judge, Scorer, YesNo
from visenv.scorers.evaluation import (
    AskJudge,
    JudgeItem,
    JudgeReport,
    check_judge,
    items_from_samples,
    read_items,
)
from visenv.types import Image, Sample

SAMPLES = [
    Sample(f"s{number}", f"What is {number} + 1?", answers=(str(number + 1),), kind="sum")
    for number in range(10)
]
ITEMS = items_from_samples(SAMPLES)
PROMPT = "Q: {question}\nReferences: {references}\nA: {answer}\nSame? yes or no"


def yes_no(scorer: Scorer) -> AskJudge:
    """Return the yes-or-no judge of the command line."""
    judge = Judge(scorer, PROMPT, YesNo())

    async def ask(item: JudgeItem) -> float:
        references = " | ".join(item.references)
        return await judge.ask(question=item.question, references=references, answer=item.answer)

    return ask


def _said_in(request: Any) -> tuple[str, str, str]:
    pattern = r"Q: (.*)\nReferences: (.*)\nA: (.*)\nSame\? yes or no"
    found = re.fullmatch(pattern, request.messages[0].parts[0], re.DOTALL)
    assert found is not None
    return found[1], found[2], found[3]


def careful(request: Any) -> dict[str, str]:
    _, references, answer = _said_in(request)
    return {"text": "yes" if answer in references.split(" | ") else "no"}


def gullible(request: Any) -> dict[str, str]:
    """Accept answers that contain a reference or an instruction to the judge."""
    _, references, answer = _said_in(request)
    fooled = references in answer or "highest score" in answer
    return {"text": "Yes." if fooled else "No."}


def rule(name: str) -> Scorer:
    return Scorer("rules", function=f"tests.visenv.scorers.test_evaluation:{name}")


def checked(scorer: Scorer) -> JudgeReport:
    return background.run(check_judge(yes_no(scorer), ITEMS))


def test_items_are_one_right_and_one_wrong_answer_of_each_sample() -> None:
    assert len(ITEMS) == 20
    for right, wrong, sample in zip(ITEMS[::2], ITEMS[1::2], SAMPLES, strict=True):
        assert (right.truth, wrong.truth) == (True, False)
        assert right.question == wrong.question == sample.question
        assert right.answer in sample.answers
        assert wrong.answer not in sample.answers
        assert len(right.options) == len(set(right.options)) == 4
        assert {right.answer, wrong.answer} <= set(right.options)
    assert items_from_samples(SAMPLES) == ITEMS
    assert items_from_samples(SAMPLES, seed=1) != ITEMS


def test_items_take_wrong_answers_of_the_same_kind_and_never_a_right_one() -> None:
    samples = [
        Sample("a", "?", answers=("Red", "crimson"), kind="color"),
        Sample("b", "?", answers=("red ",), kind="color"),
        Sample("c", "?", answers=("blue",), kind="color"),
        Sample("d", "?", answers=("7",), kind="count"),
        Sample("e", "?", kind="count"),
    ]
    by_question: dict[str, set[str]] = {}
    for seed in range(20):
        for item in items_from_samples(samples, seed):
            if not item.truth:
                by_question.setdefault(item.references[0], set()).add(
                    item.answer.strip().casefold()
                )
    assert by_question == {
        "Red": {"blue"},
        "red ": {"blue", "crimson"},
        "blue": {"red", "crimson"},
        "7": {"red", "crimson", "blue"},  # its kind has no other answer
    }


def test_careful_judge_agrees_and_rejects_every_probe() -> None:
    report = checked(rule("careful"))
    # Wilson's interval of 20 out of 20: 1 / (1 + 1.96² / 20) = 0.8389.
    assert report.agreement == pytest.approx((1.0, 0.83887, 1.0), abs=1e-4)
    assert (report.accepted_wrong.value, report.rejected_right.value) == (0.0, 0.0)
    assert {name: share.value for name, share in report.probes.items()} == {
        "empty answer": 1.0,
        "yes": 1.0,
        "repeated question": 1.0,
        "all options": 1.0,
        "instruction to the judge": 1.0,
    }
    assert report.failed == 0


def test_gullible_judge_is_found_out() -> None:
    report = checked(rule("gullible"))
    assert report.probes["all options"].value == 0.0
    assert report.probes["instruction to the judge"].value == 0.0
    assert report.probes["empty answer"].value == 1.0
    assert report.rejected_right.value == 0.0
    # Of the wrong answers only 10 contains its reference (1); the drawing of items is fixed.
    wrong = [item for item in ITEMS if not item.truth and item.references[0] in item.answer]
    assert report.accepted_wrong.value == len(wrong) / 10


def test_shares_of_a_judge_worked_by_hand() -> None:
    scores = {"a": 0.9, "b": 0.4, "c": 0.6, "d": 0.5}
    truths = {"a": True, "b": True, "c": False, "d": False}
    items = [JudgeItem("?", ("ref",), answer, truth) for answer, truth in truths.items()]

    async def ask(item: JudgeItem) -> float:
        if item.answer == "yes":
            raise ServiceError("judge", "down")
        return scores.get(item.answer, 0.0)

    report = asyncio.run(check_judge(ask, items))
    # a is rightly accepted, b wrongly rejected, c and d (at the threshold) wrongly accepted.
    assert report.agreement.value == 0.25
    assert report.accepted_wrong.value == 1.0
    assert report.rejected_right.value == 0.5
    assert report.failed == 1  # one probe, since the four items share a question
    assert math.isnan(report.probes["yes"].value)
    assert "all options" not in report.probes  # the items have no options
    higher = asyncio.run(check_judge(ask, items, threshold=0.55))
    assert (higher.agreement.value, higher.accepted_wrong.value) == (0.5, 0.5)
    assert [name for name, _ in higher.rows()][:3] == [
        "agreement",
        "accepted wrong answers",
        "rejected right answers",
    ]


def test_probe_that_is_the_right_answer_is_left_out() -> None:
    item = JudgeItem("Is it red?", ("Yes",), "yes", True)

    async def ask(item: JudgeItem) -> float:
        return 0.0

    assert "yes" not in asyncio.run(check_judge(ask, [item])).probes


def test_items_without_any_verdict_give_no_share() -> None:
    async def ask(item: JudgeItem) -> float:
        raise ServiceError("judge", "down")

    report = asyncio.run(check_judge(ask, ITEMS))
    assert math.isnan(report.agreement.value)
    assert report.failed == 20 + 10 * 5


# -------------------------------------------------------------------- recorded replies, by backend


def _serve(server: ChatServer) -> None:
    class Sent:
        def __init__(self, body: dict[str, Any]) -> None:
            text = body["messages"][0]["content"][0]["text"]
            self.messages = (type("M", (), {"parts": (text,)})(),)

    server.act = lambda path, body: said(gullible(Sent(body))["text"])


def _openai(server: ChatServer, tmp_path: Path) -> Scorer:
    _serve(server)
    return Scorer("openai", model="m", base_url=server.url)


def _rules(server: ChatServer, tmp_path: Path) -> Scorer:
    return rule("gullible")


def _transformers(server: ChatServer, tmp_path: Path) -> Scorer:
    pytest.importorskip("torch")

    tiny_model(tmp_path / "tiny")
    return Scorer("transformers", model=str(tmp_path / "tiny"), max_batch_size=32)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [_openai, _rules, pytest.param(_transformers, marks=pytest.mark.component("transformers"))],
)
def test_judge_on_each_backend_is_evaluated_again_from_its_recorded_replies(
    make: Callable[[ChatServer, Path], Scorer], server: ChatServer, tmp_path: Path
) -> None:
    inner = make(server, tmp_path)
    file = tmp_path / "replies.jsonl"
    recording = Scorer("recorded", file=str(file), inner=inner.description())

    def first_letter(scorer: Scorer) -> AskJudge:
        # A tiny model writes noise, so this reader accepts any reply.
        judge = Judge(scorer, PROMPT, lambda text: text[:1].lower() == "y", max_tokens=2)

        async def ask(item: JudgeItem) -> float:
            references = " | ".join(item.references)
            return await judge.ask(
                question=item.question, references=references, answer=item.answer
            )

        return ask

    first = background.run(check_judge(first_letter(recording), ITEMS))
    assert first.failed == 0
    inner.close()
    recording.close()
    server.act = lambda path, body: said("no")
    again = background.run(check_judge(first_letter(Scorer.parse(f"recorded:{file}")), ITEMS))
    assert again == first
    if make is not _transformers:
        assert again.probes["all options"].value == 0.0
        assert again.agreement.value == checked(rule("gullible")).agreement.value


# ------------------------------------------------------------------------------------ command line


def score_judge(scorer: Scorer) -> AskJudge:
    judge = Judge(scorer, "{image}{question} {answer}", JsonScore())

    async def ask(item: JudgeItem) -> float:
        return await judge.ask(image=item.images, question=item.question, answer=item.answer)

    return ask


def by_image(request: Any) -> dict[str, str]:
    image, text = request.messages[0].parts
    right = str(int(image.pixels[0, 0, 0])) == text.split()[-1]
    return {"text": json.dumps({"score": float(right)})}


def write_items(folder: Path) -> Path:
    (folder / "seven.png").write_bytes(Image.from_pixels(np.full((2, 2, 3), 7, np.uint8)).png())
    rows = [
        {"question": "How red?", "references": ["7"], "answer": answer, "truth": answer == "7",
         "options": ["7", "8"], "images": ["seven.png"]}
        for answer in ("7", "8", "9")
    ]  # fmt: skip
    path = folder / "items.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_command_prints_the_shares_and_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = "tests.visenv.scorers.test_evaluation"
    items, replies = write_items(tmp_path), tmp_path / "replies.jsonl"
    arguments = ["judge-check", f"{module}:score_judge", "--items", str(items)]
    scorer = f"rules:{module}:by_image"
    assert main([*arguments, "--scorer", scorer, "--record", str(replies)]) == 0
    shown = capsys.readouterr().out
    # Wilson's interval of 3 out of 3: 1 / (1 + 1.96² / 3) = 0.4385.
    assert re.search(r"agreement +1\.000 \[0\.439, 1\.000\]", shown)
    assert len(re.findall(r"rejected probes: .* +1\.000 \[0\.207, 1\.000\]", shown)) == 5
    assert "without a verdict: 0" in shown
    assert main([*arguments, "--scorer", f"recorded:{replies}"]) == 0
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"question": "q", "references": ["r"], "answer": "a"}',
        '{"question": "q", "references": ["r"], "answer": "a", "truth": 1}',
        '{"question": "q", "references": "r", "answer": "a", "truth": true}',
        '{"question": "q", "references": ["r"], "answer": "a", "truth": true, "images": [1]}',
    ],
)
def test_line_that_is_no_item_is_named(line: str, tmp_path: Path) -> None:
    good = '{"question": "q", "references": ["r"], "answer": "a", "truth": true}'
    path = tmp_path / "items.jsonl"
    path.write_text(f"{good}\n{line}\n")
    with pytest.raises(DataError, match=r"items\.jsonl, line 2 is not an item"):
        read_items(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_items(tmp_path / "none.jsonl")
