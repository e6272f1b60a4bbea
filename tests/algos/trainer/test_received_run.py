"""Tests that a run that somebody sent, and that is continued, gives an error and no traceback."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.algos import toy
from tests.algos.runs import Sloped
from tests.environments import few
from visenv.algos.experiment.results import Results
from visenv.algos.trainer import RolloutConfig, SavingConfig, Trainer, TrainerConfig
from visenv.checksums import sealed
from visenv.errors import RunError

pytestmark = [
    pytest.mark.attack("decoders: rows cannot end or stop the process"),
    pytest.mark.component("torch"),
]

STATE = "checkpoints/step_000001/state.json"
CONTENTS = [b" ", b"{", b"[]", b"7", b"[" * 100_000, b"\xff\xfe\x00", b"null"]


def train(folder: Path, steps: int) -> None:
    config = TrainerConfig(
        steps=steps,
        rollouts=RolloutConfig(prompts_per_step=1, num_generations=2, max_tokens=3),
        saving=SavingConfig(checkpoint_every=1),
    )
    trainer = Trainer(toy.ToyPolicy(), Sloped(), config, folder=folder, resume=steps > 1)
    trainer.train(toy.Echo)


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sent")
    train(folder, 1)
    return folder


@pytest.mark.parametrize("name", [STATE, "journal/run.json"])
@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: repr(content[:4]))
def test_damaged_settings_are_an_error(
    name: str, content: bytes, sent: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(sent, tmp_path / "run")
    (folder / name).write_bytes(content)
    with pytest.raises(RunError, match=name.partition("/")[0]):
        train(folder, 2)


@pytest.mark.parametrize("content", few(CONTENTS, 3), ids=lambda content: repr(content[:4]))
def test_damaged_metrics_are_restored(
    content: bytes, sent: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(sent, tmp_path / "run")
    before = (sent / "metrics.jsonl").read_text()
    (folder / "metrics.jsonl").write_bytes(content + b"\n")  # a complete line
    train(folder, 2)
    assert (folder / "metrics.jsonl").read_text().startswith(before)
    assert "of 1 of 1 steps" in capsys.readouterr().err


def changes(name: str, *values: Any) -> list[dict[str, Any]]:
    return [{name: value} for value in values]


@pytest.mark.parametrize(
    "change",
    [
        *changes("step", None, "x", [], 1e999),
        *changes("norms", None, 5, ["x"], [None]),
        *changes("samples", None, [], {"rows": 5}, {"rows": {}, "rates": []}),
        *changes("identity", None, [], "x"),
        {"policy_version": None},
    ],
    ids=str,
)
def test_checkpoint_with_other_values_is_an_error(
    change: dict[str, Any], sent: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(sent, tmp_path / "run")
    state = json.loads((folder / STATE).read_text()) | change
    (folder / STATE).write_text(json.dumps(state))
    with pytest.raises(RunError, match="its fields differ from its checksum"):
        train(folder, 2)
    (folder / STATE).write_text(json.dumps(sealed(state)))  # whoever made it wrote a checksum, too
    with pytest.raises(RunError, match="checkpoint"):
        train(folder, 2)


def test_pipe_in_place_of_settings_is_an_error(sent: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(sent, tmp_path / "run")
    (folder / STATE).unlink()
    os.mkfifo(folder / STATE)
    with pytest.raises(RunError, match="a named pipe"):
        train(folder, 2)


@pytest.mark.parametrize(
    "content",
    [*CONTENTS, b'{"scores": 5}', b'{"steps": [1]}'],
    ids=lambda content: repr(content[:9]),
)
def test_damaged_results_are_an_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_bytes(content)
    with pytest.raises(RunError, match="holds no results"):
        Results(tmp_path / "results.json")
