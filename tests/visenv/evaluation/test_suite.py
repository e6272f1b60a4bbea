"""Tests suites: the table of several data sets, its average, and missing data sets."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from visenv.cli import main
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.evaluation.intervals import Mean, proportion
from visenv.evaluation.suite import (
    ColumnResult,
    Suite,
    SuiteColumn,
    TableRow,
    as_json,
    average,
    column_result,
    markdown,
    read_folders,
)
from visenv.evaluation.summary import Summary, SummaryRow
from visenv.registration import SUITES, load

TWO = Suite(
    "Two sets",
    (
        SuiteColumn("HR-Bench 8K", "ArmVQA-v0", "hrbench:{hr}?size=8k", {"preset": "eval"}),
        SuiteColumn("V*", "ArmVQA-v0", "vstar:{vstar}"),
    ),
)


def test_column_names_its_folders_its_options_and_a_folder_for_its_files() -> None:
    first = TWO.columns[0]
    assert TWO.folders == ["hr", "vstar"]
    assert first.words() == ['preset="eval"']
    assert first.slug == "hr-bench-8k"
    assert first.data.format_map({"hr": "/a/{b}"}) == "hrbench:/a/{b}?size=8k"


def test_folders_are_read_or_refused() -> None:
    assert read_folders(TWO, ["hr=/a=b", "vstar=x"]) == {"hr": "/a=b", "vstar": "x"}
    with pytest.raises(UnknownNameError, match="vstar"):
        read_folders(TWO, ["vsta=x"])
    for word in ("hr", "hr=", ""):
        with pytest.raises(ConfigurationError, match="NAME=PATH"):
            read_folders(TWO, [word])


def test_average_gives_each_column_the_same_weight() -> None:
    # 67.6, 73.8 and 52.4 are the tracks of ARM-Thinker in table 2; the paper's average is 64.6.
    tracks = [
        ColumnResult(name, proportion(share * rows, rows), rows)
        for name, share, rows in (("FG", 0.676, 550), ("IF", 0.738, 489), ("Doc", 0.524, 460))
    ]
    assert round(100 * average(tracks).value, 1) == 64.6
    assert average(tracks).low < 0.646 < average(tracks).high


def test_average_needs_every_column() -> None:
    played = ColumnResult("A", Mean(0.5, 0.4, 0.6), 10)
    assert math.isnan(average([played, ColumnResult("B", skipped="give --folder b=PATH")]).value)
    assert math.isnan(average([]).value)


def test_page_lists_what_was_left_out() -> None:
    suite = Suite("Two", (SuiteColumn("A", "ArmVQA-v0"), SuiteColumn("B", "ArmVQA-v0", "b:{b}")))
    results = (
        ColumnResult("A", Mean(0.5, 0.25, 0.75), 10, 1, ("a.jsonl:3: there is no image x.jpg",)),
        ColumnResult("B", skipped="give --folder b=PATH"),
    )
    rows = [TableRow("oracle", results)]
    page = markdown(suite, rows)
    assert "| accuracy, % | A | B | Avg. |" in page
    assert "| oracle | 50.0 [25.0, 75.0] |  |  |" in page
    assert "| episodes | 10 | 0 | 10 |" in page
    assert "| aborted | 1 | 0 | 1 |" in page
    assert "| left out | 1 | 0 | 1 |" in page
    assert "- A: left out: a.jsonl:3: there is no image x.jpg" in page
    assert "- B: not played: give --folder b=PATH" in page
    [row] = as_json(suite, rows)["rows"]
    assert row["columns"][0]["score"] == [0.5, 0.25, 0.75]
    assert row["average"] == [None, None, None]


def test_row_has_the_aborted_episodes_of_every_policy() -> None:
    suite = Suite("One", (SuiteColumn("A", "ArmVQA-v0"),), metric="success")
    rows = [
        TableRow(label, (ColumnResult("A", Mean(share, share, share), 10, aborted),))
        for label, share, aborted in (("cot", 0.5, 1), ("cot, no_vision", 0.25, 2))
    ]
    page = markdown(suite, rows)
    assert "| success, % | A | Avg. |" in page
    assert "| cot | 50.0 [50.0, 50.0] | 50.0 [50.0, 50.0] |" in page
    assert "| cot, no_vision | 25.0 [25.0, 25.0] | 25.0 [25.0, 25.0] |" in page
    assert "| aborted | 3 | 3 |" in page


@pytest.mark.parametrize("name", SUITES)
def test_suites_play_known_environments(name: str) -> None:
    suite = load("suite", name)
    assert isinstance(suite, Suite)
    assert len({column.slug for column in suite.columns}) == len(suite.columns)
    for column in suite.columns:
        assert load("environment", column.env)
        name, colon, _ = column.data.partition(":")  # without a colon: an environment's name
        assert not colon or load("data set", name)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["armbench"], "--folder armbench=PATH"),
        (["armbanch"], "armbench"),
        (["armbench", "--folder", "bench=x"], "armbench"),
        (["armbench", "--folder", "armbench=/nowhere"], "no folder"),
        (["eb-alfred", "--row", " "], "--row starts with a policy"),
        (["eb-alfred", "--row", "oracle", "--row", "oracle"], "--row must differ"),
        (
            ["eb-alfred", "--row", "cot", "--policy-option", "policy=openai"],
            "write the options into the row",
        ),
        (["eb-alfred", "--repeats", "0"], "repeats"),
    ],
)
def test_command_that_is_invalid_is_explained(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["suite", *words, "--out", str(tmp_path / "out")]) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_column_may_report_a_total_of_its_data_set() -> None:
    row = SummaryRow("", "all", 4, 0, 0, {"accuracy": Mean(0.75, 0.5, 1.0)})
    summary = Summary([row], [], [], {"strict": 0.25})
    column = SuiteColumn("WeMath", "ArmVQA-v0", "vlmeval:{a}", total="strict")
    assert column_result(column, "accuracy", summary, []).score.value == 0.25
    assert column_result(TWO.columns[0], "accuracy", summary, ["f:1: bad"]) == ColumnResult(
        "HR-Bench 8K", Mean(0.75, 0.5, 1.0), 4, 0, ("f:1: bad",)
    )
