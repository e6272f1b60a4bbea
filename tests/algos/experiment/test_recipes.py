"""Tests the shipped recipes: the published settings, and runs of all tiny versions and examples."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from PIL import Image

from tests.environments import few
from tests.programs import ROOT, load_program
from visenv.algos.experiment import Recipe, read_recipe, read_sweep, recipe_path
from visenv.algos.experiment.parts import training_mixture
from visenv.algos.experiment.recipe import Phase
from visenv.algos.experiment.sweep import shared_by_arm
from visenv.makers import make_algorithm
from visenv.policies.transformers import TinyConfig, collect_texts
from visenv.registration import load
from visenv.rollout import Collector, EpisodeSpec

pytestmark = [
    pytest.mark.component("torch", "transformers", "tensorboard"),
    pytest.mark.timeout(600),
]

RECIPES = sorted(path.stem for path in (ROOT / "recipes").glob("*.toml"))
TINY = [name for name in RECIPES if name.endswith("tiny")]


def recipe_of(name: str, *words: str) -> Recipe:
    return read_recipe(recipe_path(name), words)


def algorithm_of(phase: Phase) -> Any:
    return make_algorithm(phase.algorithm, phase.algorithm_options)


# ---------------------------------------------------------------------- published settings


def test_groundlight_has_the_settings_of_the_paper() -> None:
    recipe = recipe_of("groundlight")
    assert recipe.model.name == "Qwen/Qwen2.5-VL-3B-Instruct"
    assert list(recipe.phases) == ["rl"]  # GRPO only
    rl = recipe.phases["rl"]
    # "We train for 800 steps … completion length of 2048 … limit the rollouts to 3 … the global
    # batch size is set to 4"
    assert rl.steps == 800
    rollouts, told = rl.rollouts, rl.optimization
    assert (rollouts.prompts_per_step, rollouts.num_generations, rollouts.max_tokens) == (
        4,
        3,
        2048,
    )
    assert rollouts.temperature == 1.0
    # "Adam with β2 = 0.98, a cosine learning rate at 1e-6 with 10 warm-up steps, a maximum grad
    # norm of 1.0"
    assert (told.learning_rate, told.schedule, told.warmup_steps) == (1e-6, "cosine", 10)
    assert (told.beta1, told.beta2, told.weight_decay) == (0.9, 0.98, 0.0)
    assert told.max_grad_norm == 1.0
    assert (told.num_epochs, told.num_minibatches) == (1, 1)
    # "no KL regularization and a clip-higher strategy" with 0.2 and 0.28
    grpo = algorithm_of(rl)
    assert (grpo.clip_low, grpo.clip_high, grpo.kl_coef) == (0.2, 0.28, 0.0)
    assert grpo.scale == "group"
    assert grpo.needs_reference is False


@pytest.mark.parametrize(
    ("task", "steps", "reported"), [("coding", 2120, 1400), ("search", 1600, 200)]
)
def test_visual_arft_has_the_published_settings(task: str, steps: int, reported: int) -> None:
    recipe = recipe_of(f"visual_arft_{task}")
    assert recipe.model.name == "Qwen/Qwen2.5-VL-7B-Instruct"
    assert list(recipe.phases) == ["rl"]  # GRPO only
    rl = recipe.phases["rl"]
    assert rl.options == {"reward": "f1"}
    # 8 generations; 8 GPUs with 1 prompt each, accumulated twice
    assert (rl.rollouts.num_generations, rl.rollouts.prompts_per_step) == (8, 8 * 1 * 2)
    assert (rl.rollouts.temperature, rl.rollouts.max_tokens) == (1.0, 256)
    assert recipe.evaluation.max_tokens == {"coding": 1024, "search": 2048}[task]
    # 10 epochs of 3400 // 16 = 212 steps, and 400 epochs of 4 steps for 63 rows
    assert rl.steps == steps == {"coding": 3400 // 16 * 10, "search": 4 * 400}[task]
    assert rl.saving.checkpoint_every == reported
    assert rl.saving.keep_checkpoints * reported >= steps  # the reported checkpoint is kept
    told = rl.optimization
    assert (told.learning_rate, told.schedule, told.warmup_steps) == (1e-6, "linear", 0)
    assert (told.beta1, told.beta2, told.weight_decay) == (0.9, 0.999, 0.0)
    grpo = algorithm_of(rl)
    assert (grpo.kl_coef, grpo.kl_estimator, grpo.scale) == (0.04, "k3", "group")
    assert (grpo.clip_low, grpo.clip_high) == (0.2, 0.2)


def test_arm_thinker_has_the_published_settings() -> None:
    recipe = recipe_of("arm_thinker")
    # 20,000 samples are about crops and 4,000 about documents.
    mixture = {each.id: each.weight for each in recipe.environments.values()}
    assert mixture == {"visenv/ArmZoom-v0": 20, "visenv/ArmDoc-v0": 4}
    assert recipe.model.name == "Qwen/Qwen2.5-VL-7B-Instruct"
    assert recipe.model.options["gradient_checkpointing"] is True
    assert recipe.sampler.name == "vllm"
    start, first, second = recipe.phases.values()
    assert start.freeze_vision is True  # the public script freezes the vision tower only in SFT
    assert (first.freeze_vision, second.freeze_vision) == (None, None)
    assert start.demonstrations.batch_size == 256
    assert start.steps == round(46_000 / 256)
    told = start.optimization
    assert (told.learning_rate, told.schedule) == (2e-5, "cosine")
    assert told.warmup_steps == start.steps // 10
    # 3 epochs of 24,000 rows, 512 in a step
    assert first.steps + second.steps == 3 * 24_000 // 512 + 1
    for stage, reward in ((first, "stage1"), (second, "stage2")):
        assert stage.options == {"reward": reward}
        assert (stage.rollouts.prompts_per_step, stage.rollouts.num_generations) == (512, 16)
        assert stage.rollouts.max_tokens == 8192
        assert (stage.optimization.learning_rate, stage.optimization.schedule) == (2e-6, "constant")
        assert stage.optimization.num_minibatches == 512 // 256
        algorithm = algorithm_of(stage)
        assert (algorithm.clip_low, algorithm.clip_high) == (0.2, 0.2)
        assert algorithm.needs_reference is False


def test_argos_has_the_numbers_of_the_paper() -> None:
    recipe = recipe_of("argos")
    sft, rl = recipe.phases["sft"], recipe.phases["rl"]
    assert (sft.steps, sft.demonstrations.batch_size) == (1000, 256)
    assert (rl.steps, rl.rollouts.prompts_per_step, rl.rollouts.num_generations) == (80, 56, 5)
    assert sft.optimization.learning_rate == rl.optimization.learning_rate == 1e-5
    assert recipe.evaluation.temperature == 0.6


SWEPT = [
    name
    for name in RECIPES
    if (ROOT / "recipes" / f"{name}.toml").read_text().count("[sweep.arms.") > 1
]


@pytest.mark.parametrize("name", SWEPT)
def test_arms_of_a_sweep_differ_and_share_equal_first_phases(name: str) -> None:
    _, runs, _ = read_sweep(recipe_path(name))
    recipes = [run.recipe for run in runs if run.recipe.seed == 0]
    told = {repr((recipe.environments, *recipe.phases.values())) for recipe in recipes}
    assert len(told) == len(recipes)
    shared = shared_by_arm(runs)
    first = recipes[0]
    expected = list(first.phases)[: int(next(iter(first.phases.values())).is_sft)]
    alike = [run for run in runs if run.recipe.environments == first.environments]
    arms = {run.arm for run in alike}
    # The studies of zoom_tiny change the first phase itself: its demonstrations.
    first_phases = {repr(next(iter(run.recipe.phases.values()))) for run in alike}
    assert not expected or (len(first_phases) > 1) == (name == "zoom_tiny")
    for run in alike:
        phases = shared[run.arm].phases if run.arm in shared else []
        assert phases == (expected if len(arms) > 1 and len(first_phases) == 1 else [])


# ---------------------------------------------------------------------- data sets


def textvqa(folder: Path) -> Path:
    """Write three rows of TextVQA in its official layout."""
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


def trained_on(recipe: Recipe) -> Any:
    (make_env,) = training_mixture(recipe, recipe.phases["rl"]).make_envs.values()
    return make_env()


def test_groundlight_plays_a_data_set_as_the_paper_does(tmp_path: Path) -> None:
    words = ("--environments.photos.data", f"textvqa:{textvqa(tmp_path)}")
    env = trained_on(recipe_of("groundlight", *words))
    base = env.unwrapped
    assert base.tool_calls == 1
    preset = base.preset
    assert (preset.view_side, preset.crop_source, preset.crop_side) == (1024, "view", 400)
    _, info = env.reset(seed=0)
    assert base.store.images["input_image"].size == (1024, 512)
    while info["step"].request is not None:
        _, reward, terminated, _, info = env.step("<think> x </think><answer>stop</answer>")
    assert terminated
    # 0.5 vqa + 0.5 soft + 1 format + 0.1 tool, of which the tool term is 0
    assert reward == pytest.approx(2.0)


def test_training_is_on_the_named_rows_alone(tmp_path: Path) -> None:
    hard = tmp_path / "hard.jsonl"
    rows = [{"id": f"row{index}", "index": index, "mean": 0.2} for index in (0, 2)]
    hard.write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = f"textvqa:{textvqa(tmp_path)}"
    prefix = "--environments.photos"
    recipe = recipe_of("groundlight", f"{prefix}.data", data, f"{prefix}.rows", str(hard))
    source = trained_on(recipe).unwrapped.source
    assert [source[index].question for index in range(len(source))] == [
        "What does sign 0 say?",
        "What does sign 2 say?",
    ]


# ---------------------------------------------------------------------- tiny models

QUICK = ["zoom_tiny", "visual_arft_search_tiny"]
TOKENIZED = [*QUICK, *sorted({*TINY} - {*QUICK, "libero_tiny"})]


@pytest.mark.parametrize("name", few(TOKENIZED, len(QUICK)))
def test_oracles_turns_fit_into_the_tokens_of_a_turn(name: str) -> None:
    from visenv.policies.transformers.tiny_tokenizer import build_tokenizer

    recipe = recipe_of(name)
    mixture = training_mixture(recipe, next(iter(recipe.phases.values())))
    tokenizer = build_tokenizer(TinyConfig().vocab_size, collect_texts(mixture, 24))
    longest = 0
    for make_env in mixture.make_envs.values():
        with closing(Collector(make_env, load("policy", "oracle")())) as collector:
            played = collector.episodes([EpisodeSpec(seed) for seed in range(12)])
        turns = [turn for episode in played for turn in episode.turns]
        said = [turn.text.removeprefix(turn.request.prefill) for turn in turns]
        longest = max(longest, *(len(tokenizer.encode(text)) for text in said))
    limits = [phase.rollouts.max_tokens for phase in recipe.phases.values() if not phase.is_sft]
    assert longest < min(*limits, recipe.evaluation.max_tokens)  # and the end of the turn


# ---------------------------------------------------------------------- runs

EXAMPLES = {
    "groundlight_tiny": ("train_zoom_vqa", []),
    "arm_thinker_tiny": ("train_arm_thinker", []),
    "mags_rl_tiny": ("train_mags_rl", []),
    "argos_tiny": ("train_argos", []),
    "visual_arft_coding_tiny": ("train_visual_arft", ["--task", "coding"]),
    "visual_arft_search_tiny": ("train_visual_arft", ["--task", "search"]),
    "libero_tiny": ("train_libero", []),
    "embodied_tiny": ("train_embodied", []),
}


def shortened(recipe: Recipe) -> Iterator[str]:
    """Yield options that make a recipe as short as possible."""
    for name, phase in recipe.phases.items():
        prefix = f"--phases.{name}"
        yield from (f"{prefix}.steps", "1")
        if phase.demonstrations.episodes:
            yield from (f"{prefix}.demonstrations.episodes", "4")
            yield from (f"{prefix}.demonstrations.batch-size", "2")
        if not phase.is_sft:
            for setting, value in (
                ("prompts-per-step", 1),
                ("num-generations", 2),
                ("max-tokens", 8),
            ):
                yield from (f"{prefix}.rollouts.{setting}", str(value))
    yield from ("--evaluation.episodes", "2", "--evaluation.max-tokens", "8")
    if recipe.model.name == "tiny":
        episodes = min(recipe.model.tokenizer_episodes, 8)
        yield from ("--model.tokenizer-episodes", str(episodes))


def test_tiny_recipes_but_the_main_job_and_an_ablation_have_an_example() -> None:
    # mags_magnifiers_tiny has the phases of mags_rl_tiny, and arm_if_tiny has no published recipe.
    assert {*EXAMPLES} == {*TINY} - {"zoom_tiny", "mags_magnifiers_tiny", "arm_if_tiny"}


LIBERO = pytest.param(
    "libero_tiny",
    marks=[pytest.mark.soak, pytest.mark.component("libero", "robosuite", "mujoco", "osmesa")],
)


FIRST = ("groundlight_tiny", "arm_thinker_tiny", "argos_tiny")  # those with few phases
OTHERS = [*FIRST, *(name for name in EXAMPLES if name not in (*FIRST, "libero_tiny"))]


@pytest.mark.parametrize("name", [*few(OTHERS, 1), LIBERO])
def test_example_runs_its_tiny_recipe(name: str, tmp_path: Path) -> None:
    program, words = EXAMPLES[name]
    example: ModuleType = load_program(f"examples/{program}.py")
    recipe = recipe_of(name)
    example.main([*words, "--tiny", *shortened(recipe), "--runs", str(tmp_path)])
    folder = tmp_path / name
    results = json.loads((folder / "results.json").read_text())
    labels = list(results["scores"])
    for phase, told in recipe.phases.items():
        assert (f"{phase} (control)" if told.control else f"after {phase}") in labels
        assert list((folder / phase / "checkpoints").glob("step_*")), phase
    baselines = [label for label in labels if label.startswith("baseline")]
    assert baselines == [f"baseline {each}" for each in recipe.evaluation.baselines]


@pytest.mark.parametrize("name", sorted({program for program, _ in EXAMPLES.values()}))
def test_training_example_has_at_most_60_lines(name: str) -> None:
    assert len((ROOT / "examples" / f"{name}.py").read_text().splitlines()) <= 60


PUBLISHED = ["groundlight", "arm_thinker", "visual_arft_coding", "visual_arft_search"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_tiny_recipe_has_the_algorithm_and_the_rewards_of_the_published_one(name: str) -> None:
    small, paper = recipe_of(f"{name}_tiny"), recipe_of(name)
    for phase, told in paper.phases.items():
        given = small.phases[phase]
        assert given.options == told.options
        assert given.algorithm == told.algorithm
        if not told.is_sft:
            assert algorithm_of(given) == algorithm_of(told)
