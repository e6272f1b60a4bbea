"""Tests the smallest main job: a real model, a real environment, all phases and all files."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.environments import IDS, VARIANTS, few
from tests.packages import python_path
from tests.programs import ROOT, run_python
from visenv.cli import main
from visenv.errors import ConfigurationError, DivergedError, RunError, UnknownNameError

pytestmark = [
    pytest.mark.usefixtures("no_curves"),
    pytest.mark.component("torch", "transformers", "tensorboard"),
    pytest.mark.timeout(600),
]

PHOTOS = ROOT / "examples" / "make_photo_vqa.py"
LABELS = [
    "before training",
    "teacher",
    "after warm-up",
    "after rl",
    "after rl, random_crop",
    "filtered-sft (control)",
    "rejection-sampling (control)",
]
SMALLEST = [
    "--name", "job", "--model.options.threads", "1", "--model.tokenizer-episodes", "16",
    "--phases.warm-up.steps", "2",
    "--phases.warm-up.demonstrations.episodes", "4",
    "--phases.warm-up.demonstrations.batch-size", "2",
    "--phases.filtered-sft.demonstrations.episodes", "4",
    "--phases.rl.steps", "2",
    "--phases.rl.rollouts.prompts_per_step", "1", "--phases.rl.rollouts.num-generations", "2",
    "--phases.rl.rollouts.max-tokens", "12",
    "--phases.rejection-sampling.steps", "1",
    "--phases.rejection-sampling.rollouts.prompts_per_step", "1",
    "--phases.rejection-sampling.rollouts.num-generations", "2",
    "--phases.rejection-sampling.rollouts.max-tokens", "12",
    "--evaluation.episodes", "3", "--evaluation.max-tokens", "12",
]  # fmt: skip


def train(runs: Path, *words: str) -> None:
    """Run the smallest main job, or with `words`, with changed fields of its recipe."""
    from visenv.algos.experiment import read_recipe, recipe_path, run_recipe

    run_recipe(read_recipe(recipe_path("zoom_tiny"), [*SMALLEST, "--runs", str(runs), *words]))


def results(runs: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((runs / "job" / "results.json").read_text())
    return read


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    train(runs)
    return runs


def test_run_writes_all_it_promises(finished: Path) -> None:
    folder = finished / "job"
    for name in ("recipe.json", "training.png", "report.html", "model", "rl/metrics.jsonl"):
        assert (folder / name).exists(), name
    for phase in ("warm-up", "rl", "filtered-sft", "rejection-sampling"):
        assert list((folder / phase / "checkpoints").glob("step_*")), phase
    assert list(results(finished)["scores"]) == LABELS
    assert len(list((folder / "evaluation").glob("*/scenes.jsonl"))) == len(LABELS)
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_tokenizer_is_saved_with_the_model_and_with_each_checkpoint(finished: Path) -> None:
    folder = finished / "job"
    tokenizer = (folder / "model" / "tokenizer.json").read_bytes()
    saved = [*folder.glob("*/checkpoints/*/policy/tokenizer.json")]
    assert len(saved) == 4
    assert all(path.read_bytes() == tokenizer for path in saved)


@pytest.mark.soak
def test_tokenizer_depends_on_the_environments_and_not_on_the_seed(
    finished: Path, tmp_path: Path
) -> None:
    from visenv.algos.experiment import parts, read_recipe, recipe_path

    def built(name: str, *words: str) -> Path:
        given = [*SMALLEST, "--runs", str(tmp_path / name), *words]
        return Path(parts.model_of(read_recipe(recipe_path("zoom_tiny"), given)))

    other_seed = built("seed", "--seed", "3")
    other_rl = built("rl", "--phases.rl.options.reward", "outcome")
    other_env = built("env", "--environments.scenes.options.preset", "scenes")
    tokenizer = (finished / "job" / "model" / "tokenizer.json").read_bytes()
    found = [each / "tokenizer.json" for each in (other_seed, other_rl, other_env)]
    assert [path.read_bytes() == tokenizer for path in found] == [True, True, False]
    weights = "model.safetensors"
    first = (finished / "job" / "model" / weights).read_bytes()
    assert (other_rl / weights).read_bytes() == first != (other_seed / weights).read_bytes()


def test_run_of_an_earlier_version_lacks_new_fields_and_resumes(
    finished: Path, tmp_path: Path
) -> None:
    shutil.copytree(finished / "job", tmp_path / "job")
    path = tmp_path / "job" / "recipe.json"
    saved = json.loads(path.read_text())
    del saved["sha256"]  # of the fields of this version
    del saved["phases"]["warm-up"]["demonstrations"]["top_share"]  # has its default value
    path.write_text(json.dumps(saved))
    train(tmp_path, "--resume")
    assert "top_share" in path.read_text()
    del saved["model"]["tokenizer_episodes"]  # has another value than the default
    path.write_text(json.dumps(saved))
    with pytest.raises(RunError, match=r"model\.tokenizer_episodes was None and is 16"):
        train(tmp_path, "--resume")


def test_controls_are_evaluated_on_the_weights_of_rl(finished: Path) -> None:
    scores = results(finished)["scores"]
    # Two steps teach nothing: the policy never zooms, so a random crop changes nothing.
    assert scores["after rl, random_crop"] == scores["after rl"]


@pytest.mark.parametrize(
    ("words", "episodes"),
    [
        ([], 64),
        (["--evaluation.episodes", "8"], 8),
        (["--evaluation.every-episodes", "0"], 256),
        (["--evaluation.every-episodes", "0", "--evaluation.episodes", "8"], 8),
    ],
)
def test_evaluations_during_a_phase_play_at_most_as_many_episodes_as_the_others(
    words: list[str], episodes: int
) -> None:
    from visenv.algos.experiment import parts, read_recipe, recipe_path

    recipe = read_recipe(recipe_path("zoom_tiny"), words)
    held_out = parts.held_out(recipe, recipe.phases["rl"])
    assert held_out is not None
    assert held_out.episodes == episodes


def test_lora_rank_keeps_the_other_settings_of_lora(finished: Path) -> None:
    from visenv.algos.experiment import parts, read_recipe, recipe_path

    words = ["--model.lora-rank", "8", "--model.options.lora.alpha", "16"]
    recipe = read_recipe(recipe_path("zoom_tiny"), words)
    adapter = parts.make_policy(recipe, finished / "job" / "model", freeze_vision=False).adapter()
    assert adapter is not None
    assert (adapter.config["r"], adapter.config["lora_alpha"]) == (8, 16)


def test_sampler_is_closed_if_training_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from visenv.algos.experiment import parts
    from visenv.algos.trainer import Trainer

    class Engine:
        closed = False

        def close(self) -> None:
            self.closed = True

    def diverge(trainer: Trainer, make_env: Any) -> None:
        assert trainer.sampler is not None
        raise DivergedError("the loss is nan")

    engine = Engine()
    monkeypatch.setattr(parts, "make_sampler", lambda recipe, model: engine)
    monkeypatch.setattr(Trainer, "train", diverge)
    with pytest.raises(DivergedError):
        train(tmp_path, "--no-controls", "--phases.warm-up.steps", "1", "--evaluation.episodes=1")
    assert engine.closed


@pytest.mark.soak
def test_reference_of_a_phase_is_the_model_or_an_earlier_phase(tmp_path: Path) -> None:
    algorithm = ["--phases.rl.algorithm", "tests.algos.runs:Sloped"]
    weight = ["--phases.rl.algorithm-options.kl_coef", "1", "--phases.rl.steps", "1"]

    def divergence(name: str) -> float:
        """Return the KL from the reference `name` at the start of RL."""
        named = ["--phases.rl.reference", name]
        train(tmp_path / name, "--no-controls", *algorithm, *weight, *named)
        row: dict[str, float] = json.loads(
            (tmp_path / name / "job" / "rl" / "metrics.jsonl").read_text()
        )
        return row["kl"]

    assert divergence("warm-up") == 0  # RL starts from the weights of SFT
    assert divergence("model") > 1e-4


def test_run_that_exists_is_refused_and_a_finished_one_resumes_to_itself(finished: Path) -> None:
    with pytest.raises(RunError, match="--resume"):
        train(finished)
    before = results(finished)
    train(finished, "--resume")
    assert results(finished) == before


def test_run_with_other_settings_is_not_resumed(finished: Path) -> None:
    with pytest.raises(RunError, match=r"seed was 0 and is 7"):
        train(finished, "--resume", "--seed", "7")


def test_run_must_be_there_to_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no run"):
        train(tmp_path, "--resume")


def test_interrupted_run_continues_to_the_same_results(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from visenv.algos.trainer.episode_sources import RolloutSource

    play = RolloutSource.groups
    steps: list[int] = []

    def interrupted(self: Any, step: int, on_episode: Any) -> Any:
        steps.append(step)
        if len(steps) == 2:
            raise KeyboardInterrupt
        return play(self, step, on_episode)

    monkeypatch.setattr(RolloutSource, "groups", interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"^Stopped after step 1 of 2 with the checkpoint"):
        train(tmp_path, "--no-controls")
    train(tmp_path, "--no-controls", "--resume")
    assert steps == [0, 1, 1]
    expected = {label: results(finished)["scores"][label] for label in LABELS[:4]}
    assert results(tmp_path)["scores"] == expected


@pytest.mark.soak
def test_run_interrupted_in_an_evaluation_explains_how_to_resume(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from visenv.algos.experiment import experiment

    def interrupted(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patched:
        patched.setattr(experiment, "measure", interrupted)
        with pytest.raises(KeyboardInterrupt, match="--resume"):
            train(tmp_path, "--no-controls")
    train(tmp_path, "--no-controls", "--resume")
    expected = {label: results(finished)["scores"][label] for label in LABELS[:4]}
    assert results(tmp_path)["scores"] == expected


@pytest.mark.component("scikit-image")
@pytest.mark.soak
def test_photographs_need_no_change_of_code(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    subprocess.run([sys.executable, str(PHOTOS), "--out", str(photos)], check=True)
    train(tmp_path, "--environments.scenes.data", f"textvqa:{photos}", "--no-controls")
    scores = results(tmp_path)["scores"]
    assert list(scores) == LABELS[:4]
    score = scores["after rl"]["scenes"]["greedy"]
    assert score["episodes"] == 3
    assert "hit" not in score["metrics"]  # the photographs have no boxes


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        (["--phases.rl.algorithm", "gprp"], UnknownNameError, "Did you mean 'grpo'"),
        (["--phases.rl.algorithm_options.clip", "1"], ConfigurationError, "clip"),
        (["--environments.scenes.id", "ZomVQA-v0"], UnknownNameError, "visenv/ZoomVQA-v0"),
        (["--environments.scenes.options.presett", "tiny"], ConfigurationError, "presett"),
        (["--environments.scenes.data", "textvqa:nowhere"], Exception, "nowhere"),
        (["--evaluation.controls", "no_tol"], UnknownNameError, "no_tool"),
        (["--sampler.name", "vlm"], UnknownNameError, "vllm"),
        (["--model.name", "tiny-arm"], UnknownNameError, "Did you mean 'tiny'"),
        (["--phases.warm-up.demonstrations.files", "gone.jsonl"], ConfigurationError, "gone.jsonl"),
        (["--model.name", "/no/such/model"], Exception, "model"),
        (["--model.options.thread", "1"], ConfigurationError, "thread"),
        (["--sampler.name", "vllm", "--sampler.options.dtyp", "x"], UnknownNameError, "dtype"),
        (["--sampler.name", "oracle"], ConfigurationError, "no engine"),
        (["--evaluation.baselines", "random"], ConfigurationError, "no baseline"),
        (
            ["--evaluation.baselines", "cot", "--evaluation.baseline-options.instrct", "1"],
            ConfigurationError,
            "instrct",
        ),
        (["--trackers", "tensorbord"], UnknownNameError, "tensorboard"),
        (["--evaluation.metrics", "acuracy"], UnknownNameError, "Did you mean 'accuracy'"),
        (["--evaluation.metrics", "failed_calls"], UnknownNameError, "'failed calls'"),
        (["--callbacks", "json:JSONDecodeError"], ConfigurationError, "no subclass"),
        (["--callbacks", "tests.algos.experiment.recorder:Nothing"], ConfigurationError, "Nothing"),
        (["--phases.rl.reference", "model"], ConfigurationError, "kl_coef"),
        (["--phases.warm-up.demonstrations.teacher", "lok"], UnknownNameError, "looks_beside"),
        (
            ["--phases.warm-up.demonstrations.teacher-options.nose", "1"],
            UnknownNameError,
            "noise",
        ),
    ],
)
def test_failed_start_leaves_no_files(
    tmp_path: Path, words: list[str], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        train(tmp_path / "runs", *words)
    assert not (tmp_path / "runs" / "job").exists()


@pytest.mark.soak
def test_sigterm_leaves_a_checkpoint_and_one_sentence(tmp_path: Path) -> None:
    words = ["train", *SMALLEST, "--runs", str(tmp_path), "--phases.rl.steps", "100000"]
    call = f"import sys; from visenv.cli import main; sys.exit(main({words}))"
    log = tmp_path / "job" / "rl" / "metrics.jsonl"
    with subprocess.Popen(
        [sys.executable, "-c", call], cwd=ROOT, stderr=subprocess.PIPE, text=True,
        stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as started:  # fmt: skip
        while not (log.exists() and log.read_text()):
            assert started.poll() is None
            time.sleep(0.2)
        started.send_signal(signal.SIGTERM)
        _, said = started.communicate()
    assert started.returncode == 130
    last = said.strip().splitlines()[-1]
    assert last.startswith("visenv: Stopped after step ")
    assert "Traceback" not in said
    assert list((tmp_path / "job" / "rl" / "checkpoints").glob("step_*"))


@pytest.mark.soak
@pytest.mark.component("vllm")
def test_vllm_samples_in_place_of_the_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in python_path().items():
        monkeypatch.setenv(name, value)
    words = ["train", *SMALLEST, "--no-controls", "--sampler.name", "vllm", "--evaluation.episodes"]
    call = f"import sys; from visenv.cli import main; sys.exit(main({[*words, '1']}))"
    done = run_python("-c", call, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "runs" / "job" / "rl" / "metrics.jsonl").read_text().splitlines()
    # The engine started with the checkpoint's weights and received those of the warm-up.
    assert [json.loads(row)["sampler/largest"] < 1e-4 for row in rows] == [True, True]


# ---------------------------------------------------------------------- every environment

SHORT = """
name = "job"
[environments.task]
id = "{env}"
options = {{ preset = "tiny" }}
[model]
name = "tiny"
tokenizer_episodes = 4
options = {{ threads = 1 }}
[phases.warm-up]
algorithm = "sft"
steps = 2
demonstrations = {{ episodes = 4, batch_size = 2 }}
[phases.rl]
algorithm = "tests.algos.runs:Sloped"
steps = 1
rollouts = {{ prompts_per_step = 2, num_generations = 2, max_tokens = 16 }}
[evaluation]
episodes = 2
max_tokens = 8
"""


WARMED_UP = [
    "--model.tokenizer-episodes", "16",
    "--phases.warm-up.steps", "45",
    "--phases.warm-up.demonstrations.episodes", "12",
    "--phases.warm-up.demonstrations.batch-size", "8",
    "--phases.warm-up.demonstrations.expert-rate", "0.5",
    "--phases.warm-up.demonstrations.guess",
    "--phases.warm-up.optimization.learning-rate", "3e-3",
    "--phases.warm-up.optimization.warmup-steps", "5",
    "--phases.warm-up.optimization.beta2", "0.95",
    "--phases.rl.algorithm", "dr_grpo", "--phases.rl.steps", "2",
    "--phases.rl.optimization.learning-rate", "1e-4",
    "--phases.rl.rollouts.prompts-per-step", "4", "--phases.rl.rollouts.num-generations", "4",
    "--phases.rl.rollouts.max-tokens", "96",
]  # fmt: skip


def train_on(env: str, runs: Path, *words: str) -> Path:
    """Train a tiny model on an environment by the command, and return the folder of the run."""
    recipe = runs / "short.toml"
    recipe.write_text(SHORT.format(env=env))
    assert main(["train", str(recipe), "--runs", str(runs), *words]) == 0
    assert list(results(runs)["scores"]) == ["before training", "after warm-up", "after rl"]
    return runs / "job"


@pytest.mark.component("opencv")
@pytest.mark.parametrize("env", few(IDS, 1))
def test_train_command_trains_every_environment(env: str, tmp_path: Path) -> None:
    folder = train_on(env, tmp_path)
    assert len((folder / "rl" / "metrics.jsonl").read_text().splitlines()) == 1
    assert weights(folder, "rl", 1) != weights(folder, "warm-up", 2)


@pytest.mark.component("opencv")
@pytest.mark.parametrize("env", few(IDS, 1))
@pytest.mark.soak
def test_rewards_of_every_environment_differ_after_a_warm_up(env: str, tmp_path: Path) -> None:
    folder = train_on(env, tmp_path, *WARMED_UP)
    rows = [json.loads(line) for line in (folder / "rl" / "metrics.jsonl").read_text().splitlines()]
    assert len(rows) == 2
    assert min(row["groups/zero_std"] for row in rows) < 1  # the share of groups with equal rewards
    assert weights(folder, "rl", 2) != weights(folder, "warm-up", 45)


def weights(folder: Path, phase: str, step: int) -> bytes:
    """Return the weights of a checkpoint."""
    (path,) = (folder / phase / "checkpoints" / f"step_{step:06d}" / "policy").glob("*.safetensors")
    return path.read_bytes()


@pytest.mark.parametrize("count", few([2, None], 1))
def test_mixture_trains_on_every_environment(count: int | None, tmp_path: Path) -> None:
    """Train on a mixture of the first environments, or of all."""
    first = sorted({case for case in IDS if case not in VARIANTS} - {"visenv/ArmIF-v0"})[:count]
    ids = {*first, "visenv/ArmZoom-v0", "visenv/ArmIF-v0"}
    others = sorted(ids - {"visenv/ArmZoom-v0", "visenv/ArmIF-v0"})
    tables = {"constraints": "ArmIF-v0"} | {name.partition("/")[2]: name for name in others}
    recipe = tmp_path / "mixture.toml"
    recipe.write_text(
        SHORT.format(env="visenv/ArmZoom-v0")
        + "".join(
            f'[environments.{name}]\nid = "{env}"\noptions = {{ preset = "tiny" }}\n'
            for name, env in tables.items()
        )
    )
    words = ["--phases.rl.rollouts.prompts_per_step", "40" if count is None else "16"]
    words += ["--phases.warm-up.demonstrations.episodes", "16"]
    words += ["--phases.rl.environment-options.constraints.reward", "outcome"]
    assert main(["train", str(recipe), "--runs", str(tmp_path), *words]) == 0
    saved = (tmp_path / "job" / "rl" / "episodes" / "step_000001.jsonl").read_text().splitlines()
    episodes = [json.loads(line) for line in saved]
    assert {episode["env_id"] for episode in episodes} == ids
    assert {episode["status"] for episode in episodes} <= {"terminated", "truncated"}
    # The outcome reward has no terms.
    assert {episode["env_id"] for episode in episodes if not episode["terms"]} == {
        "visenv/ArmIF-v0"
    }
    scores = results(tmp_path)["scores"]["after rl"]
    assert list(scores) == ["task", *tables]
    assert weights(tmp_path / "job", "rl", 1) != weights(tmp_path / "job", "warm-up", 2)
