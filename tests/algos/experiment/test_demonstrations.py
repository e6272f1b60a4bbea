"""Tests demonstrations of a phase: filtered by reward, or sampled from the policy itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tiny_models import tiny_model
from visenv.algos.experiment import Recipe, parts, read_recipe, recipe_path
from visenv.algos.experiment.demonstrations import (
    best_of,
    find_demonstrations,
    length_warnings,
    phase_seed,
)
from visenv.algos.trainer.episode_sources.samples import SampleOrder
from visenv.errors import ConfigurationError, RunError, UnknownNameError
from visenv.rollout import Collector

pytestmark = pytest.mark.component("torch", "transformers")

WORDS = [
    "--model.options.threads", "1",
    "--phases.warm-up.demonstrations.episodes", "24",
    "--phases.rl.steps", "2", "--phases.rl.rollouts.prompts_per_step", "2",
    "--phases.rl.rollouts.num-generations", "3", "--phases.rl.rollouts.max-tokens", "4",
]  # fmt: skip


def recipe_with(**changes: Any) -> Recipe:
    """Return the main job with changed demonstrations in its warm-up."""
    recipe = read_recipe(recipe_path("zoom_tiny"), WORDS)
    phase = recipe.phases["filtered-sft"]
    told = replace(phase.demonstrations, **changes)
    phases = {**recipe.phases, "filtered-sft": replace(phase, demonstrations=told)}
    return replace(recipe, phases=phases)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Any:
    model = tiny_model(tmp_path_factory.mktemp("model") / "model")
    return parts.make_policy(recipe_with(), model, False)


def test_filter_keeps_the_episodes_with_the_reward(policy: Any) -> None:
    recipe = recipe_with(episodes=24, min_reward=None)
    every = find_demonstrations(policy, recipe, recipe.phases["filtered-sft"])
    right = [episode for episode in every if "unknown" not in episode.turns[-1].text]
    assert 0 < len(right) < 24  # in the others the teacher looked beside the sign
    recipe = recipe_with(episodes=24, min_reward=2.0)
    kept = find_demonstrations(policy, recipe, recipe.phases["filtered-sft"])
    assert kept == right


def test_options_of_the_oracle_are_refused_for_another_player() -> None:
    with pytest.raises(ConfigurationError, match=r"to the oracle.*played by the random policy"):
        recipe_with(player="random", teacher="", expert_rate=0.5)
    with pytest.raises(ConfigurationError, match=r"to the oracle.*played by a teacher"):
        recipe_with(expert_rate=0.5)
    with pytest.raises(ConfigurationError, match=r"to a teacher.*played by the oracle policy"):
        recipe_with(teacher="", strength=0.5)
    with pytest.raises(ConfigurationError, match=r"two players.*'looks_beside'.*random policy"):
        recipe_with(player="random")


def rewarded(*rewards: float) -> list[Any]:
    return [SimpleNamespace(reward=reward) for reward in rewards]


def test_top_share_keeps_the_best_in_their_order() -> None:
    played = rewarded(0.2, 1.0, 0.0, 0.6, 0.8)
    assert [each.reward for each in best_of(played, 0.4)] == [1.0, 0.8]
    assert [each.reward for each in best_of(played, 0.6)] == [1.0, 0.6, 0.8]


def test_top_share_leaves_out_the_lowest_reward() -> None:
    assert [each.reward for each in best_of(rewarded(0, 0, 1, 0), 0.75)] == [1]
    assert [each.reward for each in best_of(rewarded(*[0.0] * 99, 0.5), 0.001)] == [0.5]
    with pytest.raises(RunError, match=r"All 3 demonstrations have the reward 0\.5.*oracle_turn"):
        best_of(rewarded(0.5, 0.5, 0.5), 0.5)


def test_random_player_and_its_best_episodes_are_demonstrations(policy: Any) -> None:
    recipe = recipe_with(episodes=24, player="random", teacher="", min_reward=None)
    every = find_demonstrations(policy, recipe, recipe.phases["filtered-sft"])
    recipe = recipe_with(episodes=24, player="random", teacher="", min_reward=None, top_share=0.25)
    kept = find_demonstrations(policy, recipe, recipe.phases["filtered-sft"])
    assert 0 < len(kept) <= round(len(every) / 4)
    left = [episode for episode in every if episode not in kept]
    assert min(each.reward for each in kept) >= max(each.reward for each in left)


def test_turn_that_does_not_fit_into_max_tokens_is_reported(policy: Any) -> None:
    recipe = recipe_with(episodes=4, min_reward=None)
    found = find_demonstrations(policy, recipe, recipe.phases["filtered-sft"])
    texts = [turn.text.removeprefix(turn.request.prefill) for turn in found[0].turns]
    longest = max(len(policy.codec.vocabulary.encode(text)) + 1 for text in texts)  # and the end
    (warning,) = length_warnings(found[:1], recipe)  # rejection sampling has 28 tokens
    assert f"turn has {longest} tokens" in warning
    assert "phases.rl.rollouts.max_tokens is 4" in warning


def test_filter_that_keeps_nothing_is_reported(policy: Any) -> None:
    recipe = recipe_with(episodes=4, min_reward=9.0)
    with pytest.raises(RunError, match=r"reward of at least 9\.0"):
        find_demonstrations(policy, recipe, recipe.phases["filtered-sft"])


def test_policy_plays_the_samples_of_rl_as_often(policy: Any) -> None:
    recipe = recipe_with(episodes=0, samples_of="rl", min_reward=None)
    episodes = find_demonstrations(policy, recipe, recipe.phases["filtered-sft"])
    samples = SampleOrder(
        parts.training_mixture(recipe, recipe.phases["rl"]), 2, phase_seed(recipe, "rl")
    )
    seeds = [samples.choose(step, number).seed for step in range(2) for number in range(2)]
    assert Counter(episode.seed for episode in episodes) == dict.fromkeys(seeds, 3)
    assert all(episode.segments for episode in episodes)
    assert len({episode.turns[0].text for episode in episodes}) > 1  # sampled, not greedy


@pytest.mark.parametrize("told", [{"samples_of": "rl", "episodes": 0}, {"episodes": 4}])
def test_environments_are_closed_if_the_play_fails(
    policy: Any, monkeypatch: pytest.MonkeyPatch, told: dict[str, Any]
) -> None:
    closed: list[Collector] = []

    def fails(*_: Any) -> None:
        raise ZeroDivisionError

    def close(collector: Collector) -> None:
        closed.append(collector)

    monkeypatch.setattr(Collector, "episodes", fails)
    monkeypatch.setattr(Collector, "close", close)
    recipe = recipe_with(**told, min_reward=None)
    with pytest.raises(ZeroDivisionError):
        find_demonstrations(policy, recipe, recipe.phases["filtered-sft"])
    assert len(closed) == 1


def test_samples_are_those_of_a_phase_of_rl_before() -> None:
    with pytest.raises(ConfigurationError, match="phase of RL"):
        recipe_with(episodes=0, samples_of="warm-up")
    with pytest.raises(UnknownNameError, match="rl"):
        recipe_with(episodes=0, samples_of="rk")


@pytest.mark.parametrize("frozen", [True, False])
def test_phase_decides_whether_the_vision_tower_is_frozen(tmp_path: Path, frozen: bool) -> None:
    model = tiny_model(tmp_path / "model")
    policy: Any = parts.make_policy(recipe_with(), model, frozen)
    assert {each.requires_grad for each in policy.network.model.model.visual.parameters()} == {
        not frozen
    }


def test_oracle_reads_each_row_of_a_finite_data_set_once_in_an_epoch(policy: Any) -> None:
    from visenv.algos.sft import play_demonstrations
    from visenv.data.source import FixedSamples
    from visenv.envs.zoom_vqa import make
    from visenv.registration import load
    from visenv.worlds.scenes import ScenesWorld

    rows = FixedSamples(ScenesWorld("tiny"), range(5))
    oracle = load("policy", "oracle")()
    played = play_demonstrations(
        policy, oracle, lambda: make(preset="tiny", data=rows), seeds=range(10)
    )
    names = [episode.sample_id for episode in played]
    assert len(set(names[:5])) == len(set(names[5:])) == 5
    assert names[:5] != names[5:]  # each epoch has its own order
