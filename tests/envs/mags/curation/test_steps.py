from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from visenv.cli import main
from visenv.curation.lines import JsonLines
from visenv.envs.mags.curation import DropUnclear, MagsTrain, RateZoom, Stratify
from visenv.envs.mags.curation.rating import difficulty_of, read_zoom_score
from visenv.errors import ConfigurationError
from visenv.scorers import Generate, ReplyError, Scorer


def rated(request: Generate) -> dict[str, Any]:
    """Reply as a model, depending on a word in the question."""
    prompt = "".join(part for part in request.messages[-1].parts if isinstance(part, str))
    assert request.messages[-1].images
    if "zoom_score" not in prompt:
        return {"text": "no" if "unclear" in prompt else "Yes."}
    replies = {
        "many": '{"reasoning": "crowded", "zoom_score": 9}',
        "eleven": '{"reasoning": "x", "zoom_score": 11}',
        "html": "<html>error</html>",
        "silence": "",
        "ratio": '{"reasoning": "x", "zoom_score": "0.7/1"}',
    }
    found = next((reply for word, reply in replies.items() if word in prompt.split()), None)
    return {"text": found if found is not None else '{"reasoning": "large", "zoom_score": 2}'}


def scorer() -> Scorer:
    return Scorer("rules", function=f"{__name__}:rated")


def rows(path: Path, *rows: dict[str, Any]) -> JsonLines:
    images = path.parent / "images"
    images.mkdir(exist_ok=True)
    for row in rows:
        for name in row.get("images", []):
            pixels = np.zeros((8, 8, 3), np.uint8)
            PIL.Image.fromarray(pixels).save(path.parent / name)
    path.write_text("\n".join(map(json.dumps, rows)))
    return JsonLines(path)


def question(number: int, text: str = "What is it?", **fields: Any) -> dict[str, Any]:
    row = {"id": f"r{number}", "question": text, "images": [f"images/{number}.png"]}
    return {**row, "response": "cat", "kind": "query", **fields}


def written(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_zoom_scores_are_added_and_bad_replies_fail(tmp_path: Path) -> None:
    texts = ["What is it?", "How many are there?", "eleven", "html", "silence", "ratio"]
    asked = rows(tmp_path / "in.jsonl", *(question(n, text) for n, text in enumerate(texts)))
    account = RateZoom(scorer(), "gqa").run(asked, tmp_path / "out.jsonl")
    assert (account.kept, account.failed) == (2, {"a service failed": 4})
    found = [
        (row["zoom_score"], row["difficulty"], row["dataset"])
        for row in written(tmp_path / "out.jsonl")
    ]
    assert found == [(2, "easy", "gqa"), (9, "hard", "gqa")]


@pytest.mark.parametrize(
    "text",
    [
        '{"reasoning": "a", "zoom_score": 7}',
        '```json\n{"reasoning": "a", "zoom_score": 7}\n```',
        '{"reasoning": "a", "zoom_score": 7, "more": 1}',
        '<think>crowded</think>\n```\n{"zoom_score": 7, "reasoning": "a"}\n```\n',
    ],
)
def test_zoom_score_may_stand_in_a_fence(text: str) -> None:
    assert read_zoom_score(text) == 7


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        '```json\n{"reasoning": "a", "zoom_score": 7}',
        'The score: {"reasoning": "a", "zoom_score": 7}',
        '{"reasoning": "a", "zoom_score": 7, "zoom_score": 8}',
        "[7]",
        '{"zoom_score": 7}',
        '{"reasoning": "a", "zoom_score": 0}',
        '{"reasoning": "a", "zoom_score": 7.5}',
        '{"reasoning": "a", "zoom_score": true}',
        "[" * 100_000,
    ],
)
def test_zoom_score_is_read_strictly(text: str) -> None:
    with pytest.raises(ReplyError):
        read_zoom_score(text)


def test_scores_have_three_difficulties() -> None:
    levels = [difficulty_of(score) for score in range(1, 11)]
    assert levels == ["easy"] * 3 + ["medium"] * 4 + ["hard"] * 3


def test_unclear_questions_are_dropped(tmp_path: Path) -> None:
    asked = rows(tmp_path / "in.jsonl", question(0), question(1, "an unclear one"))
    account = DropUnclear(scorer()).run(asked, tmp_path / "out.jsonl")
    assert (account.kept, account.dropped) == (1, {"unclear": 1})


def test_sets_are_filled_in_order(tmp_path: Path) -> None:
    hard = {"dataset": "vsr", "difficulty": "hard"}
    asked = rows(
        tmp_path / "in.jsonl",
        *(question(n, **hard) for n in range(4)),
        question(4, dataset="vsr", difficulty="easy"),
    )
    step = Stratify({("vsr", "hard"): 3})
    account = step.run(asked, tmp_path / "out.jsonl")
    assert [row["id"] for row in written(tmp_path / "out.jsonl")] == ["r0", "r1", "r2"]
    assert account.dropped == {"the set is full": 1, "no set of this data set and difficulty": 1}
    assert not step.notes()
    assert step.run(asked, tmp_path / "out.jsonl") == account  # again, from the journal
    assert not step.notes()


def test_sets_with_too_few_rows_are_reported(tmp_path: Path) -> None:
    asked = rows(tmp_path / "in.jsonl", question(0, dataset="vsr", difficulty="hard"))
    step = Stratify({("vsr", "hard"): 3, ("gqa", "easy"): 2})
    for _ in range(2):  # the second run takes the outcomes from the journal
        step.run(asked, tmp_path / "out.jsonl")
        assert step.notes() == [
            "vsr hard: only 1 of 3 rows were found",
            "gqa easy: only 0 of 2 rows were found",
        ]


def test_stage_with_too_few_rows_is_reported(tmp_path: Path) -> None:
    pool = rows(tmp_path / "in.jsonl", question(0, dataset="gqa", difficulty="hard"))
    step = MagsTrain("stage2")
    for _ in range(2):
        step.run(pool, tmp_path / "out.jsonl")
        assert step.notes() == [
            "Without --without, training may use images of the evaluation set.",
            "stage2 needs 10 rows of tallyqa, and only 0 were found",
            "stage2 needs 10 rows of gqa, and only 1 were found",
        ]


def test_training_shares_no_image_with_evaluation(tmp_path: Path) -> None:
    evaluation = rows(tmp_path / "evaluation.jsonl", question(0), question(1))
    hard = {"difficulty": "hard"}
    pool = rows(
        tmp_path / "pool.jsonl",
        *(question(n, dataset="tallyqa", **hard) for n in range(14)),
        *(question(n, dataset="gqa", **hard) for n in range(20, 32)),
        question(40, dataset="gqa", difficulty="easy"),
        question(41, dataset="vsr", **hard),
    )
    account = MagsTrain("stage2", (evaluation.path,)).run(pool, tmp_path / "stage2.jsonl")
    kept = written(tmp_path / "stage2.jsonl")
    assert [row["dataset"] for row in kept] == ["tallyqa"] * 10 + ["gqa"] * 10
    assert kept[0]["id"] == "r2"
    assert account.dropped == {
        "its image occurs in evaluation or in another stage": 2,
        "the stage has enough": 4,
        "not of this stage": 2,
    }


def test_stage_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="stage3"):
        MagsTrain("stage3")  # type: ignore[arg-type]


def test_steps_run_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows(tmp_path / "rows.jsonl", *(question(n, "How many are there?") for n in range(12)))
    asked = ["--scorer", f"rules:{__name__}:rated"]
    rating = ["data", "zoom-score", str(tmp_path / "rows.jsonl"), "--dataset", "tallyqa", *asked]
    assert main([*rating, "--out", str(tmp_path / "scored.jsonl")]) == 0
    clear = ["data", "clear", str(tmp_path / "scored.jsonl"), *asked]
    assert main([*clear, "--out", str(tmp_path / "clear.jsonl")]) == 0
    stratify = ["data", "stratify", str(tmp_path / "clear.jsonl")]
    assert main([*stratify, "--out", str(tmp_path / "evaluation.jsonl")]) == 0
    assert "tallyqa hard: only 12 of 139 rows were found" in capsys.readouterr().out
    train = ["data", "mags-train", str(tmp_path / "clear.jsonl"), "--stage", "stage1"]
    assert main([*train, "--out", str(tmp_path / "stage1.jsonl")]) == 0
    said = capsys.readouterr().out
    assert "stage1 needs 10 rows of vsr, and only 0 were found" in said
    assert "of tallyqa" not in said
    assert "training may use images of the evaluation set" in said
    assert len(written(tmp_path / "stage1.jsonl")) == 10
