"""What the report gathers, without a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from visenv.episodes import write_episodes
from visenv.errors import RunError
from visenv.records import UnknownRecord
from visenv.types import Episode, QuestionTruth, ToolCalled
from visenv.viewer import write_report
from visenv.viewer.episode import marks
from visenv.viewer.gather import MOST_EPISODES
from visenv.viewer.report import DEEPEST, LONGEST_TEXT

MakeEpisode = Callable[..., Episode]


def data_of(page: Path) -> dict[str, Any]:
    """What the page's data element holds, which ends for HTML at the first ``</script``."""
    text = page.read_text(encoding="utf-8")
    _, _, rest = text.partition('<script id="data" type="application/json">')
    data: dict[str, Any] = json.loads(re.split("</script", rest, flags=re.IGNORECASE)[0])
    return data


def test_holds_every_phase_result_and_episode_of_a_run(run_folder: Path) -> None:
    data = data_of(write_report(run_folder))

    assert data["name"] == "zoom_tiny"
    assert [row["phase"] for row in data["metrics"]] == ["warm-up"] * 4 + ["rl"] * 4
    assert data["metrics"][7] == {"phase": "rl", "step": 4, "reward": 2, "loss": -0.01, "kl": 0.004}
    assert [row[""] for row in data["results"]] == ["before SFT", "after GRPO"]
    assert data["seconds"] == {"warm-up": 12.5, "rl": 61.0}
    files = [episode["file"] for episode in data["episodes"]]
    assert {name: files.count(name) for name in files} == {
        "rl/step_000002": 8,
        "rl/step_000004": 8,
        "warm-up/step_000004": 3,
        "evaluation/after-GRPO": 5,
        "evaluation/before-SFT": 5,
    }
    assert data["episodes_in_all"] == 29
    assert data["problems"] == []


def test_phases_come_in_the_order_they_ended_whatever_the_age_of_the_files(tmp_path: Path) -> None:
    for phase in ("b-first", "a-second", "0-unfinished"):
        (tmp_path / phase).mkdir()
        (tmp_path / phase / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n')
    (tmp_path / "results.json").write_text('{"seconds": {"b-first": 1, "a-second": 2}}')

    phases = [row["phase"] for row in data_of(write_report(tmp_path))["metrics"]]

    assert phases == ["b-first", "a-second", "0-unfinished"]


def test_images_are_named_as_the_policy_knows_them(
    tmp_path: Path, make_episode: MakeEpisode
) -> None:
    write_episodes(tmp_path / "episodes.jsonl", [make_episode()])

    (episode,) = data_of(write_report(tmp_path))["episodes"]

    shown = [part for turn in episode["turns"] for part in turn["messages"][0]["parts"]]
    pictures = [part for part in shown if "image" in part]
    assert [part["name"] for part in pictures] == ["input_image", "tool_result_1"]
    assert [(part["width"], part["height"]) for part in pictures] == [(100, 60), (40, 20)]
    assert all((tmp_path / part["image"]).is_file() for part in pictures)


def test_boxes_of_the_truth_are_scaled_to_the_image_as_shown(make_episode: MakeEpisode) -> None:
    truth = QuestionTruth(target_box=(120, 40, 240, 200), detail_box=(3, 3, 3, 9))

    drawn = marks(make_episode(ground_truth=truth))

    # The zoom cut 40 x 20 shown pixels, which are 160 x 80 native ones: a quarter, both ways.
    # 120 / 4 = 30, 40 / 4 = 10, 240 / 4 = 60, 200 / 4 = 50; a box without an inside is left out.
    assert [(mark.what, mark.label, list(mark.box or ())) for mark in drawn] == [
        ("zoom", "zoom", [10, 20, 50, 40]),
        ("truth", "target box", [30, 10, 60, 50]),
    ]
    assert drawn[0].point == [30, 30]


def test_without_a_zoom_nothing_tells_the_scale_and_nothing_is_drawn(
    make_episode: MakeEpisode,
) -> None:
    assert (
        marks(make_episode(zoomed=False, ground_truth=QuestionTruth(target_box=(1, 2, 3, 4)))) == []
    )


def test_of_too_many_episodes_an_even_selection_is_held(
    tmp_path: Path, make_episode: MakeEpisode
) -> None:
    for number in range(2):
        episodes = [make_episode(sample_id=f"{number}-{index}") for index in range(2500)]
        write_episodes(tmp_path / "episodes" / f"step_{number}.jsonl", episodes)

    data = data_of(write_report(tmp_path))

    assert data["episodes_in_all"] == 5000
    assert len(data["episodes"]) == MOST_EPISODES == 600
    # 5000 / 600 = 8.33: the numbers 0, 8, 16, 25 of all; half of them from each file.
    assert [each["id"] for each in data["episodes"][:4]] == ["0-0", "0-8", "0-16", "0-25"]
    assert sum(each["id"].startswith("0-") for each in data["episodes"]) == 300


def test_what_is_not_finite_or_has_no_end_is_held_in_bounds(
    tmp_path: Path, make_episode: MakeEpisode
) -> None:
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    episode = make_episode(
        "x" * 1_000_000, reward=float("nan"), ground_truth=UnknownRecord("Deep", {"deep": deep})
    )
    write_episodes(tmp_path / "episodes.jsonl", [episode])
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": NaN, "kl": Infinity}\n')

    page = write_report(tmp_path)

    data = data_of(page)
    (shown,) = data["episodes"]
    assert shown["reward"] is None
    assert data["metrics"] == [{"phase": tmp_path.name, "step": 1, "loss": None, "kl": None}]
    text = shown["turns"][1]["text"]
    assert text == "x" * LONGEST_TEXT + f"… [{1_000_000 - LONGEST_TEXT} more characters]"
    assert json.dumps(shown["truth"]["deep"]).count("[") < DEEPEST
    assert page.stat().st_size < 200_000


def test_a_folder_that_is_not_there_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"There is no run folder .*gone.*runs/<name>"):
        write_report(tmp_path / "gone")


def test_an_empty_folder_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"holds no metrics\.jsonl, results\.json or episodes"):
        write_report(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_shown(
    tmp_path: Path, make_episode: MakeEpisode
) -> None:
    write_episodes(tmp_path / "episodes" / "good.jsonl", [make_episode()])
    (tmp_path / "episodes" / "bad.jsonl").write_text("no episode\n")
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 0.5}\n[1]\n{"step": 3}\n')
    (tmp_path / "results.json").write_text("{")

    data = data_of(write_report(tmp_path))

    assert [each["id"] for each in data["episodes"]] == ["sample"]
    assert [row["step"] for row in data["metrics"]] == [1]
    named = [
        re.search(r"results\.json|metrics\.jsonl, line 2|bad\.jsonl, line 1", each)
        for each in data["problems"]
    ]
    assert [each.group() if each else None for each in named] == [
        "results.json",
        "bad.jsonl, line 1",
        "metrics.jsonl, line 2",
    ]


def test_half_a_line_of_a_run_that_is_going_on_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 0.5}\n{"step": 2, "lo')

    data = data_of(write_report(tmp_path))

    assert [row["step"] for row in data["metrics"]] == [1]
    assert data["problems"] == []


def test_boxes_lie_on_the_image_they_were_cut_from(make_episode: MakeEpisode) -> None:
    episode = make_episode(ground_truth=QuestionTruth(target_box=(0, 0, 100, 100)))
    first, *_ = [event for event in episode.events if isinstance(event, ToolCalled)]
    straight = first._replace(
        detail={"image": "a", "origin": "a", "shown_box": [0, 0, 10, 10], "box": [0, 0, 40, 40]}
    )
    chained = first._replace(
        detail={"image": "b", "origin": "a", "shown_box": [1, 1, 2, 2], "box": [4, 4, 8, 8]}
    )
    turn = replace(episode.turns[0], events=(straight, chained))

    drawn = marks(replace(episode, turns=(turn, *episode.turns[1:])))

    # The straight cut tells the scale of a: 10 shown pixels are 40 native ones.
    assert [(mark.image, mark.label, list(mark.box or ())) for mark in drawn] == [
        ("a", "zoom 1", [0, 0, 10, 10]),
        ("b", "zoom 2", [1, 1, 2, 2]),
        ("a", "target box", [0, 0, 25, 25]),
    ]
