"""Tests `visenv data`: the steps from procedural samples to training and benchmark data."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.programs import run_killed
from visenv.cli import _command, main
from visenv.cli.data import load_step
from visenv.curation import difficulty
from visenv.curation.difficulty import Difficulty
from visenv.curation.journal import CurationJournal
from visenv.curation.lines import JsonLines
from visenv.envs.arm.datasets.armbench import ARMBench
from visenv.episodes import read_episodes
from visenv.policies.scripted import ScriptedPolicy
from visenv.registration import CURATION
from visenv.types import EventLog, Sample

pytestmark = pytest.mark.component("opencv")

ENV = ["ZoomVQA-v0", "--option", "preset=tiny"]
WRITER = ["--policy", "visenv.envs.arm.curation:ScriptedGenerator"]
TRACK = "fine_grained_perception.jsonl"


def chain(folder: Path, samples: int = 4) -> list[list[str]]:
    """Return the commands of all steps of the chain."""

    def path(name: str) -> str:
        return str(folder / name)

    careless = ["--policy", "oracle", "--policy-option", "expert_rate=0.5"]
    return [
        ["questions", *ENV, "--samples", f"{samples}", "--out", path("q.jsonl")],
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


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a chain that was run once; tests only read it."""
    folder = tmp_path_factory.mktemp("made")
    for words in chain(folder):
        assert main(["data", *words]) == 0
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of every file, but journals (their order varies) and partial files."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".journal.jsonl") and path.name[0] != "."
    }


def test_chain_of_steps_accounts_for_each_row_and_is_reproducible(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in chain(tmp_path):
        assert main(["data", *words]) == 0
    assert contents(made) == contents(tmp_path)
    summaries = {
        str(path.relative_to(made)): json.loads(path.read_text())
        for path in made.rglob("*.summary.json")
    }
    assert len(summaries) == 9
    for account in summaries.values():
        counted = [*account["dropped"].values(), *account["failed"].values(), account["kept"]]
        assert account["lines"] == sum(counted)
        assert account["failed"] == {}
    assert summaries["pairs.summary.json"]["rows"] == 8
    hard = [line.row["mean"] for line in JsonLines(made / "hard.jsonl")]
    assert all(mean < 1 for mean in hard)
    good = list(read_episodes(made / "good/episodes.jsonl"))
    assert 0 < len(good) < 2 * len(hard)
    assert all(each.metrics["accuracy"] == each.metrics["zoomed"] == 1.0 for each in good)
    assert len(list(JsonLines(made / "chat/zoom.jsonl"))) == len(good)
    for name in ("judge", "bench"):  # the loader of the benchmark reads them
        source = ARMBench(made / name)
        assert len(source) == summaries[f"{name}/fine_grained_perception.summary.json"]["rows"]
        assert not source.problems
        assert source[0].images[0].size == (1152, 1152)
    said = capsys.readouterr()
    assert "dropped: accuracy: wrong" in said.out
    assert "rows in" in said.out


def test_step_done_again_works_on_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = chain(tmp_path, samples=2)[:2]
    for words in steps:
        assert main(["data", *words]) == 0
    journal = tmp_path / "pairs.journal.jsonl"
    before = journal.read_bytes()
    words = steps[1]
    assert main(["data", *words]) == 0
    assert journal.read_bytes() == before
    assert main(["data", *words, "--seed", "1"]) == 1
    assert "was written with negatives" in capsys.readouterr().err


def test_step_that_was_killed_continues(tmp_path: Path) -> None:
    """Check that a run after SIGKILL during the episodes ends like an uninterrupted run."""

    def words(out: str) -> list[str]:
        step = ["data", "trajectories", *ENV, "--samples", "16", "--policy", "oracle"]
        return [*step, "--concurrency", "2", "--out", str(tmp_path / out / "e.jsonl")]

    journal = tmp_path / "killed" / "e.journal.jsonl"
    run_killed(words("killed"), CurationJournal.add, calls=4)
    assert journal.read_bytes().count(b"\n") == 5  # with the header
    assert not (tmp_path / "killed" / "e.jsonl").exists()
    for out in ("killed", "whole"):
        assert main(words(out)) == 0
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    ids = [json.loads(line)["line"] for line in journal.read_bytes().splitlines()[1:]]
    assert len(ids) == len(set(ids)) == 16  # no episode was played twice
    assert len(list(read_episodes(tmp_path / "killed" / "e.jsonl"))) == 16


def test_journal_contains_data_and_policy_but_not_the_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Scored(list[Sample]):
        score = None

    found: list[Any] = []

    def run(step: Difficulty, *_: Any) -> None:
        found.append(step.settings())
        raise ZeroDivisionError

    monkeypatch.setattr(difficulty, "source_of", lambda _: Scored())
    monkeypatch.setattr(Difficulty, "run", run)

    def settings(data: str, *options: str) -> Any:
        words = [word for option in options for word in ("--policy-option", option)]
        command = ["difficulty", "ZoomVQA-v0", "--data", data, "--by", "asking", "--samples", "1"]
        with pytest.raises(ZeroDivisionError):
            main(["data", *command, *words, "--out", str(tmp_path / "hard.jsonl")])
        return found[-1]

    monkeypatch.setattr("visenv.cli.step_options.make_policy", lambda *_: ScriptedPolicy([]))
    monkeypatch.setattr("visenv.cli.step_options.env_maker", lambda *_: None)
    monkeypatch.setattr("visenv.curation.places.source_of", lambda _: Scored([]))
    begun = settings("vstar:a", "model=m", "expert_rate=0.5", "base_url=http://here/v1")
    assert begun == settings("vstar:a", "expert_rate=0.5", "model=m", "base_url=http://there/v1")
    assert begun != settings("vstar:b", "model=m", "expert_rate=0.5")
    assert begun != settings("vstar:a", "model=m", "expert_rate=0.9")


MISTAKES = {
    ("questions", *ENV, "--out", "o.jsonl"): "give the number of samples",
    ("questions", *ENV, "--samples", "0", "--out", "o.jsonl"): "--samples must be at least 1",
    ("questions", *ENV, "--places", "p", "--first", "2", "--out", "o.jsonl"): "omit --samples",
    ("questions", "ZomVQA-v0", "--samples", "1", "--out", "o.jsonl"): "Did you mean",
    ("negatives", "no.jsonl", *WRITER, "--out", "o.jsonl"): "There is no file of rows 'no.jsonl'",
    ("negatives", "no.jsonl", "--policy", "opnai", "--out", "o.jsonl"): "Did you mean 'openai'",
    ("negatives", "no.jsonl", "--out", "o.jsonl"): "The policy 'openai'",  # no model is given
    ("negatives", "no.jsonl", *WRITER, "--flaws", "cuont", "--out", "o.jsonl"): "mean 'count'",
    ("armbench", "no.jsonl", *WRITER, "--out", "x/o.jsonl"): "no track of ARMBench-VL called 'o'",
    ("dedupe", "no.jsonl", "--contrast", "2", "--out", "o.jsonl"): "contrast must be above 0",
    ("difficulty", *ENV, "--by", "asking", "--samples", "1", "--policy", "oracle", "--out", "o"): (
        "--by asking needs a data set"
    ),
}


@pytest.mark.parametrize("words", MISTAKES, ids=" ".join)
def test_mistake_gets_one_line_with_a_suggestion(
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


def test_curation_steps_have_help(capsys: pytest.CaptureFixture[str]) -> None:
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
    with pytest.raises(SystemExit):
        main(["data", "--help"])
    said = capsys.readouterr().out
    assert all(f"\n  {name} " in said for name in CURATION)
    assert "cannot be" not in said


def test_help_loads_only_the_step_and_nothing_that_draws_or_learns() -> None:
    program = (
        "import sys\n"
        "from visenv.cli import main\n"
        "from visenv.registration import MANIFESTS\n"
        "try: main(['data', 'trajectories', '--help'])\n"
        "except SystemExit: pass\n"
        "manifests = {'visenv.envs', *(path.partition(':')[0] for path in MANIFESTS)}\n"
        "print(*({*sys.modules} - manifests), sep='\\n', file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = done.stderr.splitlines()
    assert "visenv.cli.data" in loaded
    heavy = (
        *("visenv.algos.", "visenv.envs.", "visenv.policies.", "visenv.curation.difficulty."),
        *("torch.", "PIL.", "cv2.", "rapidfuzz."),
    )
    assert not [name for name in loaded if f"{name}.".startswith(heavy)]


def test_curation_steps_exist_at_the_places_of_the_table() -> None:
    assert {*CURATION} == {words[0] for words in chain(Path("x"))} | {
        "constraints",
        "distort",
        *("zoom-score", "clear", "stratify", "mags-train"),
        *("argos-draft", "argos-entities", "argos-point", "argos-overlay", "argos-traces"),
        *("argos-extract", "argos-score", "argos-verify", "argos-reformat", "argos-mix"),
    }
    for name in {*CURATION} - {"difficulty"}:  # whose name contains the way of measuring
        assert load_step(name).name == name


def test_options_of_every_step_have_a_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name in CURATION:
        with pytest.raises(SystemExit):
            main(["data", name, "--help"])
        said = re.sub(r"[│\s]+", " ", capsys.readouterr().out)
        options = re.findall(r"(?<= )--[a-z-]+(?= [A-Z{])", said.partition(" options ")[2])
        assert "--out" in options, name
        for option in options:
            assert re.search(rf"{option} (\S+ )?[A-Z][a-z]* ", said), (name, option)


OWN_STEPS = """
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from visenv.curation.journal import dropped, kept
from visenv.curation.step import CurationStep

@dataclass
class Short(CurationStep):
    name = "short"
    most: int = 3
    async def decide(self, row):
        return kept(row) if len(row["question"]) <= self.most else dropped("long")

@dataclass
class Plain:
    most: int = 3

class NoDataclass(CurationStep):
    name = "none"

@dataclass
class Twice(Short):
    rows_of: Any = None
    concurrency: int = 3
    scorer: Any = None

@dataclass
class Unfilled(Short):
    policy: Any = None
    make_env: Any = None
    images: Path = Path()
"""

WRONG_STEPS = {
    ("Plain",): "'own_steps:Plain' must be a dataclass that extends CurationStep",
    ("NoDataclass",): "'own_steps:NoDataclass' must be a dataclass that extends CurationStep",
    ("Twice",): "The step Twice has the field 'concurrency', which is an option that",
    ("Unfilled", "ZoomVQA-v0", "--policy", "oracle", "--out", "o.jsonl"): (
        "The step Unfilled has the field 'images', which `visenv data` cannot fill"
    ),
}


def test_own_step_runs_by_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own_steps.py").write_text(OWN_STEPS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    rows = [{"id": "a", "question": "Why"}, {"id": "b", "question": "Where"}]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert main(["data", "own_steps:Short", "q.jsonl", "--out", "short.jsonl"]) == 0
    assert [line.row["id"] for line in JsonLines(tmp_path / "short.jsonl")] == ["a"]
    assert main(["data", "own_steps:Short", "q.jsonl", "--most", "5", "--out", "all.jsonl"]) == 0
    assert len(list(JsonLines(tmp_path / "all.jsonl"))) == 2
    capsys.readouterr()
    for (name, *words), problem in WRONG_STEPS.items():
        assert main(["data", f"own_steps:{name}", *words]) == 1
        assert problem in capsys.readouterr().err


def test_guide_names_every_step_with_options_that_there_are() -> None:
    guide = Path(__file__).parents[3].joinpath("docs", "data.md").read_text()
    guide = guide.replace("\\\n", " ").replace("$WRITER", " ".join(WRITER))
    guide = guide.replace("$PLAYER", "--policy oracle --policy-option expert_rate=0.5")
    commands = [shlex.split(line) for line in re.findall(r"^visenv data (.+)", guide, re.MULTILINE)]
    for words in commands:
        _command("data", words)  # exits with SystemExit if the words cannot be parsed
    assert {words[0] for words in commands} == {*CURATION}


def test_judges_of_documents_play_filter_and_export_too(made: Path, tmp_path: Path) -> None:
    """Check the later steps on the agent loop of ArmDoc, and on pairs judged by zooming."""
    played, good = tmp_path / "played/e.jsonl", tmp_path / "good/e.jsonl"
    for words in (
        [
            *("trajectories", "ArmDoc-v0", "--option", "preset=tiny", "--policy", "oracle"),
            *("--samples", "2", "--out", str(played)),
        ],
        ["filter", str(played), "--out", str(good)],
        ["export", str(good), "--layout", "trl", "--out", str(tmp_path / "chat/doc.jsonl")],
        [
            *("trajectories", "ArmZoom-v0", "--data", f"armbench:{made / 'judge'}"),
            *("--policy", "random", "--samples", "3", "--out", str(tmp_path / "zoom/e.jsonl")),
        ],
    ):
        assert main(["data", *words]) == 0
    episodes = list(read_episodes(good))
    assert len(episodes) == 2
    assert all(
        call.tool.startswith("doc_page") for e in episodes for call in EventLog(e.events).tool_calls
    )
    chats = [line.row for line in JsonLines(tmp_path / "chat/doc.jsonl")]
    assert [row["messages"][-1]["role"] for row in chats] == ["assistant"] * 2
    judged = list(read_episodes(tmp_path / "zoom/e.jsonl"))
    assert [each.sample_id for each in judged] == [
        f"armbench-fine_grained_perception-seed-{place}" for place in ("0/0", "0/1", "1/0")
    ]
