"""Collects the demonstrations of a phase of SFT from files, a player or the policy itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from visenv.episodes import read_episodes
from visenv.errors import RunError
from visenv.policy import TrainablePolicy
from visenv.rollout import Collector, EpisodeSpec
from visenv.seeding import seeds
from visenv.types import Episode, Sampling

from ..sft import play_demonstrations
from ..trainer.distributed import DistributedContext
from ..trainer.episode_sources.samples import SampleOrder
from .parts import evaluation_placement, make_executor, make_player, training_mixture
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
    policy: TrainablePolicy[Any],
    recipe: Recipe,
    phase: Phase,
    processes: DistributedContext | None = None,
) -> list[Episode]:
    """Return the demonstrations of a phase, encoded for the policy.

    Args:
        policy: The policy at the start of the phase.
        recipe: The recipe that contains the phase.
        phase: The phase of SFT.
        processes: The processes of the run, which share the episodes of a player.

    Raises:
        RunError: If no demonstration has a reward of `DemonstrationConfig.min_reward`, or all have
            the same reward and `top_share` is below 1.
    """
    told = phase.demonstrations
    found = [
        policy.encode(episode)
        for file in told.files
        for episode in read_episodes(file, required=True)
    ]
    if told.episodes:
        found += _of_player(policy, recipe, phase, processes)
    if told.samples_of:
        found += _of_policy(policy, recipe, told.samples_of)
    if told.min_reward is not None:
        found = [episode for episode in found if episode.reward >= told.min_reward]
        if not found:
            raise RunError(f"No demonstration has a reward of at least {told.min_reward}.")
    return best_of(found, told.top_share) if found and told.top_share < 1 else found


def best_of(episodes: Sequence[Episode], share: float) -> list[Episode]:
    """Return a share of the episodes: those with the highest rewards, in their order.

    Episodes with the lowest reward of all are left out, even if fewer than the share remain.

    Args:
        episodes: The episodes, at least one.
        share: The share, above 0 and at most 1.

    Raises:
        RunError: If all episodes have the same reward.
    """
    lowest = min(episode.reward for episode in episodes)
    most = max(1, round(share * len(episodes)))
    by_reward = sorted(range(len(episodes)), key=lambda place: -episodes[place].reward)
    best = [place for place in by_reward[:most] if episodes[place].reward > lowest]
    if not best:
        raise RunError(
            f"All {len(episodes)} demonstrations have the reward {lowest:.3g}, so none of them is "
            "better than the others. Play more episodes, give a reward with partial credit, or "
            "override `VisEnv.oracle_turn`."
        )
    return [episodes[place] for place in sorted(best)]


def length_warnings(demonstrations: Sequence[Episode], recipe: Recipe) -> Iterator[str]:
    """Yield a warning for each phase of RL in which the policy cannot write a demonstrated turn.

    Args:
        demonstrations: Encoded episodes.
        recipe: The recipe with the phases of RL.
    """
    segments = [segment for episode in demonstrations for segment in episode.segments]
    turns = [span.end - span.start for segment in segments for span in segment.turns]
    longest = max(turns, default=0)
    for name, phase in recipe.phases.items():
        if not phase.is_sft and longest > phase.rollouts.max_tokens:
            yield (
                f"A demonstrated turn has {longest} tokens, but phases.{name}.rollouts.max_tokens "
                f"is {phase.rollouts.max_tokens}, so sampled turns are cut. Set it, and "
                f"evaluation.max_tokens, to at least {longest}."
            )


def _of_player(
    policy: TrainablePolicy[Any],
    recipe: Recipe,
    phase: Phase,
    processes: DistributedContext | None,
) -> list[Episode]:
    told = phase.demonstrations
    stream = np.random.SeedSequence(recipe.seed, spawn_key=(_DEMONSTRATIONS,))
    mixture = training_mixture(recipe, phase)
    chosen = seeds(stream, told.episodes)
    return play_demonstrations(
        policy, make_player(told), mixture, chosen, evaluation_placement(recipe), processes
    )


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
        Collector(
            mixture,
            policy,
            sampling,
            rollouts.concurrency,
            executor=make_executor(recipe),
            deterministic=True,
        )
    ) as collector:
        episodes = collector.episodes(specs)
    return [episode for episode in episodes if episode.status != "aborted"]
