from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.component("torch", "transformers")


def test_recipe_has_the_numbers_of_the_paper() -> None:
    from visenv.algos.experiment.recipe_files import read_recipe, recipe_path
    from visenv.envs.mags.curation.selection import EVALUATION_SIZES
    from visenv.makers import make_algorithm
    from visenv.scorers import Scorer

    recipe = read_recipe(recipe_path("mags_rl"), [])
    first, second = recipe.phases["stage1"], recipe.phases["stage2"]
    assert [*recipe.phases] == ["stage1", "stage2"]  # no cold start
    assert (first.steps, second.steps) == (300, 225)
    assert (first.optimization.learning_rate, second.optimization.learning_rate) == (2e-6, 5e-7)
    assert (first.rollouts.temperature, second.rollouts.temperature) == (0.9, 1.0)
    weights = [phase.algorithm_options["kl_coef"] for phase in (first, second)]
    assert weights == [0.04, 0.03]
    for phase in (first, second):
        assert phase.algorithm == "grpo"
        assert (phase.rollouts.prompts_per_step, phase.rollouts.num_generations) == (4, 16)
        algorithm: Any = make_algorithm(phase.algorithm, phase.algorithm_options)
        assert algorithm.clip_low == algorithm.clip_high == 0.2  # symmetric
    options = recipe.environments["photos"].options
    assert Scorer.parse(options["judge"]).options == {
        "model": "gpt-4o-mini",
        "base_url": "https://api.openai.com/v1",
        "key_variable": "OPENAI_API_KEY",
        "extra": None,
    }
    assert options["magnifier"].endswith("?device=cuda")
    assert recipe.evaluation.temperature == 0.01
    assert recipe.evaluation.episodes == sum(EVALUATION_SIZES.values()) == 4328


def test_tiny_recipe_compares_the_curriculum_with_controls() -> None:
    from visenv.algos.experiment.recipe_files import read_recipe, recipe_path

    recipe = read_recipe(recipe_path("mags_rl_tiny"), [])
    phases = recipe.phases
    assert phases["direct"].steps == phases["stage1"].steps + phases["stage2"].steps
    controls = [name for name, phase in phases.items() if phase.control]
    assert controls == ["direct", "filtered-sft", "rejection-sampling"]
    assert phases["rejection-sampling"].steps == phases["direct"].steps
    assert recipe.evaluation.controls == ("random_boxes", "no_crops")
