"""Tests damaged files of finished runs: with view, rescore, and the same command again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.faults.files.damages import DAMAGES
from visenv import cli

KINDS = {
    "settings of a rollout": "run.json",
    "episodes of a rollout": "episodes.jsonl",
    "image of a rollout": "images/*.png",
}
"""Each kind of file of a finished rollout."""

COMMANDS = ("view", "rescore", "rollout")

ROLLOUT = ["rollout", "ArmIF-v0", "--groups", "2"]
IMAGES = ["rollout", "ZoomVQA-v0", "--option", "preset=tiny", "--groups", "2"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rollout") / "run"
    assert cli.main([*IMAGES, "--out", str(folder)]) == 0
    return folder


def run(command: str, folder: Path) -> int:
    """Run a command on the folder of a rollout, and return the exit status."""
    if command == "view":
        return cli.main(["view", str(folder), "--no-open"])
    if command == "rescore":
        return cli.main(["rescore", str(folder / "episodes.jsonl")])
    return cli.main([*IMAGES, "--out", str(folder)])


def said_of(
    command: str, kind: str, damage: str, source: Path, folder: Path, capsys: object
) -> tuple[int, str, Path]:
    """Damage a file of a copy, run a command, and return its status, its output and the file."""
    shutil.copytree(source, folder)
    path = max(folder.glob(KINDS[kind]))
    DAMAGES[damage](path)
    capsys.readouterr()  # type: ignore[attr-defined]
    status = run(command, folder)
    output = capsys.readouterr()  # type: ignore[attr-defined]
    return status, output.out + output.err, path


def problems_of(folder: Path) -> str:
    """Return the problems that the report of a folder lists."""
    return (folder / "report.html").read_text()


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_command_names_a_damaged_file_of_a_finished_rollout(
    command: str,
    kind: str,
    damage: str,
    finished: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, said, path = said_of(command, kind, damage, finished, tmp_path / "run", capsys)
    assert "Traceback" not in said
    if status:
        assert path.name in said or path.parent.name in said
        return
    if command == "view":
        # A report shows what can be read, and lists the rest.
        page = problems_of(tmp_path / "run")
        assert path.name in page or damage in ("one bit", "deleted", "empty")
    elif command == "rescore":
        assert kind == "settings of a rollout" or "equal: 2" not in said or damage == "one bit"
    else:
        before = {
            (each["group"], each["member"]): each["reward"]
            for each in map(json.loads, (finished / "episodes.jsonl").open())
        }
        after = {
            (each["group"], each["member"]): each["reward"]
            for each in map(json.loads, (tmp_path / "run/episodes.jsonl").open())
        }
        assert after == before
