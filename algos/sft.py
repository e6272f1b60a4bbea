"""Implements supervised fine-tuning (SFT) on the turns of given episodes.

`SFT` is an `Algorithm` in which every episode has an advantage of 1. `play_demonstrations` plays
demonstrations, and encodes them for the policy that is trained on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from typing_extensions import override

from visenv.algorithm import Algorithm, Batch, Loss
from visenv.errors import RunError
from visenv.policy import Policy, TrainablePolicy
from visenv.rollout import Env, EpisodeSpec, Mixture
from visenv.types import Episode, Group

from .trainer.distributed import DistributedContext
from .trainer.episode_sources.samples import RowOrder
from .trainer.placement import Placement


@dataclass(frozen=True)
class SFT(Algorithm):
    """Minimizes the mean negative log-likelihood over the tokens of the policy in a step."""

    @override
    def advantages(self, groups: Sequence[Group]) -> list[list[NDArray[np.float64]]]:
        """Return 1 for every episode."""
        return [[np.ones(())] * len(group) for group in groups]

    @override
    def loss(self, batch: Batch) -> Loss:
        """Return ``-sum(A log p) / tokens`` with A = 1, and the mean ``entropy`` in nats."""
        zero = batch.logprobs.new_zeros(())
        logprobs, advantages, entropy = (
            torch.where(batch.mask, each, zero)
            for each in (batch.logprobs, batch.advantages, batch.entropy)
        )
        tokens = max(batch.total_tokens, 1)
        return Loss(
            -(logprobs * advantages).sum() / tokens, {"entropy": float(entropy.sum()) / tokens}
        )


def play_demonstrations(
    policy: TrainablePolicy[Any],
    player: Policy[Any],
    make_env: Callable[[], Env] | Mixture,
    seeds: Sequence[int],
    placement: Placement = Placement(),  # noqa: B008 - a tuple
    processes: DistributedContext | None = None,
) -> list[Episode]:
    """Play an episode for each seed, and leave out aborted and truncated episodes.

    A finite data set is read in epochs, each row once, in an order that depends on the first seed.

    Args:
        policy: The policy that will learn from the episodes.
        player: The policy that plays, for example the oracle or a teacher.
        make_env: A function that creates the environment, or a mixture of environments.
        seeds: The seeds of the resets, at least one.
        placement: Where environments run.
        processes: The processes of the run. Each plays its share, and all return all episodes.

    Returns:
        Episodes with segments, for `Trainer.fit`.

    Raises:
        RunError: If no episode terminated. The message contains the reason of the first one.
    """
    rank, count = (processes.rank, processes.count) if processes else (0, 1)
    with closing(placement.collector(make_env, player)) as collector:
        played = collector.episodes(_specs(collector.mixture, seeds)[rank::count])
    if processes is not None:
        shares = processes.exchange(played)
        played = [shares[place % count][place // count] for place in range(len(seeds))]
    whole = [episode for episode in played if episode.status == "terminated"]
    if not whole:
        reason = played[0].failure or played[0].reason
        raise RunError(f"The player of the demonstrations finished no episode: {reason}")
    return [policy.encode(episode) for episode in whole]


def _specs(mixture: Mixture, seeds: Sequence[int]) -> list[EpisodeSpec]:
    order, taken = RowOrder(mixture, seeds[0]), Counter[str]()
    specs: list[EpisodeSpec] = []
    for number, seed in enumerate(seeds):
        env = mixture.choose(seed)
        specs.append(EpisodeSpec(seed, number, index=order.row(env, taken[env]), env=env))
        taken[env] += 1
    return specs
