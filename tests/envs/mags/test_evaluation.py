from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from rich.table import Table

from visenv.background import run_here
from visenv.envs.mags.evaluation import (
    AnswerScorer,
    PaperTable,
    by_cell,
    read_grade,
    read_short,
    score_all,
    tables,
)
from visenv.episodes import write_episodes
from visenv.errors import ConfigurationError, ServiceError
from visenv.policies.baselines import ZoomRefinePolicy
from visenv.policies.scripted import ScriptedPolicy
from visenv.registration import load
from visenv.rollout.episode import EpisodeSpec, play
from visenv.scorers import Generate, ReplyError, Scorer
from visenv.types import Episode, Image, QuestionTruth, Sample


def graded(request: Generate) -> dict[str, Any]:
    """Grade by the answer in the prompt; extract the last word of a response."""
    prompt = request.messages[-1].plain()
    if "Response:" in prompt:
        response = json.loads(prompt.split("Response: ")[1].split("\n")[0])
        return {"text": "REFUSAL." if "cannot" in response else response.split()[-1]}
    answer = json.loads(prompt.split("\nAnswer: ")[1].split("\n")[0])
    return {"text": {"4": "1.0", "almost": "0.75", "odd": "0.7/1"}.get(answer, "0")}


GRADER = Scorer("rules", function=f"{__name__}:graded")


def sample(number: int, difficulty: str, dataset: str) -> Sample:
    pixels = np.full((100, 200, 3), number, np.uint8)
    truth = QuestionTruth(labels={"difficulty": difficulty, "dataset": dataset})
    return Sample(
        f"s{number}", "How many?", (Image.from_pixels(pixels),), ("4",), "counting", truth
    )


def episode(policy: Any, *samples: Sample) -> Episode:
    env = gym.make("visenv/MagsZoom-v0", data=[*samples], magnifier="none")
    return run_here(play(env, policy, EpisodeSpec(0)))


def answered(answer: str, difficulty: str = "easy", dataset: str = "tallyqa") -> Episode:
    turns = ["<think>a</think>", f"<rethink>b</rethink><answer>{answer}</answer>"]
    return episode(ScriptedPolicy(turns), sample(1, difficulty, dataset))


@pytest.mark.parametrize(("text", "grade"), [("1.0", 1), ("1", 1), ("0.25", 0.25), (" 0.50 ", 0.5)])
def test_grade_is_a_number_of_the_rubric(text: str, grade: float) -> None:
    assert read_grade(text) == grade


@pytest.mark.parametrize("text", ["0.7/1", "<html>", "", "0.3", "Score: 1.0", "nan"])
def test_grade_outside_the_scale_is_requested_again(text: str) -> None:
    with pytest.raises(ReplyError):
        read_grade(text)


def test_extracted_answer_is_short() -> None:
    assert read_short(" four. ") == "four"
    for text in ("", "x" * 201):
        with pytest.raises(ReplyError):
            read_short(text)


def test_answers_are_judged_and_searched_for_the_truth() -> None:
    scores = AnswerScorer(GRADER)
    assert run_here(scores.score(answered("4")))[1:] == (1.0, 1.0)
    assert run_here(scores.score(answered("almost")))[1:] == (0.75, 0.0)
    assert run_here(scores.score(answered("14")))[1:] == (0.0, 0.0)
    with pytest.raises(ServiceError, match="no usable reply in 3 tries"):
        run_here(scores.score(answered("odd")))


def test_extractor_reduces_responses_and_a_refusal_scores_0() -> None:
    scores = AnswerScorer(GRADER, GRADER)
    assert run_here(scores.score(answered("I count to 4"))) == ("4", 1.0, 1.0)
    # The extractor above writes "REFUSAL."; a refusal may be in any case.
    assert run_here(scores.score(answered("I cannot count 4"))) == ("REFUSAL", 0.0, 0.0)


def test_cells_are_percentages_by_difficulty_and_data_set() -> None:
    played = [answered("4"), answered("5"), answered("4", "hard", "gqa")]
    cells = by_cell(run_here(score_all(AnswerScorer(GRADER), played)).scores)
    assert cells == {("easy", "tallyqa"): (50.0, 50.0), ("hard", "gqa"): (100.0, 100.0)}


def test_judgment_that_fails_leaves_the_others() -> None:
    aborted = episode(ScriptedPolicy([]), sample(1, "easy", "tallyqa"))
    played = [answered("4"), answered("odd"), answered("5"), aborted]
    judged = run_here(score_all(AnswerScorer(GRADER), played))
    assert (len(judged.scores), judged.judged, judged.failed, judged.aborted) == (4, 2, 1, 1)
    # One of the two judged answers is right; the two other episodes count as 0.
    assert by_cell(judged.scores)["easy", "tallyqa"] == (25.0, 25.0)


def printed(table: Table) -> list[list[str]]:
    """Return the cells of a table, its header first."""
    columns = [[str(column.header), *map(str, column.cells)] for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def test_table_has_the_order_of_the_paper_and_a_row_of_gains() -> None:
    results = {
        "Direct Query": {("easy", "gqa"): (62.25, 48.0), ("easy", "vsr"): (54.34, 53.13)},
        "CoT": {("easy", "other"): (1.0, 2.0)},
        "Ours": {
            ("hard", "vsr"): (55.98, 50.0),
            ("easy", "vsr"): (73.09, 70.14),
            ("easy", "tallyqa"): (51.27, 51.12),
            ("easy", "gqa"): (60.0, 50.4),
        },
    }
    easy, hard = (printed(table) for table in tables(results))
    heads = [head.partition(" ")[0] for head in easy[0][1::2]]
    assert heads == ["vsr", "tallyqa", "gqa", "other"]
    assert [row[0] for row in easy[1:]] == ["Direct Query", "CoT", "Ours", "Ours - Direct Query"]
    assert easy[-1][1:] == ["+18.75", "+17.01", "-", "-", "-2.25", "+2.40", "-", "-"]
    assert hard[-1][1:] == ["-", "-"]


def test_gains_are_shown_only_with_the_baseline() -> None:
    (table,) = tables({"A": {("easy", "vsr"): (1.0, 2.0)}, "B": {("easy", "vsr"): (3.0, 4.0)}})
    assert [row[0] for row in printed(table)] == ["Method", "A", "B"]


def test_methods_with_equal_names_are_refused() -> None:
    judge = f"rules:{__name__}:graded"
    with pytest.raises(ConfigurationError, match="Two methods have the name 'Ours'"):
        PaperTable(judge, ("Ours=a.jsonl", "Ours=b.jsonl")).run()
    with pytest.raises(ConfigurationError, match=r"got \['Direct'\]"):
        PaperTable(judge, ("Ours=a.jsonl",), ("Direct",)).run()


def test_table_has_a_section_for_each_difficulty(tmp_path: Path, capsys: Any) -> None:
    write_episodes(tmp_path / "a.jsonl", [answered("4"), answered("4", "hard", "gqa")])
    write_episodes(tmp_path / "b.jsonl", [answered("so 5")])
    methods = (f"Ours={tmp_path / 'a.jsonl'}", f"Direct={tmp_path / 'b.jsonl'}")
    PaperTable(f"rules:{__name__}:graded", methods, ("Direct",)).run()
    said = capsys.readouterr().out
    assert said.index("Zoom-Easy") < said.index("Zoom-Hard")
    assert "tallyqa GPT" in said
    assert "Ours: 2 judged, 0 failed, 0 aborted" in said
    assert "100.00" in said
    assert "-" in said.split("Zoom-Hard")[1].split("Direct")[1]
    with pytest.raises(ConfigurationError, match="name=file"):
        PaperTable(f"rules:{__name__}:graded", ("Ours",)).run()


# ---------------------------------------------------------------- the baselines


def test_zoom_refine_enlarges_its_box_by_a_tenth() -> None:
    inner = ScriptedPolicy(["Four, I think. [20, 10, 60, 50]", "<answer>4</answer>"])
    played = episode(ZoomRefinePolicy(inner, prompts="mags"), sample(1, "easy", "tallyqa"))
    assert played.turns[0].text == "<think>Four, I think.<zoom>[[18, 8, 62, 52]]</zoom></think>"
    assert played.turns[1].text == "<answer>4</answer>"
    assert len(played.turns[1].messages[0].images) == 1
    assert played.metrics["accuracy"] == 1


@pytest.mark.parametrize("said", ["no box", "[1, 2, 3]", "[1, 2, 3, 4, 5]", "[" * 10_000])
def test_zoom_refine_without_a_box_answers_again(said: str) -> None:
    inner = ScriptedPolicy([said, "<answer>4</answer>"])
    played = episode(ZoomRefinePolicy(inner, prompts="mags"), sample(1, "easy", "tallyqa"))
    assert "<zoom>" not in played.turns[0].text
    assert played.metrics["accuracy"] == 1


@pytest.mark.parametrize("prompts", ["mags", "mags-one-shot", "mags-grit"])
@pytest.mark.parametrize("policy", ["direct", "cot"])
def test_baselines_answer_in_one_turn_without_the_tool(policy: str, prompts: str) -> None:
    from visenv.evaluation.controls import controlled

    seen = []

    def say(messages: Any, request: Any) -> str:
        seen.append("".join(message.plain() for message in messages))
        return (
            "so</rethink><answer>4</answer>"
            if "<rethink>" in request.prefill
            else "<answer>4</answer>"
        )

    data = [sample(1, "easy", "tallyqa")]
    env = controlled(
        lambda: gym.make("visenv/MagsZoom-v0", data=data, magnifier="none"), "no_tool"
    )()
    baseline = load("policy", policy)(ScriptedPolicy(say), prompts=prompts)
    played = run_here(play(env, baseline, EpisodeSpec(0)))
    assert len(played.turns) == 1
    assert played.metrics["accuracy"] == 1
    assert "How many?" in seen[0]
    assert "zoom" not in seen[0]
