"""Tests the recipes of the embodied environments."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium as gym
import pytest

from tests.tiny_models import tiny_model
from visenv.grammar import ParsedTurn, ToolCall

pytestmark = pytest.mark.component("torch", "transformers")


def test_tiny_recipe_has_fair_controls_and_a_blind_one() -> None:
    from visenv.algos.experiment.recipe_files import read_recipe, recipe_path

    recipe = read_recipe(recipe_path("embodied_tiny"), [])
    assert [*recipe.phases] == ["warm-up", "rl", "filtered-sft", "rejection-sampling"]
    assert recipe.phases["filtered-sft"].as_long_as == "rl"
    assert recipe.phases["rejection-sampling"].steps == recipe.phases["rl"].steps
    assert recipe.evaluation.controls == ("no_vision",)
    house = recipe.environments["house"]
    assert house.evaluation_options["split"] == "eval"


def test_recipe_trains_on_all_three_ids() -> None:
    from visenv.algos.experiment.recipe_files import read_recipe, recipe_path

    recipe = read_recipe(recipe_path("embodied"), [])
    ids = {each.id for each in recipe.environments.values()}
    assert ids == {"visenv/House-v0", "visenv/EBAlfred-v0", "visenv/EBHabitat-v0"}
    assert recipe.evaluation.controls == ("no_vision",)


@pytest.mark.component("mujoco", "osmesa")
def test_turns_of_a_group_share_at_least_half_of_their_tokens() -> None:
    """Check eight members of six turns each; every turn repeats the whole prompt."""
    from visenv.testing.record import base_of

    with TemporaryDirectory() as folder:
        tokenizer = _tokenizer(tiny_model(Path(folder) / "model", "visenv/House-v0"))
        env = gym.make("visenv/House-v0", subset="long_horizon", n_shots=4)
        prompts = []
        for member in range(8):
            info: Any = env.reset(seed=0)[1]
            prompts.append(info["step"].messages[0].plain())
            base: Any = base_of(env)
            names = base.simulation.dialect.names
            for turn in range(5):
                index = (member * 5 + turn) % 20
                text = base.grammar.compose(_turn(index, names[index]))
                prompts.append(env.step(text)[4]["step"].messages[0].plain())
    lengths = [len(tokenizer(prompt)["input_ids"]) for prompt in prompts]
    head = prompts[0].split("\nWhat the camera sees")[0]
    shared = len(tokenizer(head)["input_ids"])
    assert all(prompt.startswith(head) for prompt in prompts)
    forwarded = shared + sum(length - shared for length in lengths)
    assert forwarded <= sum(lengths) / 2


def _tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


def _turn(index: int, name: str) -> ParsedTurn:
    return ParsedTurn("a\nb\nc", (ToolCall("act", {"action_id": index, "action_name": name}),))
