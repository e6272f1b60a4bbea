"""Tests the summary of an evaluation: groups, tool use and failures, counted by hand."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from visenv.evaluation.intervals import mean_of
from visenv.evaluation.summary import (
    ANY_TOOL,
    FailedItem,
    Summary,
    SummaryRow,
    summarize,
)
from visenv.evaluation.summary_files import as_json, markdown, write_summary
from visenv.evaluation.values import counted_values, tool_metrics
from visenv.types import Answered, Episode, Event, Failure, GroundTruth, Message, ToolCalled, Turn


def call(tool: str = "zoom", ok: bool = True) -> ToolCalled:
    return ToolCalled(0, tool, {}, ok, "" if ok else "no such page")


def episode(
    number: int,
    accuracy: float | None,
    calls: Sequence[ToolCalled] = (),
    labels: Mapping[str, str] | None = None,
    kind: str = "",
    reason: str = "",
    answer: str = "1",
) -> Episode:
    """Return an episode: truncated if it has a reason, aborted without accuracy, else answered."""
    events: list[Event] = [*calls]
    status: Any = "truncated" if reason else "terminated"
    if accuracy is None:
        status = "aborted"
    elif not reason:
        events.append(Answered(0, answer))
    reward = 0.0 if accuracy is None else 0.3 + 0.7 * accuracy
    turn = Turn((Message("user", ("?",)),), "text", reward, tuple(events), "stop")
    metrics = {} if accuracy is None else {"accuracy": accuracy}
    return Episode(
        "e", f"s{number}", kind, number, 0, 0, (turn,), status,
        "" if accuracy is None else reason,
        JUDGE_GONE if accuracy is None else None,
        metrics=metrics, question="?", answers=("1",),
        ground_truth=GroundTruth(labels=labels) if labels else None,
    )  # fmt: skip


JUDGE_GONE = Failure("service", "judge", "gone")
FG = {"track": "FG", "rm_tag": "pair_rm"}
DOC_1 = {"track": "Doc", "rm_tag": "single_rm"}
DOC_2 = {"track": "Doc", "rm_tag": "pair_rm"}

PLAYED = [
    episode(0, 1.0, [call(), call(ok=False)], FG),
    episode(1, 0.0, [], FG),
    episode(2, 1.0, [call("page"), call("page"), call()], DOC_1),
    episode(3, 1.0, [call("page", ok=False)], DOC_2),
    episode(4, 0.0, [], DOC_2, reason="turns"),
    episode(5, None, [], DOC_2),
    Episode(
        "e", "", "", 7, 0, 0, (), "aborted", "", Failure("data", "ImageError", "a.jpg is broken")
    ),
]


def row(summary: Summary, grouping: str, label: str) -> SummaryRow:
    (found,) = [each for each in summary.rows if (each.grouping, each.label) == (grouping, label)]
    return found


def test_groups_by_hand() -> None:
    summary = summarize(PLAYED)
    assert [(each.grouping, each.label, *each[2:5]) for each in summary.rows] == [
        ("", "all", 7, 2, 1),
        ("track", "Doc", 4, 1, 1),
        ("track", "FG", 2, 0, 0),
        ("track", "mean of groups", 6, 1, 1),
        ("rm_tag", "pair_rm", 5, 1, 1),
        ("rm_tag", "single_rm", 1, 0, 0),
        ("rm_tag", "mean of groups", 6, 1, 1),
    ]
    accuracy = {each[:2]: each.means["accuracy"].value for each in summary.rows}
    assert accuracy["", "all"] == pytest.approx(3 / 7)
    assert accuracy["track", "Doc"] == pytest.approx(2 / 4)
    assert accuracy["track", "FG"] == pytest.approx(1 / 2)
    assert accuracy["track", "mean of groups"] == pytest.approx((2 / 4 + 1 / 2) / 2)
    assert accuracy["rm_tag", "pair_rm"] == pytest.approx(2 / 5)
    assert accuracy["rm_tag", "mean of groups"] == pytest.approx((2 / 5 + 1) / 2)


def test_aborted_episode_counts_as_0_in_all_but_tool_use() -> None:
    played, gone = episode(0, 1.0, [call()]), episode(1, None)
    played = replace(played, terms={"zoomed": 0.5, "does not apply": None})
    (only,) = summarize([played, gone]).rows
    values = {name: each.value for name, each in only.means.items()}
    # The tool was used in 1 of 1 episodes that were played; everything else is half.
    assert values == {
        "accuracy": 0.5,
        "reward": 0.5,
        "zoomed": 0.25,
        "used tools": 1.0,
        "tool calls": 1.0,
        "failed calls": 0.0,
    }
    assert counted_values([played, gone])[1] == {"accuracy": 0.0, "reward": 0.0, "zoomed": 0.0}


def test_aborted_episode_counts_only_in_metrics_of_its_kind() -> None:
    counting = replace(episode(0, 1.0, kind="counting"), metrics={"accuracy": 1.0, "error": 3.0})
    reading = episode(1, 1.0, kind="reading")
    gone = {kind: episode(2, None, kind=kind) for kind in ("counting", "reading", "spotting")}
    values = counted_values([counting, reading, *gone.values()])
    assert values[2:] == [
        {"accuracy": 0.0, "error": 0.0, "reward": 0.0},
        {"accuracy": 0.0, "reward": 0.0},
        {"accuracy": 0.0, "error": 0.0, "reward": 0.0},  # nothing of its kind was played
    ]


def test_evaluation_of_only_aborted_episodes_has_the_reward_0() -> None:
    (only,) = summarize([episode(0, None), episode(1, None)]).rows
    assert (only.episodes, only.aborted, only.samples) == (2, 2, 2)
    assert {name: each.value for name, each in only.means.items()} == {"reward": 0.0}


def test_group_of_only_aborted_episodes_counts_in_the_mean_of_groups() -> None:
    summary = summarize([episode(0, 1.0, [call()], FG), episode(1, None, labels=DOC_1)])
    means = row(summary, "track", "mean of groups").means
    assert (means["accuracy"].value, means["used tools"].value) == (0.5, 1.0)


def test_metrics_have_the_interval_that_fits_them() -> None:
    summary = summarize(PLAYED[:5])
    # 3 in 5 episodes that were played: Wilson's (0.6 + 0.384146 ± 1.959964 sqrt(0.048 + 0.038415))
    # / 1.768292.
    assert row(summary, "", "all").means["accuracy"][1:] == pytest.approx(
        (0.230724, 0.882379), abs=1e-6
    )
    # The reward is 1.0 or 0.3, so the interval is normal: mean 0.72, s = 0.7 sqrt(0.3) = 0.383406,
    # half width 1.959964 x 0.383406 / sqrt(5) = 0.336064.
    assert row(summary, "", "all").means["reward"][1:] == pytest.approx(
        (0.383936, 1.056064), abs=1e-6
    )
    # Groups of one sample follow the rule of the whole: shares have an interval, rewards have none.
    single = row(summary, "rm_tag", "single_rm").means
    assert single["accuracy"][1:] == pytest.approx((0.206549, 1.0), abs=1e-6)
    assert math.isnan(single["reward"].low)


def test_interval_of_a_metric_from_0_to_1_stays_there() -> None:
    played = [
        replace(
            episode(number, 1.0),
            metrics={"anls": value, "seconds": 9 * value},
            terms={"soft": value, "tool": 2 * value},
        )
        for number, value in enumerate((0.9, 1.0, 1.0, 1.0, 0.05))
    ]
    means = row(summarize(played), "", "all").means
    # Mean 0.79, s = sqrt(0.173), half width 1.959964 s / sqrt(5) = 0.364574: 1.154574 is beyond 1.
    assert means["anls"] == pytest.approx((0.79, 0.425426, 1.0), abs=1e-6)
    assert means["seconds"].high == pytest.approx(9 * 1.154574, abs=1e-5)
    assert means["soft"] == means["anls"]
    assert means["tool"].high == pytest.approx(2 * 1.154574, abs=1e-5)


def test_mean_of_groups_has_their_intervals_together() -> None:
    summary = summarize(PLAYED)
    parts = [row(summary, "track", label).means["accuracy"] for label in ("Doc", "FG")]
    assert row(summary, "track", "mean of groups").means["accuracy"] == mean_of(parts)


def test_tool_use_by_hand() -> None:
    tools = {each.tool: each for each in summarize(PLAYED).tools}
    assert list(tools) == [ANY_TOOL, "page", "zoom"]
    every = tools[ANY_TOOL]
    # Of five episodes, 0, 2 and 3 made 2 + 3 + 1 calls, of which 1 + 3 + 0 gave a result.
    assert (every.total, every.used.value) == (6, 3 / 5)
    assert every.calls.value == pytest.approx(6 / 5)
    assert every.success.value == pytest.approx(4 / 6)
    page, zoom = tools["page"], tools["zoom"]
    for each in (page, zoom):
        assert (each.total, each.used.value) == (3, 2 / 5)
        assert each.success.value == pytest.approx(2 / 3)
    means = row(summarize(PLAYED), "track", "FG").means
    assert means["used tools"].value == 1 / 2
    assert means["tool calls"].value == 1.0
    assert means["failed calls"].value == 0.5
    assert tool_metrics(PLAYED[1]) == {"used tools": 0, "tool calls": 0, "failed calls": 0}


def test_tool_that_was_never_called_has_no_success() -> None:
    (only,) = summarize([episode(0, 1.0)]).tools
    assert (only.total, only.used.value) == (0, 0.0)
    assert math.isnan(only.success.value)


def test_failures_are_all_listed() -> None:
    assert summarize(PLAYED, ["a.jsonl:3: no gt: None"]).failures == [
        FailedItem("a.jsonl:3", "left out", "no gt: None"),
        FailedItem("s4", "unanswered", "turns"),
        FailedItem("s5", "aborted", "judge: gone"),
        FailedItem("row 7", "aborted", "ImageError: a.jpg is broken"),
    ]


def test_kinds_group_what_has_no_labels() -> None:
    rows = summarize([episode(0, 1.0, kind="colour"), episode(1, 0.0, kind="text")]).rows
    assert [(each.grouping, each.label) for each in rows] == [
        ("", "all"),
        ("kind", "colour"),
        ("kind", "text"),
        ("kind", "mean of groups"),
    ]
    assert len(summarize([episode(0, 1.0, kind="colour")]).rows) == 1


def test_summary_of_no_episodes() -> None:
    summary = summarize([], ["a.jsonl:1: broken"])
    assert summary.rows == [SummaryRow("", "all", 0, 0, 0, {})]
    assert "# nothing" in markdown("nothing", summary)


def test_table_has_a_column_for_each_group() -> None:
    lines = markdown("visenv/ArmDoc-v0, oracle", summarize(PLAYED)).splitlines()
    assert lines[0] == "# visenv/ArmDoc-v0, oracle"
    assert "## Accuracy" in lines
    assert "| by track | Doc | FG | mean of groups | all |" in lines
    # Doc: Wilson of 2 in 4, (0.5 + 0.480182 ± 1.959964 sqrt(0.0625 + 0.060023)) / 1.960365.
    # Their mean: ± sqrt(0.349962² + 0.405469²) / 2.
    assert "| accuracy, % | 50.0 [15.0, 85.0] | 50.0 [9.5, 90.5] | 50.0 [23.2, 76.8] |" in (
        line.rpartition(" 42.9")[0] for line in lines
    )
    assert "| episodes | 4 | 2 | 6 | 7 |" in lines
    assert "| aborted | 1 | 0 | 1 | 2 |" in lines
    assert "## Failures: 3" in lines
    assert "- s4: unanswered: turns" in lines


def test_text_of_a_policy_stays_in_its_cell() -> None:
    hostile = "a|b\n# Title\n<script>\\ \x1b[31m" + "x" * 10_000
    played = [episode(0, 1.0, [call(hostile, ok=False), call("")])]
    text = markdown("t", summarize(played, [f"f:1: {hostile}"]))
    assert all(len(line) < 1000 for line in text.splitlines())
    assert "\n# Title" not in text
    assert "<script>" not in text
    assert "\x1b" not in text
    assert "a\\|b # Title" in text
    assert "| (none named) | 1 |" in text


def test_files_hold_the_same_numbers(tmp_path: Path) -> None:
    played = [*PLAYED, episode(8, 1.0, labels=FG, answer='he said "1",\n\ud800')]
    summary = summarize(played, ["a.jsonl:3: no gt"], {"F1": 0.5})
    write_summary(tmp_path, "title", summary, played)

    assert (tmp_path / "summary.md").read_text() == markdown("title", summary)
    stored = json.loads((tmp_path / "summary.json").read_text())
    assert stored == json.loads(json.dumps(as_json(summary)))
    assert stored["totals"] == {"F1": 0.5}
    assert stored["rows"][1]["grouping"] == "track"
    assert [each["tool"] for each in stored["tools"]] == [ANY_TOOL, "page", "zoom"]

    with (tmp_path / "summary.csv").open(newline="") as file:
        means = list(csv.DictReader(file))
    doc = [each for each in means if (each["label"], each["metric"]) == ("Doc", "accuracy")]
    assert [float(doc[0][name]) for name in ("mean", "low", "high")] == stored["rows"][1][
        "accuracy"
    ]
    assert {each["label"] for each in means if each["grouping"] == "tool"} == {
        ANY_TOOL,
        "page",
        "zoom",
    }
    assert [each["mean"] for each in means if each["grouping"] == "total"] == ["0.5"]

    with (tmp_path / "items.csv").open(newline="") as file:
        items = list(csv.DictReader(file))
    assert [each["item"] for each in items] == ["s0", "s1", "s2", "s3", "s4", "s5", "row 7", "s8"]
    assert (items[0]["track"], items[0]["rm_tag"], items[0]["accuracy"]) == ("FG", "pair_rm", "1.0")
    assert (items[4]["status"], items[4]["reason"], items[4]["answer"]) == (
        "truncated",
        "turns",
        "",
    )
    assert (items[5]["accuracy"], items[5]["reason"]) == ("0.0", "judge: gone")
    assert (items[5]["status"], items[5]["tool calls"]) == ("aborted", "")
    assert items[7]["answer"] == 'he said "1",\n\\ud800'
    assert items[7]["right answers"] == "1"
