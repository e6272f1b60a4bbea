"""Tests the data of the report, without a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.listeners import family, listeners, require_listed
from visenv.cli import main
from visenv.episodes import write_episodes
from visenv.errors import RunError
from visenv.records import UnknownRecord
from visenv.types import Episode, Image, Message, QuestionTruth, ToolCalled, Turn
from visenv.viewer import write_report
from visenv.viewer.episode import marks
from visenv.viewer.index import DEEPEST, EPISODES_IN_PART, LONGEST_TEXT, EpisodeIndex

MakeEpisode = Callable[..., Episode]


def data_of(page: Path) -> dict[str, Any]:
    """Return the content of the page's data element; in HTML the first ``</script`` ends it."""
    text = page.read_text(encoding="utf-8")
    _, _, rest = text.partition('<script id="data" type="application/json">')
    data: dict[str, Any] = json.loads(re.split("</script", rest, flags=re.IGNORECASE)[0])
    return data


def parts_of(page: Path, kind: str = "episodes") -> list[list[Any]]:
    """Return the contents of the files beside the page, in order."""
    count = len(list((page.parent / "report").glob(f"{kind}-*.js")))
    token = data_of(page)["parts"]["token"]
    found = []
    for number in range(count):
        text = (page.parent / "report" / f"{kind}-{token}-{number}.js").read_text(encoding="ascii")
        call = re.fullmatch(rf'receive\("{kind}",{number},(".*")\)\n', text)
        assert call
        found.append(json.loads(json.loads(call[1])))
    return found


def records_of(page: Path) -> list[dict[str, Any]]:
    return [record for part in parts_of(page) for record in part]


def column(data: dict[str, Any], name: str) -> list[Any]:
    """Return a text column of the index, with a value for each episode."""
    coded = data["index"]["texts"][name]
    return [coded["values"][row] for row in coded["rows"]]


def test_holds_every_phase_result_and_episode_of_a_run(run_folder: Path) -> None:
    data = data_of(write_report(run_folder))

    (run,) = data["runs"]
    assert run["name"] == "zoom_tiny"
    assert [row["phase"] for row in run["metrics"]] == ["warm-up"] * 4 + ["rl"] * 4
    assert run["metrics"][7] == {"phase": "rl", "step": 4, "reward": 2, "loss": -0.01, "kl": 0.004}
    assert [row[""] for row in run["results"]] == ["before SFT", "after GRPO"]
    assert run["seconds"] == {"warm-up": 12.5, "rl": 61.0}
    assert Counter(column(data, "saved_in")) == {
        "rl/step_000002": 8,
        "rl/step_000004": 8,
        "warm-up/step_000004": 3,
        "evaluation/after-GRPO/scenes": 5,
        "evaluation/before-SFT/scenes": 5,
    }
    assert run["episodes"] == data["index"]["count"] == 29
    assert data["problems"] == []


def test_phases_come_in_the_order_they_ended_whatever_the_age_of_the_files(tmp_path: Path) -> None:
    for phase in ("b-first", "a-second", "0-unfinished"):
        (tmp_path / phase).mkdir()
        (tmp_path / phase / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n')
    (tmp_path / "results.json").write_text('{"seconds": {"b-first": 1, "a-second": 2}}')

    phases = [row["phase"] for row in data_of(write_report(tmp_path))["runs"][0]["metrics"]]

    assert phases == ["b-first", "a-second", "0-unfinished"]


def test_images_have_the_names_that_the_policy_sees(
    tmp_path: Path, make_episode: MakeEpisode
) -> None:
    write_episodes(tmp_path / "episodes.jsonl", [make_episode()])

    (episode,) = records_of(write_report(tmp_path))

    shown = [part for turn in episode["turns"] for part in turn["messages"][0]["parts"]]
    pictures = [part for part in shown if "image" in part]
    assert [part["name"] for part in pictures] == ["input_image", "tool_result_1"]
    assert [(part["width"], part["height"]) for part in pictures] == [(100, 60), (40, 20)]
    assert all((tmp_path / part["image"]).is_file() for part in pictures)


def test_boxes_of_the_truth_are_scaled_to_the_image_as_shown(make_episode: MakeEpisode) -> None:
    truth = QuestionTruth(target_box=(120, 40, 240, 200), detail_box=(3, 3, 3, 9))

    drawn = marks(make_episode(ground_truth=truth))

    # The zoom cut 40 x 20 shown pixels, which are 160 x 80 native ones: a quarter on both sides.
    # 120 / 4 = 30, 40 / 4 = 10, 240 / 4 = 60, 200 / 4 = 50; an empty box is not drawn.
    assert [(mark.what, mark.label, list(mark.box or ())) for mark in drawn] == [
        ("zoom", "zoom", [10, 20, 50, 40]),
        ("truth", "target box", [30, 10, 60, 50]),
    ]
    assert drawn[0].point == [30, 30]


def test_boxes_without_an_end_are_not_drawn(make_episode: MakeEpisode) -> None:
    truth = UnknownRecord("Truth", {"target_box": [0, 0, 10**400, 10**400]})
    assert [mark.what for mark in marks(make_episode(ground_truth=truth))] == ["zoom"]


def test_scale_is_unknown_without_a_zoom_and_no_box_is_drawn(
    make_episode: MakeEpisode,
) -> None:
    assert (
        marks(make_episode(zoomed=False, ground_truth=QuestionTruth(target_box=(1, 2, 3, 4)))) == []
    )


@pytest.mark.slow
def test_report_holds_all_episodes_so_that_no_group_is_split(
    tmp_path: Path, make_episode: MakeEpisode
) -> None:
    """Check all members: an even selection of 600 would drop every second member of pairs."""
    for number in range(2):
        episodes = [
            make_episode(sample_id=f"{number}-{index}", group=index // 4, member=index % 4)
            for index in range(400)
        ]
        write_episodes(tmp_path / "episodes" / f"step_{number}.jsonl", episodes)

    page = write_report(tmp_path)

    data = data_of(page)
    assert data["index"]["count"] == 800
    assert data["index"]["numbers"]["member"] == [0, 1, 2, 3] * 200
    # 800 / 32 = 25 files; the page itself holds no transcript.
    assert [len(part) for part in parts_of(page)] == [EPISODES_IN_PART] * 25 == [32] * 25
    assert [each["id"] for each in records_of(page)] == column(data, "id")
    assert "look" not in page.read_text().partition('<script id="data"')[2].partition("<script>")[0]


def test_report_that_is_written_again_leaves_no_part_of_the_old_one(
    tmp_path: Path, make_episode: MakeEpisode
) -> None:
    write_episodes(tmp_path / "episodes.jsonl", [make_episode()] * 40)
    first = data_of(write_report(tmp_path))["parts"]["token"]
    write_episodes(tmp_path / "episodes.jsonl", [make_episode()])

    page = write_report(tmp_path)

    assert len(records_of(page)) == 1
    token = data_of(page)["parts"]["token"]
    assert token != first
    names = sorted(path.name for path in (tmp_path / "report").iterdir())
    assert names == [f"episodes-{token}-0.js", f"texts-{token}-0.js"]


def test_report_stays_whole_when_the_next_one_cannot_be_written(
    tmp_path: Path, make_episode: MakeEpisode, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_episodes(tmp_path / "run" / "episodes.jsonl", [make_episode()] * 40)
    (tmp_path / "empty").mkdir()
    page = write_report(tmp_path / "run")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    with pytest.raises(RunError, match="empty holds no"):
        write_report(tmp_path / "run", tmp_path / "empty")

    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before

    def interrupt(index: object, episode: object, saved_in: str, line: int) -> None:
        if line == 35:  # after a file of 32 was written
            raise KeyboardInterrupt

    monkeypatch.setattr(EpisodeIndex, "add", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_report(tmp_path / "run")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert len(records_of(page)) == 40


@pytest.mark.attack("servers: the table of listeners is complete")
def test_report_needs_no_server(tmp_path: Path, make_episode: MakeEpisode) -> None:
    before = listeners(family(os.getpid()))  # of other files, too
    write_episodes(tmp_path / "episodes.jsonl", [make_episode()])
    assert main(["view", str(tmp_path), "--no-open"]) == 0
    require_listed("viewer", listeners(family(os.getpid())) - before)


@pytest.mark.attack("viewer: no text of an episode becomes markup or runs a script")
def test_policy_of_the_page_allows_its_own_script_and_style_only(
    tmp_path: Path, make_episode: MakeEpisode
) -> None:
    write_episodes(tmp_path / "episodes.jsonl", [make_episode()])
    text = write_report(tmp_path).read_text()
    policy = re.findall(r'Content-Security-Policy" content="(.*?)"', text)[0]
    assert "unsafe" not in policy
    assert "http" not in policy
    for tag in ("script", "style"):
        inside = re.findall(rf"<{tag}>(.*?)</{tag}>", text, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


@pytest.mark.attack("viewer: no text of an episode becomes markup or runs a script")
def test_values_not_finite_or_endless_are_held_in_bounds(
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
    (shown,) = records_of(page)
    assert shown["reward"] is None
    assert data["index"]["numbers"]["reward"] == [None]
    assert data["runs"][0]["metrics"] == [
        {"phase": tmp_path.name, "step": 1, "loss": None, "kl": None}
    ]
    text = shown["turns"][1]["text"]
    assert text == "x" * LONGEST_TEXT + f"… [{1_000_000 - LONGEST_TEXT} more characters]"
    assert json.dumps(shown["truth"]["deep"]).count("[") < DEEPEST
    size = page.stat().st_size + sum(each.stat().st_size for each in page.parent.glob("report/*"))
    assert size < 250_000


def test_missing_folder_raises_an_error_with_the_option(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"There is no run folder .*gone.*runs/<name>"):
        write_report(tmp_path / "gone")


def test_empty_folder_raises_an_error_with_the_missing_files(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"holds no metrics\.jsonl, results\.json or episodes"):
        write_report(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_file_that_cannot_be_read_is_named_and_the_rest_is_shown(
    tmp_path: Path, make_episode: MakeEpisode
) -> None:
    write_episodes(tmp_path / "episodes" / "good.jsonl", [make_episode()])
    (tmp_path / "episodes" / "bad.jsonl").write_text("no episode\n")
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 0.5}\n[1]\n{"step": 3}\n')
    (tmp_path / "results.json").write_text("{")

    data = data_of(write_report(tmp_path))

    assert column(data, "id") == ["sample"]
    assert [row["step"] for row in data["runs"][0]["metrics"]] == [1, 3]
    named = [
        re.search(r"results\.json|metrics\.jsonl, line 2|bad\.jsonl, line 1", each)
        for each in data["problems"]
    ]
    assert [each.group() if each else None for each in named] == [
        "results.json",
        "metrics.jsonl, line 2",
        "bad.jsonl, line 1",
    ]


@pytest.mark.parametrize(
    "content",
    [
        *('{"seconds": null}', '{"seconds": 3, "rows": 5}', '{"rows": [null, 3]}', "3", "null"),
        *("[" * 9999, '{"a": ' * 9999),
    ],
)
def test_results_of_an_unknown_form_are_none(
    tmp_path: Path, make_episode: MakeEpisode, content: str
) -> None:
    write_episodes(tmp_path / "episodes.jsonl", [make_episode()])
    (tmp_path / "results.json").write_text(content)
    (tmp_path / "metrics.jsonl").write_text(content + "\n")

    data = data_of(write_report(tmp_path))

    assert data["index"]["count"] == 1
    assert (data["runs"][0]["results"], data["runs"][0]["seconds"]) == ([], {})
    assert all("results.json" in each or "metrics.jsonl" in each for each in data["problems"])


def test_run_in_progress_may_end_with_half_a_line(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 0.5}\n{"step": 2, "lo')

    data = data_of(write_report(tmp_path))

    assert [row["step"] for row in data["runs"][0]["metrics"]] == [1]
    assert data["problems"] == []


def test_image_that_is_missing_costs_its_episode_alone(
    tmp_path: Path, make_episode: MakeEpisode
) -> None:
    lone = Image.from_pixels(np.full((2, 2, 3), 7, np.uint8))
    shows = Turn((Message("user", (lone,)),), "?", 0.0, (), "stop")
    episodes = [make_episode(), replace(make_episode(), turns=(shows,)), make_episode()]
    write_episodes(tmp_path / "episodes.jsonl", episodes)
    (tmp_path / "images" / f"{lone.sha256}.png").unlink()

    data = data_of(write_report(tmp_path))

    assert data["index"]["numbers"]["line"] == [0, 2]
    (problem,) = data["problems"]
    assert "episodes.jsonl, line 2: There is no image file" in problem


def test_runs_are_held_with_the_images_of_both(tmp_path: Path, make_episode: MakeEpisode) -> None:
    for name in ("one", "other"):
        write_episodes(tmp_path / name / "episodes.jsonl", [make_episode(sample_id=name)])

    page = write_report(tmp_path / "one", tmp_path / "other")

    data = data_of(page)
    assert [run["name"] for run in data["runs"]] == ["one", "other"]
    assert column(data, "saved_in") == ["one: episodes", "other: episodes"]
    pictures = [each["turns"][0]["messages"][0]["parts"][1]["image"] for each in records_of(page)]
    assert [each.split("/")[:-1] for each in pictures] == [["images"], ["..", "other", "images"]]
    assert all((page.parent / each).is_file() for each in pictures)
    with pytest.raises(RunError, match="There is no run folder"):
        write_report(tmp_path / "one", tmp_path / "gone")


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

    # The zoom into a gives its scale: 10 shown pixels are 40 native ones.
    assert [(mark.image, mark.label, list(mark.box or ())) for mark in drawn] == [
        ("a", "zoom 1", [0, 0, 10, 10]),
        ("b", "zoom 2", [1, 1, 2, 2]),
        ("a", "target box", [0, 0, 25, 25]),
    ]
