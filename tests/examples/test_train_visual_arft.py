"""Visual-ARFT's recipe: the published settings, and that the small one runs, scores and goes on."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.programs import load_program
from visenv.algos.policy_gradient.injection import GroundTruthInjectedGRPO
from visenv.algos.trainer import Trainer
from visenv.types import Episode

pytestmark = pytest.mark.component("torch", "transformers", "tensorboard")

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_visual_arft.py"

SHORT = [
    "--tiny",
    "--episodes=2",
    "--tokens=4",
    "--warm-up.demonstrations=4",
    "--warm-up.batch-size=2",
    "--warm-up.trainer.steps=1",
    "--trainer.steps=1",
    "--trainer.rollouts.groups=1",
    "--trainer.rollouts.group-size=2",
    "--trainer.rollouts.max-tokens=4",
]


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return load_program("examples/train_visual_arft.py")


@pytest.mark.parametrize(
    ("task", "steps", "reported"), [("coding", 2120, 1400), ("search", 1600, 200)]
)
def test_the_defaults_are_the_published_ones(
    example: ModuleType, task: str, steps: int, reported: int
) -> None:
    settings = example.PAPER[task]
    assert settings.task == task
    assert settings.model == "Qwen/Qwen2.5-VL-7B-Instruct"
    assert settings.warm_up.demonstrations == 0  # GRPO alone
    assert (settings.reward, settings.inject_ground_truth) == ("f1", False)
    trainer, rollouts = settings.trainer, settings.trainer.rollouts
    # 8 generations; 8 GPUs with 1 prompt each, accumulated twice
    assert (rollouts.group_size, rollouts.groups) == (8, 8 * 1 * 2)
    assert (rollouts.temperature, rollouts.max_tokens) == (1.0, 256)
    assert settings.tokens == {"coding": 1024, "search": 2048}[task]
    # 3400 rows and 10 epochs, 63 rows and 400: 3400 // 16 = 212, and 63 rows are 4 steps
    assert trainer.steps == steps == {"coding": 3400 // 16 * 10, "search": 4 * 400}[task]
    assert trainer.saving.checkpoint_every == reported
    assert trainer.saving.keep_checkpoints * reported >= steps  # the reported one stays
    told = trainer.optimisation
    assert (told.learning_rate, told.schedule, told.warmup_steps) == (1e-6, "linear", 0)
    assert (told.beta1, told.beta2, told.weight_decay) == (0.9, 0.999, 0.0)
    assert told.max_grad_norm == 1.0
    grpo = settings.grpo
    assert (grpo.kl_weight, grpo.kl_estimator, grpo.scale) == (0.04, "k3", "group")
    assert (grpo.clip_low, grpo.clip_high) == (0.2, 0.2)


def test_the_small_ones_differ_in_size_alone(example: ModuleType) -> None:
    for task in ("coding", "search"):
        small, paper = example.TINY[task], example.PAPER[task]
        changed = {
            each.name
            for each in fields(paper)
            if getattr(small, each.name) != getattr(paper, each.name)
        }
        sizes = {"folder", "model", "preset", "evaluation", "episodes", "tokens", "device", "dtype"}
        assert changed - {"option"} == sizes | {"instruct", "warm_up", "trainer"}


@pytest.mark.parametrize("task", ["coding", "search"])
def test_it_runs_scores_and_goes_on(
    example: ModuleType, task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--task", task, "--folder", str(tmp_path), *SHORT]
    example.main(words)
    said = capsys.readouterr().out
    assert "first 1 steps: reward" in said
    scores = json.loads((tmp_path / "results.json").read_text())
    baselines = ["direct", "cot"] if task == "coding" else ["direct", "cot", "rag"]
    rows = [*(f"baseline {name}" for name in baselines), "before RL", "after RL, f1 reward"]
    assert list(scores) == rows
    assert all(0 <= value <= 1 for row in scores.values() for value in row.values())
    assert {"F1 average", "EM average"} <= set(scores["before RL"])
    # A model that says four tokens to a turn never answers by itself: it is told, and counts.
    assert "unanswered, counts 0" in said
    assert scores["before RL"]["F1 average"] == 0.0
    example.main([*words, "--reward", "em"])  # what is done stays done
    again = json.loads((tmp_path / "results.json").read_text())
    assert list(again) == [*rows, "after RL, em reward"]
    assert {name: again[name] for name in rows} == scores
    for reward in ("f1", "em"):
        assert (tmp_path / reward / "checkpoints" / "step_000001" / "policy").is_dir()


def test_the_reward_is_the_one_named(example: ModuleType, tmp_path: Path) -> None:
    """An answer that is half right pays by F1, and nothing by exact match."""
    paid = {}
    for reward in ("f1", "em"):
        run = example.Run.__new__(example.Run)  # its environment alone, without a model
        run.settings = replace(example.TINY["coding"], reward=reward)
        env = run._maker("tiny", "procedural")()
        env.reset(seed=0)
        sample = env.unwrapped.sample
        said = f"<think>x</think><answer>{sample.answers[0]} more</answer>"
        paid[reward] = env.step(said)[1]
    assert paid["f1"] > paid["em"] > 0  # the form is paid by both


def test_ground_truth_is_injected_when_asked_for_alone(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[Any] = []

    class Watched(Trainer):
        def __init__(self, policy: Any, algorithm: Any, *arguments: Any, **options: Any) -> None:
            trained.append(algorithm)

        def train(self, make_env: Any) -> list[Episode]:  # type: ignore[override]
            return []

    monkeypatch.setattr(example, "Trainer", Watched)
    monkeypatch.setattr(example, "report", lambda folder: None)
    run = example.Run.__new__(example.Run)
    run.policy, run.console = None, example.Console(quiet=True)
    for asked in (False, True):
        run.settings = replace(example.TINY["coding"], inject_ground_truth=asked)
        run._train(tmp_path)
    plain, injected = trained
    assert not isinstance(plain, GroundTruthInjectedGRPO)
    assert isinstance(injected, GroundTruthInjectedGRPO)
    assert (injected.kl_weight, injected.injected_reward) == (plain.kl_weight, 2.0)


def test_worlds_to_be_scored_on_are_others(example: ModuleType) -> None:
    run = example.Run.__new__(example.Run)
    run.settings = example.TINY["search"]
    trained = run._maker("tiny", "procedural")().unwrapped.source.worlds
    scored = run._maker("tiny", run._held_out())().unwrapped.source.worlds
    assert not set(range(*trained)) & set(range(*scored))
