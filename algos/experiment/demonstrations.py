"""Collects the demonstrations of a phase of SFT from files, the oracle or the policy itself."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np

from visenv.episodes import read_episodes
from visenv.errors import RunError
from visenv.policy import TrainablePolicy
from visenv.registration import load
from visenv.rollout import Collector, EpisodeSpec
from visenv.seeding import seeds
from visenv.types import Episode, Sampling

from ..sft import play_demonstrations
from ..trainer.episode_sources.samples import SampleOrder
from .parts import training_mixture
from .recipe import Phase, Recipe

_DEMONSTRATIONS, _RL_PHASES = 5, 6
"""Keys of the random streams."""


def phase_seed(recipe: Recipe, name: str) -> int:
    """Return the seed of a phase; consecutive phases of RL play different samples."""
    before = 0
    ancestor = recipe.begins_with(name)
    while ancestor is not None:
        before += not recipe.phases[ancestor].is_sft
        ancestor = recipe.begins_with(ancestor)
    if not before:
        return recipe.seed
    stream = np.random.SeedSequence(recipe.seed, spawn_key=(_RL_PHASES, before))
    return seeds(stream, 1)[0]


def find_demonstrations(
    policy: TrainablePolicy[Any], recipe: Recipe, phase: Phase
) -> list[Episode]:
    """Return the demonstrations of a phase, encoded for the policy.

    Args:
        policy: The policy at the start of the phase.
        recipe: The recipe.
        phase: The phase of SFT.

    Raises:
        RunError: If no demonstration has a reward of `DemonstrationConfig.min_reward`.
    """
    told = phase.demonstrations
    found = [
        policy.encode(episode)
        for file in told.files
        for episode in read_episodes(file, required=True)
    ]
    if told.episodes:
        found += _of_oracle(policy, recipe, phase)
    if told.samples_of:
        found += _of_policy(policy, recipe, told.samples_of)
    if told.min_reward is None:
        return found
    kept = [episode for episode in found if episode.reward >= told.min_reward]
    if not kept:
        raise RunError(f"No demonstration has a reward of at least {told.min_reward}.")
    return kept


def _of_oracle(policy: TrainablePolicy[Any], recipe: Recipe, phase: Phase) -> list[Episode]:
    told = phase.demonstrations
    stream = np.random.SeedSequence(recipe.seed, spawn_key=(_DEMONSTRATIONS,))
    oracle = load("policy", "oracle")(
        expert_rate=told.expert_rate, guess=told.guess, look=told.look
    )
    mixture = training_mixture(recipe, phase)
    return play_demonstrations(policy, oracle, mixture, seeds(stream, told.episodes))


def _of_policy(policy: TrainablePolicy[Any], recipe: Recipe, name: str) -> list[Episode]:
    """Return the episodes that the policy plays on the samples of a phase of RL."""
    phase = recipe.phases[name]
    rollouts = phase.rollouts
    mixture = training_mixture(recipe, phase)
    samples = SampleOrder(mixture, rollouts.prompts_per_step, phase_seed(recipe, name))
    chosen = [
        samples.choose(step, number)
        for step in range(phase.steps)
        for number in range(rollouts.prompts_per_step)
    ]
    specs = [
        EpisodeSpec(each.seed, group, member, each.row, each.env)
        for group, each in enumerate(chosen)
        for member in range(rollouts.num_generations)
    ]
    policy.train_mode(False)
    sampling = Sampling(rollouts.temperature, rollouts.max_tokens)
    # Every process plays all episodes in the same way, because all need the same list.
    with closing(
        Collector(mixture, policy, sampling, rollouts.concurrency, deterministic=True)
    ) as collector:
        episodes = collector.episodes(specs)
    return [episode for episode in episodes if episode.status != "aborted"]
