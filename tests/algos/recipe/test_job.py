"""The main job at its smallest: real model, real environment, every phase, every file."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.programs import run_python
from visenv.errors import ConfigurationError, RunError

pytestmark = [
    pytest.mark.component("torch", "transformers", "tensorboard"),
    pytest.mark.timeout(600),
]

PHOTOS = Path(__file__).parents[3] / "examples" / "make_photo_vqa.py"
LABELS = [
    "before SFT",
    "after SFT",
    "after GRPO",
    "after GRPO, random crops",
    "more SFT instead",
]


def smallest(runs: Path, **changes: Any) -> Any:
    from visenv.algos.recipe import Train
    from visenv.algos.trainer import Rollouts

    train = Train(runs=runs, name="job", threads=1, demonstrations=4, batch_size=2, episodes=3)
    rollouts = Rollouts(groups=1, group_size=2, max_tokens=12)
    warm_up, rl = replace(train.warm_up, steps=2), replace(train.rl, steps=2, rollouts=rollouts)
    return replace(train, warm_up=warm_up, rl=rl, **changes)


def results(runs: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((runs / "job" / "results.json").read_text())
    return read


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    smallest(runs).run()
    return runs


def test_it_writes_all_it_promises(finished: Path) -> None:
    folder = finished / "job"
    for name in ("config.json", "curves.png", "report.html", "model", "rl/metrics.jsonl"):
        assert (folder / name).exists(), name
    for phase in ("warm-up", "rl", "more-sft"):
        assert list((folder / phase / "checkpoints").glob("step_*")), phase
    assert list(results(finished)["scores"]) == LABELS
    assert len(list((folder / "evaluation").glob("*.jsonl"))) == len(LABELS)
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_random_crops_are_evaluated_on_the_weights_of_rl(finished: Path) -> None:
    scores = results(finished)["scores"]
    # Two steps teach nothing: the policy never zooms, so a random crop changes nothing.
    assert scores["after GRPO, random crops"] == scores["after GRPO"]


def test_a_run_that_exists_is_refused_and_a_finished_one_resumes_to_itself(finished: Path) -> None:
    with pytest.raises(RunError, match="--resume"):
        smallest(finished).run()
    before = results(finished)
    smallest(finished, resume=True).run()
    assert results(finished) == before


def test_other_settings_are_not_resumed(finished: Path) -> None:
    with pytest.raises(RunError, match=r"seed was 0 and is 7"):
        smallest(finished, resume=True, seed=7).run()


def test_there_must_be_a_run_to_resume(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no run"):
        smallest(tmp_path, resume=True).run()


def test_after_ctrl_c_it_goes_on_to_the_same_results(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from visenv.algos.trainer.supply import Played

    play = Played.groups
    steps: list[int] = []

    def interrupted(self: Any, step: int, on_episode: Any) -> Any:
        steps.append(step)
        if len(steps) == 2:
            raise KeyboardInterrupt
        return play(self, step, on_episode)

    monkeypatch.setattr(Played, "groups", interrupted)
    with pytest.raises(KeyboardInterrupt):
        smallest(tmp_path, controls=False).run()
    smallest(tmp_path, controls=False, resume=True).run()
    assert steps == [0, 1, 1]
    expected = {label: results(finished)["scores"][label] for label in LABELS[:3]}
    assert results(tmp_path)["scores"] == expected


@pytest.mark.component("scikit-image")
def test_real_photographs_need_no_change_of_code(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    subprocess.run([sys.executable, str(PHOTOS), "--out", str(photos)], check=True)
    smallest(tmp_path, data=f"textvqa:{photos}", controls=False).run()
    scores = results(tmp_path)["scores"]
    assert list(scores) == LABELS[:3]
    assert scores["after GRPO"]["episodes"] == 3
    assert scores["after GRPO"]["hit"] is None


@pytest.mark.parametrize(
    "changes", [{"demonstrations": 0}, {"episodes": 0}, {"name": "../elsewhere"}, {"care": 2.0}]
)
def test_wrong_values_are_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        smallest(tmp_path, **changes)


@pytest.mark.component("vllm")
def test_vllm_may_sample_in_its_place(tmp_path: Path) -> None:
    words = "--name job --threads 1 --sampler vllm --no-controls --episodes 1"
    words += " --demonstrations 4 --batch-size 2 --warm-up.steps 1 --rl.steps 2"
    words += " --rl.rollouts.groups 1 --rl.rollouts.group-size 2 --rl.rollouts.max-tokens 8"
    call = f"import sys; from visenv.cli import main; sys.exit(main({['train', *words.split()]}))"
    done = run_python("-c", call, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "runs" / "job" / "rl" / "metrics.jsonl").read_text().splitlines()
    # The engine began with the checkpoint's weights and was sent those of the warm-up.
    assert [json.loads(row)["sampler/largest"] < 1e-4 for row in rows] == [True, True]
