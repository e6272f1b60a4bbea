"""Tests damaged files of a finished rollout: with view, rescore, and the same command again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.files.damages import DAMAGES
from tests.faults.files.reports import names, problems
from tests.faults.outcomes import GOOD, REFUSED, SAME, SHOWN, UNUSED, Outcome
from visenv import cli
from visenv.episodes import read_episodes

KINDS = {
    "run.json": "run.json",
    "episodes.jsonl": "episodes.jsonl",
    "image of an episode": "images/*.png",
}
"""Each kind of file of a finished rollout."""

COMMANDS = ("view", "rescore", "rollout")

ROLLOUT = ("rollout", "ZoomVQA-v0", "--option", "preset=tiny", "--groups", "2", "--out")

NOT_READ = {
    *(("rescore", "run.json", damage) for damage in DAMAGES),
    *(("rollout", "image of an episode", damage) for damage in DAMAGES),  # the run has ended
}
"""Commands that do not read a file, with its kind and its damage."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rollout") / "run"
    assert cli.main([*ROLLOUT, str(folder)]) == 0
    return folder


def call(command: str, folder: Path) -> int:
    """Call a command with the folder of a rollout, and return the exit status."""
    if command == "view":
        return cli.main(["view", str(folder), "--no-open"])
    if command == "rescore":
        return cli.main(["rescore", str(folder / "episodes.jsonl")])
    return cli.main([*ROLLOUT, str(folder)])


def rewards(folder: Path) -> dict[tuple[int, int], float]:
    """Return the rewards of the episodes of a folder, by group and member."""
    episodes = read_episodes(folder / "episodes.jsonl", messages=False)
    return {(each.group, each.member): each.reward for each in episodes}


def outcome_of(
    command: str,
    kind: str,
    damage: str,
    source: Path,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> Outcome:
    """Damage a file of a copy of a rollout, call a command, and return what happened."""
    shutil.copytree(source, folder)
    path = max(folder.glob(KINDS[kind]))
    DAMAGES[damage](path)
    damaged = path.read_bytes() if path.exists() else None
    capsys.readouterr()
    status = call(command, folder)
    said = "".join(capsys.readouterr())
    fault = Outcome(f"{kind} of a finished rollout", f"{damage} ({command})", "", said[-300:])
    if "Traceback" in said:
        return fault.ended("traceback")
    if status:
        is_named = str(path) in said or f"{folder.name} holds no" in said
        return fault.ended(REFUSED if is_named else "file not named")
    if command == "view":
        return fault.ended(SHOWN if names(folder, path) else "not noticed")
    if command == "rollout" and rewards(folder) != rewards(source):
        return fault.ended("other result")
    if command == "rescore" and "equal: 2" not in said:
        return fault.ended("other result")
    still = path.read_bytes() if path.exists() else None
    return fault.ended(UNUSED if still == damaged else SAME)


FEW = [
    ("view", "run.json", "another digit", SHOWN),
    ("view", "run.json", "deleted", SHOWN),
    ("view", "episodes.jsonl", "half of the file", SHOWN),
    ("view", "episodes.jsonl", "empty", REFUSED),
    ("view", "image of an episode", "one bit", SHOWN),
    ("view", "image of an episode", "empty", SHOWN),
    ("rescore", "episodes.jsonl", "empty", REFUSED),
    ("rescore", "image of an episode", "one bit", REFUSED),
    ("rollout", "run.json", "deleted", REFUSED),
    ("rollout", "episodes.jsonl", "half of the file", SAME),
]


@pytest.mark.parametrize(("command", "kind", "damage", "result"), FEW)
def test_damaged_file_of_a_finished_rollout_is_named_or_written_again(
    command: str,
    kind: str,
    damage: str,
    result: str,
    finished: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcome = outcome_of(command, kind, damage, finished, tmp_path / "run", capsys)
    assert outcome.result == result, outcome


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_no_damaged_file_of_a_finished_rollout_is_used_silently(
    kind: str,
    finished: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    record_fault: Callable[[Outcome], None],
) -> None:
    for command in COMMANDS:
        for damage in DAMAGES:
            folder = tmp_path / f"{command} {damage}"
            outcome = outcome_of(command, kind, damage, finished, folder, capsys)
            record_fault(outcome)
            assert outcome.result in GOOD, outcome
            assert (outcome.result == UNUSED) == ((command, kind, damage) in NOT_READ), outcome


def test_report_lists_a_finished_phase_without_all_of_its_metrics(tmp_path: Path) -> None:
    from visenv.viewer import write_report

    (tmp_path / "rl").mkdir()
    (tmp_path / "rl/metrics.jsonl").write_text('{"step": 1, "reward": 0.5}\n{"step": 3, "rew')
    (tmp_path / "results.json").write_text('{"steps": {"rl": 3, "warm-up": true}}')
    write_report(tmp_path)
    assert "rl/metrics.jsonl has no metrics of 2 of 3 steps" in problems(tmp_path)
