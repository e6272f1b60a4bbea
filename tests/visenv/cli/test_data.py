"""`visenv data`: the chain from procedural samples to training and benchmark data, offline."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from visenv.cli import main
from visenv.cli.data import Data
from visenv.data.armbench import ARMBench
from visenv.data.lines import JsonLines
from visenv.episodes import read_episodes
from visenv.types import Log

pytestmark = pytest.mark.component("opencv")

ENV = ["ZoomVQA-v0", "--option", "stage=tiny"]
WRITER = ["--policy", "visenv.algos.curation:ScriptedGenerator"]
TRACK = "fine_grained_perception.jsonl"


def chain(folder: Path) -> list[list[str]]:
    """Every step of the chain."""

    def path(name: str) -> str:
        return str(folder / name)

    careless = ["--policy", "oracle", "--policy-option", "care=0.5"]
    return [
        ["questions", *ENV, "--samples", "6", "--out", path("q.jsonl")],
        ["negatives", path("q.jsonl"), *WRITER, "--count", "2", "--out", path("pairs.jsonl")],
        ["dedupe", path("pairs.jsonl"), "--out", path("new.jsonl")],
        ["arrange", path("new.jsonl"), "--out", path(f"judge/{TRACK}")],
        ["difficulty", *ENV, "--places", path("q.jsonl"), *careless, "--out", path("hard.jsonl")],
        [
            *("trajectories", *ENV, "--places", path("hard.jsonl"), *careless, "--tries", "2"),
            *("--out", path("played/episodes.jsonl")),
        ],
        ["filter", path("played/episodes.jsonl"), "--out", path("good/episodes.jsonl")],
        ["export", path("good/episodes.jsonl"), "--out", path("chat/zoom.jsonl")],
        ["armbench", path("q.jsonl"), *WRITER, "--out", path(f"bench/{TRACK}")],
    ]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but the journals, whose order is that in which rows were done, and halves."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".journal.jsonl") and path.name[0] != "."
    }


def test_the_whole_chain_accounts_for_every_row_and_is_the_same_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        for words in chain(folder):
            assert main(["data", *words]) == 0
    a = tmp_path / "a"
    assert contents(a) == contents(tmp_path / "b")
    summaries = {
        path.parent.name + "/" + path.name: json.loads(path.read_text())
        for path in a.rglob("*.summary.json")
    }
    assert len(summaries) == 9
    for account in summaries.values():
        counted = [*account["dropped"].values(), *account["failed"].values(), account["kept"]]
        assert account["lines"] == sum(counted)
        assert account["failed"] == {}
    assert summaries["a/pairs.summary.json"]["rows"] == 12
    hard = [line.row["mean"] for line in JsonLines(a / "hard.jsonl")]
    assert all(mean < 1 for mean in hard)
    good = list(read_episodes(a / "good/episodes.jsonl"))
    assert 0 < len(good) < 2 * len(hard)
    assert all(each.metrics["accuracy"] == each.metrics["zoomed"] == 1.0 for each in good)
    assert len(list(JsonLines(a / "chat/zoom.jsonl"))) == len(good)
    for name in ("judge", "bench"):  # the benchmark's own loader takes them
        source = ARMBench(a / name)
        assert len(source) == summaries[f"{name}/fine_grained_perception.summary.json"]["rows"]
        assert not source.problems
        assert source[0].images[0].size == (1152, 1152)
    said = capsys.readouterr()
    assert "dropped: accuracy: wrong" in said.out
    assert "rows in" in said.out


def test_a_step_done_again_works_on_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in chain(tmp_path)[:2]:
        assert main(["data", *words]) == 0
    journal = tmp_path / "pairs.journal.jsonl"
    before = journal.read_bytes()
    words = chain(tmp_path)[1]
    assert main(["data", *words]) == 0
    assert journal.read_bytes() == before
    assert main(["data", *words, "--seed", "1"]) == 1
    assert "was begun with negatives" in capsys.readouterr().err


def test_killed_in_the_middle_a_step_goes_on(tmp_path: Path) -> None:
    """SIGKILL while episodes are played; the end is that of an undisturbed run."""

    def words(out: str) -> list[str]:
        step = ["data", "trajectories", *ENV, "--samples", "24", "--policy", "oracle"]
        return [*step, "--concurrency", "2", "--out", str(tmp_path / out / "e.jsonl")]

    journal = tmp_path / "killed" / "e.journal.jsonl"
    program = "import sys; from visenv.cli import main; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words("killed")], stderr=subprocess.DEVNULL
    )
    while not journal.exists() or journal.read_bytes().count(b"\n") < 5:
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert journal.read_bytes().count(b"\n") < 25
    assert not (tmp_path / "killed" / "e.jsonl").exists()
    for out in ("killed", "whole"):
        assert main(words(out)) == 0
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    ids = [json.loads(line)["line"] for line in journal.read_bytes().splitlines()[1:]]
    assert len(ids) == len(set(ids)) == 24  # none was played twice
    assert len(list(read_episodes(tmp_path / "killed" / "e.jsonl"))) == 24


MISTAKES = {
    ("questions", *ENV, "--out", "o.jsonl"): "say how many samples",
    ("questions", *ENV, "--samples", "0", "--out", "o.jsonl"): "--samples must be at least 1",
    ("questions", "ZomVQA-v0", "--samples", "1", "--out", "o.jsonl"): "Did you mean",
    ("negatives", "no.jsonl", *WRITER, "--out", "o.jsonl"): "There is no file of rows 'no.jsonl'",
    ("negatives", "no.jsonl", "--policy", "opnai", "--out", "o.jsonl"): "Did you mean 'openai'",
    ("negatives", "no.jsonl", "--out", "o.jsonl"): "The policy 'openai'",  # no model is named
    ("negatives", "no.jsonl", *WRITER, "--flaws", "cuont", "--out", "o.jsonl"): "mean 'count'",
    ("armbench", "no.jsonl", *WRITER, "--out", "x/o.jsonl"): "no track of ARMBench-VL called 'o'",
    ("dedupe", "no.jsonl", "--contrast", "2", "--out", "o.jsonl"): "contrast must be above 0",
    ("difficulty", *ENV, "--by", "asking", "--samples", "1", "--policy", "oracle", "--out", "o"): (
        "--by asking needs a data set"
    ),
}


@pytest.mark.parametrize("words", MISTAKES, ids=" ".join)
def test_a_mistake_gets_one_line_that_says_what_is_meant(
    words: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["data", *words]) == 1
    said = capsys.readouterr()
    assert said.err.startswith("visenv: ")
    assert said.err.count("\n") == 1
    assert MISTAKES[words] in said.err
    assert list(tmp_path.rglob("*")) == []


def test_every_step_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    names = [*(words[0] for words in chain(Path("x"))), "constraints"]
    assert len(names) == len(set(names)) == 10
    for name in names:
        with pytest.raises(SystemExit) as exit_:
            main(["data", name, "--help"])
        assert exit_.value.code == 0
        said = capsys.readouterr().out
        assert f"usage: visenv data {name}" in said
        assert "--out" in said
        assert "\n\n\n" not in said
    assert Data.__doc__


def test_judges_of_documents_play_filter_and_export_too(tmp_path: Path) -> None:
    """The agent loop of the paper's own environment, and pairs of the chain judged by zooming."""
    played, good = tmp_path / "played/e.jsonl", tmp_path / "good/e.jsonl"
    for words in (
        ["trajectories", "ArmDoc-v0", "--policy", "oracle", "--samples", "2", "--out", str(played)],
        ["filter", str(played), "--out", str(good)],
        ["export", str(good), "--layout", "trl", "--out", str(tmp_path / "chat/doc.jsonl")],
        *chain(tmp_path)[:4],
        [
            *("trajectories", "ArmZoom-v0", "--data", f"armbench:{tmp_path / 'judge'}"),
            *("--policy", "random", "--samples", "3", "--out", str(tmp_path / "zoom/e.jsonl")),
        ],
    ):
        assert main(["data", *words]) == 0
    episodes = list(read_episodes(good))
    assert len(episodes) == 2
    assert all(
        call.tool.startswith("doc_page") for e in episodes for call in Log(e.events).tool_calls
    )
    chats = [line.row for line in JsonLines(tmp_path / "chat/doc.jsonl")]
    assert [row["messages"][-1]["role"] for row in chats] == ["assistant"] * 2
    judged = list(read_episodes(tmp_path / "zoom/e.jsonl"))
    assert [each.sample_id for each in judged] == [
        f"armbench-fine_grained_perception-seed-{place}" for place in ("0/0", "0/1", "1/0")
    ]
