"""Makes cells and a tiny task for the tests of comparisons."""

from __future__ import annotations

from visenv.algos.comparison.cells import Accuracy, ComparisonCell, CurvePoint

TASK = """
[environments.scenes]
id = "visenv/ZoomVQA-v0"
options = { preset = "tiny" }
[model]
name = "tiny"
tokenizer_episodes = 2
[phases.warm-up]
algorithm = "sft"
steps = 2
demonstrations = { episodes = 2, teacher = "looks_beside", batch_size = 2 }
[phases.rl]
algorithm = "dapo"
steps = 2
rollouts = { prompts_per_step = 1, num_generations = 2, max_tokens = 8 }
[phases.filtered-sft]
algorithm = "sft"
control = true
begins_with = "warm-up"
as_long_as = "rl"
demonstrations = { episodes = 8, teacher = "looks_beside", min_reward = 2.0, batch_size = 2 }
[evaluation]
episodes = 1
max_tokens = 8
"""
"""A recipe with two steps of each phase."""


def make_cell(
    algorithm: str = "grpo",
    task: str = "zoom_vqa",
    seed: int = 0,
    greedy: float = 0.5,
    settings: str = "a",
) -> ComparisonCell:
    """Return a cell with some scores."""
    return ComparisonCell(
        algorithm=algorithm,
        task=task,
        ability="where to look",
        seed=seed,
        num_generations=None,
        settings=settings,
        metric="accuracy",
        held_out_episodes=4,
        teacher=Accuracy(0.4, 0.4),
        warm_up=Accuracy(0.3, 0.2),
        final=Accuracy(greedy, greedy / 2),
        curve=(CurvePoint(0, 0.0, 0.25), CurvePoint(16, 3.0, greedy)),
        warm_up_steps=10,
        warm_up_seconds=5.0,
        steps=2,
        episodes=16,
        seconds=3.0,
        threads=1,
        provenance={"commit": None},
    )
