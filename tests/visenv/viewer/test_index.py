"""Tests the index of episodes, the facts of a run and the tokens of a turn, by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from visenv.types import Episode, Failure, Malformed, Segment, ToolCalled, TurnSpan
from visenv.viewer.episode import MOST_POINTS, episode_record, turn_tokens
from visenv.viewer.facts import run_facts
from visenv.viewer.index import EpisodeIndex, cell, index_row, outcome, searched_text

MakeEpisode = Callable[..., Episode]


def indexed(*episodes: Episode) -> dict[str, Any]:
    index = EpisodeIndex()
    for line, episode in enumerate(episodes):
        index.add(index_row(episode), "episodes", line)
    return index.to_json()


def text(told: dict[str, Any], name: str) -> list[Any]:
    coded = told["texts"][name]
    return [coded["values"][row] for row in coded["rows"]]


def segment(*turns: list[float]) -> Segment:
    """Return a segment with a token of the environment before each turn, and these logprobs."""
    logprobs: list[float] = []
    mask: list[bool] = []
    spans = []
    for number, turn in enumerate(turns):
        spans.append(TurnSpan(number, len(mask) + 1, len(mask) + 1 + len(turn), "stop"))
        mask += [False, *[True] * len(turn)]
        logprobs += [0.0, *turn]
    return Segment(
        np.arange(len(mask), dtype=np.int32),
        np.array(mask),
        np.array(logprobs, np.float32),
        np.zeros(len(mask), np.int32),
        tuple(spans),
        (),
        (10_000,),
        1.0,
        "p",
    )


def test_index_has_a_value_of_each_term_for_each_episode(make_episode: MakeEpisode) -> None:
    told = indexed(
        make_episode(terms={"vqa": 1.0}),
        make_episode(terms={"format": 0.5}),
        make_episode(terms={"vqa": None, "format": float("nan")}),
    )
    assert told["count"] == 3
    assert told["terms"] == {"vqa": [1.0, None, None], "format": [None, 0.5, None]}
    assert told["metrics"] == {"accuracy": [1.0, 1.0, 1.0]}


def test_index_numbers_of_an_episode(make_episode: MakeEpisode) -> None:
    episode = make_episode(group=3, member=1, segments=(segment([-1.0, -2.0], [-0.5]),))
    first, last = episode.turns
    first = replace(first, sampling_seconds=0.5, env_seconds=0.25, advantage=1.0)
    timed = replace(episode, turns=(first, replace(last, sampling_seconds=1.0, advantage=-0.5)))
    numbers = indexed(timed, make_episode())["numbers"]
    # 0.5 + 0.25 + 1.0 s; the mean of 1 and -0.5; 2 + 1 sampled tokens.
    assert numbers["seconds"] == [1.75, None]
    assert numbers["advantage"] == [0.25, None]
    assert numbers["tokens"] == [3, None]
    assert (numbers["group"], numbers["member"]) == ([3, 0], [1, 0])


def test_index_of_an_aborted_episode_has_nothing_that_a_mean_would_count(
    make_episode: MakeEpisode,
) -> None:
    failure = Failure("service", "judge", "no reply")
    aborted = make_episode(reward=0.0, status="aborted", failure=failure, terms={"vqa": 0.0})
    told = indexed(aborted, make_episode(reward=0.5))
    assert told["numbers"]["reward"] == [None, 0.5]
    assert told["terms"] == {"vqa": [None, 0.5]}
    assert told["metrics"] == {"accuracy": [None, 1.0]}


def test_index_names_events_and_tools_with_failed_calls(make_episode: MakeEpisode) -> None:
    episode = make_episode()
    calls = (ToolCalled(0, "zoom", {}, True), ToolCalled(0, "search", {}, False, "down"))
    turn = replace(episode.turns[0], events=(*calls, Malformed(0, "no_action", "?")))
    told = indexed(replace(episode, turns=(turn, *episode.turns[1:])))
    assert text(told, "events") == [("Answered", "Malformed", "ToolCalled")]
    assert text(told, "tools") == [("search", "search (failed)", "zoom")]


def test_index_has_texts_in_alphabetical_order(make_episode: MakeEpisode) -> None:
    told = indexed(*(make_episode(kind=kind) for kind in ("b", "C", "a", "b")))
    assert told["texts"]["kind"] == {"values": ["a", "b", "C"], "rows": [1, 2, 0, 1]}


def test_index_pairs_the_same_sample_of_two_policies(make_episode: MakeEpisode) -> None:
    pairs = text(
        indexed(
            make_episode("<answer>one</answer>", reward=0.0),
            make_episode("<answer>two</answer>", reward=1.0),
            make_episode(member=1),
            make_episode(seed=8),
        ),
        "pair",
    )
    assert pairs[0] == pairs[1]
    assert len(set(pairs)) == 3


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"accuracy": 0.5}, "right"),
        ({"accuracy": 0.4}, "wrong"),
        ({"accuracy": None}, "finished"),
        ({"accuracy": None, "metrics": {"success": 1.0}}, "right"),
        ({"accuracy": None, "metrics": {"success": 0.0}}, "wrong"),
        ({"accuracy": float("nan")}, "finished"),
        ({"status": "truncated", "reason": "turns"}, "truncated"),
        (
            {"reward": 0.0, "status": "aborted", "failure": Failure("service", "judge", "?")},
            "aborted",
        ),
    ],
)
def test_outcome_of_each_end(
    make_episode: MakeEpisode, fields: dict[str, Any], expected: str
) -> None:
    assert outcome(make_episode(**fields)) == expected


def test_cell_keeps_the_judgment_at_the_end_of_a_long_answer() -> None:
    answer = "Scores: " + "a reason, " * 60 + "\nOverall Judgment: Answer 2 is better"
    assert len(cell(answer)) <= 203
    assert cell(answer).startswith("Scores: a reason")
    assert cell(answer).endswith("\nOverall Judgment: Answer 2 is better")
    assert cell(" short\n") == "short"


def test_searched_text_holds_question_answers_and_turns(make_episode: MakeEpisode) -> None:
    found = searched_text(make_episode("<answer>SEVEN signs</answer>"))
    for wanted in ("what does it say?", "seven signs", "look", "sample"):
        assert wanted in found


def test_tokens_of_each_turn_by_hand(make_episode: MakeEpisode) -> None:
    facts = turn_tokens(make_episode(segments=(segment([-1.0, -2.0, -3.0], [-0.5]),)))
    assert facts == {
        0: {"tokens": 3, "mean": -2.0, "lowest": -3.0, "logprobs": [-1.0, -2.0, -3.0]},
        1: {"tokens": 1, "mean": -0.5, "lowest": -0.5, "logprobs": [-0.5]},
    }


def test_tokens_of_a_long_turn_show_the_lowest_of_each_run(make_episode: MakeEpisode) -> None:
    logprobs = [0.0, -4.0] * MOST_POINTS
    facts = turn_tokens(make_episode(segments=(segment(logprobs, []),)))
    assert facts[0]["logprobs"] == [-4.0] * MOST_POINTS
    assert facts[1] == {"tokens": 0}


def test_tokens_without_logprobs_are_counted_alone(make_episode: MakeEpisode) -> None:
    facts = turn_tokens(make_episode(segments=(segment([float("nan")], [-1.0]),)))
    assert facts[0] == {"tokens": 1}


def test_record_of_a_turn_has_its_time_and_advantage(make_episode: MakeEpisode) -> None:
    episode = make_episode()
    turn = replace(episode.turns[0], sampling_seconds=2.0, env_seconds=None, advantage=-1.5)
    record = episode_record(replace(episode, turns=(turn, *episode.turns[1:])), "images")
    assert record["turns"][0]["seconds"] == [2.0, None]
    assert record["turns"][0]["advantage"] == -1.5
    assert record["turns"][1]["advantage"] is None


def test_facts_of_a_training_run(tmp_path: Path) -> None:
    recipe = {
        "seed": 3,
        "environments": {"scenes": {"id": "visenv/ZoomVQA-v0", "options": {"preset": "tiny"}}},
        "model": {"name": "tiny", "options": {"width": 8}},
        "phases": {"warm-up": {"algorithm": "sft"}, "rl": {"algorithm": "dapo"}},
    }
    (tmp_path / "recipe.json").write_text(json.dumps(recipe))
    facts = run_facts(tmp_path, [])
    assert facts["chief"] == {
        "model": "tiny",
        "seed": "3",
        "env": "visenv/ZoomVQA-v0",
        "phases": "warm-up (sft), rl (dapo)",
    }
    assert facts["settings"]["environments.scenes.options.preset"] == "tiny"
    assert facts["settings"]["model.options.width"] == "8"


def test_facts_of_a_rollout(tmp_path: Path) -> None:
    session = {"started": "2026-11-23T06:00:00+00:00", "commit": "a" * 40, "modified": True}
    run = {
        "format": 1,
        "settings": {"command": "rollout", "env": "e", "data": None},
        "sessions": [session | {"versions": {"python": "3.11"}}],
    }
    (tmp_path / "run.json").write_text(json.dumps(run))
    assert run_facts(tmp_path, [])["chief"] == {
        "command": "rollout",
        "env": "e",
        "started": "2026-11-23T06:00:00+00:00",
        "commit": "aaaaaaaaaaaa with changes",
        "versions": "python 3.11",
    }


@pytest.mark.parametrize(
    ("settings", "facts"),
    [
        (
            {"command": "rollout", "groups": 12, "num_generations": 4},
            {"command": "rollout", "groups": "12", "num_generations": "4"},
        ),
        # An earlier version saved the number of groups as that of episodes.
        (
            {"command": "rollout", "episodes": 12, "group_size": 4},
            {"command": "rollout", "groups": "12", "num_generations": "4"},
        ),
        (
            {"command": "eval", "episodes": 12, "repeats": 4},
            {"command": "eval", "samples": "12", "repeats": "4"},
        ),
    ],
)
def test_facts_count_groups_or_samples(
    settings: dict[str, Any], facts: dict[str, str], tmp_path: Path
) -> None:
    run = {"format": 1, "settings": settings, "sessions": []}
    (tmp_path / "run.json").write_text(json.dumps(run))
    assert run_facts(tmp_path, [])["chief"] == facts


@pytest.mark.parametrize("content", ["{", "[]", "3", '{"sessions": 4, "settings": []}', "[" * 9999])
def test_facts_of_a_broken_file_are_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content)
    problems: list[str] = []
    assert run_facts(tmp_path, problems) == {"chief": {}, "settings": {}}
    assert all("run.json" in problem for problem in problems)
