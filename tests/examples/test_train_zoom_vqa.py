"""Groundlight's recipe: the paper's numbers, its data, and that the small one runs and goes on."""

from __future__ import annotations

import json
import subprocess
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from PIL import Image

from tests.algos.runs import metrics
from tests.programs import load_program, run_python

pytestmark = pytest.mark.component("torch", "transformers", "tensorboard")

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_zoom_vqa.py"

SHORT = [
    "--warm-up.demonstrations=4",
    "--warm-up.batch-size=2",
    "--warm-up.trainer.steps=1",
    "--trainer.steps=2",
    "--trainer.rollouts.groups=1",
    "--trainer.rollouts.group-size=2",
    "--trainer.rollouts.max-tokens=8",
]


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return load_program("examples/train_zoom_vqa.py")


def test_the_defaults_are_the_paper_s(example: ModuleType) -> None:
    settings = example.ZoomVQA()
    assert settings.model == "Qwen/Qwen2.5-VL-3B-Instruct"
    assert settings.warm_up.demonstrations == 0  # GRPO alone
    trainer, told = settings.trainer, settings.trainer.optimisation
    # "We train for 800 steps … completion length of 2048 … limit the rollouts to 3 … the global
    # batch size is set to 4"
    assert trainer.steps == 800
    rollouts = trainer.rollouts
    assert (rollouts.groups, rollouts.group_size, rollouts.max_tokens) == (4, 3, 2048)
    assert rollouts.temperature == 1.0
    # "Adam with β2 = 0.98, a cosine learning rate at 1e-6 with 10 warm-up steps, a maximum grad
    # norm of 1.0"
    assert (told.learning_rate, told.schedule, told.warmup_steps) == (1e-6, "cosine", 10)
    assert (told.beta1, told.beta2, told.weight_decay) == (0.9, 0.98, 0.0)
    assert told.max_grad_norm == 1.0
    assert (told.passes, told.minibatches) == (1, 1)
    # "no KL regularization and a clip-higher strategy" with 0.2 and 0.28
    grpo = settings.grpo
    assert (grpo.clip_low, grpo.clip_high, grpo.kl_weight) == (0.2, 0.28, 0.0)
    assert grpo.scale == "group"
    assert grpo.needs_reference is False


def _textvqa(folder: Path) -> Path:
    """Three rows of TextVQA in its official layout."""
    rows = []
    for number in range(3):
        path = folder / "train_images" / f"image{number}.jpg"
        path.parent.mkdir(exist_ok=True)
        Image.new("RGB", (1600, 800), (40 * number, 90, 90)).save(path)
        rows.append(
            {
                "question": f"What does sign {number} say?",
                "image_id": f"image{number}",
                "question_id": number,
                "answers": ["stop"] * 10,
            }
        )
    told = {"dataset_type": "train", "dataset_name": "textvqa", "data": rows}
    (folder / "TextVQA_0.5.1_train.json").write_text(json.dumps(told))
    return folder


def _env(example: ModuleType, settings: Any) -> Any:
    run = example.Run.__new__(example.Run)  # its environment alone, without a model
    run.settings = settings
    return run._env_maker()()


def test_a_data_set_is_played_as_the_paper_does(example: ModuleType, tmp_path: Path) -> None:
    settings = replace(example.ZoomVQA(), data=f"textvqa:{_textvqa(tmp_path)}")
    env = _env(example, settings)
    base = env.unwrapped
    assert base.tool_calls == 1
    assert (base.preset.view_side, base.preset.crop_source, base.preset.crop_side) == (
        1024,
        "view",
        400,
    )
    _, info = env.reset(seed=0)
    shown = base.store.images["input_image"]
    assert shown.size == (1024, 512)
    assert len(base.source) == 3
    while info["step"].request is not None:
        _, reward, terminated, _, info = env.step("<think> x </think><answer>stop</answer>")
    assert terminated
    # 0.5 vqa + 0.5 soft + 1 format + 0.1 tool: all but the tool
    assert reward == pytest.approx(2.0)


def test_training_is_on_the_hard_rows_alone(example: ModuleType, tmp_path: Path) -> None:
    hard = tmp_path / "hard.jsonl"
    rows = [{"id": f"row{index}", "index": index, "mean": 0.2} for index in (0, 2)]
    hard.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = replace(example.ZoomVQA(), data=f"textvqa:{_textvqa(tmp_path)}", hard=hard)
    source = _env(example, settings).unwrapped.source
    assert [source[index].question for index in range(len(source))] == [
        "What does sign 0 say?",
        "What does sign 2 say?",
    ]


def test_the_small_one_differs_in_size_alone(example: ModuleType) -> None:
    changed = {
        each.name
        for each in fields(example.ZoomVQA)
        if getattr(example.TINY, each.name) != getattr(example.ZoomVQA(), each.name)
    }
    sizes = {"folder", "model", "preset", "engine", "device", "dtype", "gradient_checkpointing"}
    assert changed == sizes | {"warm_up", "trainer"}


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(EXAMPLE), "--tiny", "--folder", str(folder), *SHORT, *words]
    return run_python(*command, cwd=folder.parent)


def test_it_runs_says_so_and_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "zoom"
    done = _run(folder)
    assert done.returncode == 0, done.stderr
    assert "first 1 steps: reward" in done.stdout
    assert f"visenv view {folder}" in done.stdout
    rows = metrics(folder / "rl")
    assert [row["step"] for row in rows] == [1, 2]
    weights = folder / "rl" / "checkpoints" / "step_000002" / "policy"
    assert str(weights) in done.stdout
    assert (weights / "model.safetensors").exists()
    again = _run(folder)  # all of it is done
    assert again.returncode == 0, again.stderr
    assert metrics(folder / "rl") == rows


@pytest.mark.component("vllm")
@pytest.mark.timeout(600)
def test_it_samples_with_vllm(tmp_path: Path) -> None:
    done = _run(tmp_path / "zoom", "--sampler", "vllm")
    assert done.returncode == 0, done.stderr
    rows = metrics(tmp_path / "zoom" / "rl")
    assert [row["step"] for row in rows] == [1, 2]
    # The engine was sent the weights of the warm-up: it and the trainer agree but for rounding.
    assert max(row["sampler/largest"] for row in rows) < 1e-4
