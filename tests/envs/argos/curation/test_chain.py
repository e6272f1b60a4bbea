"""Tests the chain from samples to training data, from the command line and without a model.

Writers are scripted and teachers are exact, so that the kept rows follow from the world.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from tests.environments import few
from visenv.cli import main
from visenv.curation.lines import JsonLines
from visenv.episodes import read_episodes
from visenv.grammar.points import PointsGrammar, read_references

pytestmark = pytest.mark.component("opencv")

TRIES = 3
SAMPLES = {"ArgosImage-v0": 8, "ArgosVideo-v0": 4}
TEACHER = ["--policy", "visenv.envs.argos.curation:ScriptedTeacher"]
SCRIPTED = "rules:visenv.envs.argos.curation.scripted"


def chain(folder: Path, env_id: str) -> list[list[str]]:
    """Return the commands of all steps; in the traces, some answers and some points are wrong."""

    def path(name: str) -> str:
        return str(folder / name)

    env = [env_id, "--option", "preset=default"]
    careless = [*TEACHER, "--policy-option", "expert_rate=0.6", "--policy-option", "miss=0.5"]
    read = {name: ["--scorer", f"{SCRIPTED}:write_{name}"] for name in ("entities", "extraction")}
    return [
        ["draft", *env, "--samples", str(SAMPLES[env_id]), *TEACHER, "--out", path("1/d.jsonl")],
        ["entities", path("1/d.jsonl"), *read["entities"], "--out", path("e.jsonl")],
        [
            *("point", *env, "--places", path("e.jsonl"), "--pointing-model", "oracle"),
            *("--out", path("p.jsonl")),
        ],
        ["overlay", path("p.jsonl"), "--out", path("2/o.jsonl")],
        [
            *("traces", *env, "--places", path("2/o.jsonl"), *careless, "--tries", str(TRIES)),
            *("--out", path("t.jsonl")),
        ],
        ["extract", path("t.jsonl"), *read["extraction"], "--out", path("x.jsonl")],
        ["score", *env, "--places", path("x.jsonl"), "--out", path("3/s.jsonl")],
        ["verify", path("3/s.jsonl"), "--out", path("4/v.jsonl")],
        ["reformat", path("4/v.jsonl"), "--out", path("5/r.jsonl")],
        [
            "mix",
            path("5/r.jsonl"),
            "--keep",
            "sft",
            "--rl-share",
            "0.3",
            "--out",
            path("5/m.jsonl"),
        ],
        ["export", path("5/m.jsonl"), "--out", path("6/chat.jsonl")],
    ]


def run(steps: list[list[str]]) -> None:
    for name, *rest in steps:
        assert main(["data", name if name == "export" else f"argos-{name}", *rest]) == 0


@pytest.fixture(scope="module", params=few(list(SAMPLES), 1))
def made(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Run a chain; return the id of its environment and its folder."""
    folder = tmp_path_factory.mktemp("made")
    run(chain(folder, request.param))
    return request.param, folder


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of all files except the journals, whose lines are in completion order."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".journal.jsonl") and path.name[0] != "."
    }


# --------------------------------------------------------------------- expectations from the world

CITED = re.compile(r"(\w+ \w+) at \((\d+), (\d+)\)(?: in \[F(\d+) )?")


def share_of_hits(truth: Any, trace: str) -> float:
    """Return the share of points in a trace whose pixel shows an object of the stated name."""
    hits = []
    for label, x, y, frame in dict.fromkeys(CITED.findall(trace)):
        number = int(frame or 1) - 1
        owner = int(truth.owners(number)[int(y), int(x)])
        hits.append(owner >= 0 and truth.frames[number][owner].name == label)
    return float(np.mean(hits))


def expected_best(env_id: str, rows: list[dict[str, Any]]) -> list[str]:
    """Return the ids of the expected rollouts: the first best one of each sample.

    A right answer scores 1, as does the conclusion that implies it. The grounding is the share of
    hits. For a video, it is the mean of the share of hits and the score of the spans, which is 1
    because the spans are those of the events.
    """
    env = gym.make(f"visenv/{env_id}", preset="default")
    best: dict[str, tuple[float, str]] = {}
    for row in rows:
        env.reset(seed=row["seed"])
        base: Any = env.unwrapped
        said = row["trace"].partition("<answer>")[2].removesuffix("</answer>")
        if said != base.sample.answers[0]:
            continue
        hits = share_of_hits(base.sample.ground_truth, row["trace"])
        grounding = (hits + 1) / 2 if base.times() else hits
        score = (1 + grounding + 1) / 3
        if score >= 0.7 and score > best.get(row["sample"], (0.0, ""))[0]:
            best[row["sample"]] = (score, row["id"])
    env.close()
    return [identity for _, identity in best.values()]


def test_kept_share_is_the_one_that_the_world_implies(made: tuple[str, Path]) -> None:
    env_id, folder = made
    rows = [line.row for line in JsonLines(folder / "t.jsonl")]
    assert len(rows) == SAMPLES[env_id] * TRIES
    expected = expected_best(env_id, rows)
    kept = [line.id for line in JsonLines(folder / "4/v.jsonl")]
    assert kept == expected
    assert 0 < len(kept) < len({row["sample"] for row in rows}) or env_id == "ArgosVideo-v0"
    account = json.loads((folder / "4/v.summary.json").read_text())
    assert account["kept"] / account["lines"] == len(expected) / len(rows)


def test_rows_are_accounted_for_and_none_fails(made: tuple[str, Path]) -> None:
    summaries = [json.loads(path.read_text()) for path in made[1].rglob("*.summary.json")]
    assert len(summaries) == 11
    for account in summaries:
        assert account["failed"] == {}
        assert account["lines"] == account["kept"] + sum(account["dropped"].values())


def test_training_texts_have_tags_and_phrases_that_score_the_same(
    made: tuple[str, Path],
) -> None:
    env_id, folder = made
    env = gym.make(f"visenv/{env_id}", preset="default")
    episodes = list(read_episodes(folder / "5/r.jsonl"))
    assert episodes
    for episode in episodes:
        text = episode.turns[0].text
        assert not re.search(r"[(\[]F?\d+[, @-]", text)
        found = read_references(PointsGrammar().reasoning(text), video=env_id == "ArgosVideo-v0")
        assert found.points
        env.reset(seed=episode.seed)
        assert env.step(text)[1] == pytest.approx(episode.reward, abs=1e-12)
    env.close()
    chats = [line.row for line in JsonLines(folder / "6/chat.jsonl")]
    assert all("<point x1=" in row["messages"][-1]["content"] for row in chats)


def test_rl_gets_the_samples_that_sft_does_not(made: tuple[str, Path], tmp_path: Path) -> None:
    _, folder = made
    mix = ["mix", str(folder / "5/r.jsonl"), "--rl-share", "0.3"]
    run([[*mix, "--keep", "rl", "--out", str(tmp_path / "rl.jsonl")]])
    parts = [
        {line.row["sample_id"] for line in JsonLines(path)}
        for path in (folder / "5/m.jsonl", tmp_path / "rl.jsonl")
    ]
    assert not parts[0] & parts[1]
    assert parts[0] | parts[1] == {
        line.row["sample_id"] for line in JsonLines(folder / "5/r.jsonl")
    }


# ------------------------------------------------------------------------------------- kills


@pytest.mark.parametrize("share", [0.0, 0.45, 0.99])
def test_kill_in_any_step_changes_nothing(made: tuple[str, Path], share: float) -> None:
    """Check that each step resumes from the part of its journal that a kill leaves."""
    env_id, folder = made
    before = contents(folder)
    for words in chain(folder, env_id):
        out = Path(words[-1])
        journal = out.with_name(f"{out.stem}.journal.jsonl")
        content = journal.read_bytes()
        journal.write_bytes(content[: round(share * len(content))])
        out.unlink()
        out.with_name(f"{out.stem}.summary.json").unlink()
        run([words])
        assert len(journal.read_bytes()) == len(content)  # no row was processed twice
    assert contents(folder) == before


PROGRAM = """
import json, sys
from visenv.cli import main
for words in json.loads(sys.argv[1]):
    assert main(["data", *words]) == 0
"""


def rows_done(folder: Path) -> int:
    """Return the number of rows with an outcome, over all steps."""
    return sum(
        max(0, path.read_bytes().count(b"\n") - 1) for path in folder.rglob("*.journal.jsonl")
    )


@pytest.mark.soak
def test_killed_again_and_again_the_chain_ends_as_if_it_never_was(tmp_path: Path) -> None:
    """Check SIGKILL of the whole chain after about 5, 40 and 75 % of its rows."""
    env_id = "ArgosImage-v0"
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for folder in (killed, whole):
        folder.mkdir()
    run(chain(whole, env_id))
    words = [
        [name if name == "export" else f"argos-{name}", *rest]
        for name, *rest in chain(killed, env_id)
    ]
    command = [sys.executable, "-c", PROGRAM, json.dumps(words)]
    for share in (0.05, 0.4, 0.75):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while rows_done(killed) < share * rows_done(whole):
            assert process.poll() is None
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert rows_done(killed) < rows_done(whole)
    run(chain(killed, env_id))
    assert contents(killed) == contents(whole)
    assert rows_done(killed) == rows_done(whole)  # no row was processed twice
