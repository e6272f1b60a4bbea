"""Demonstrations: an oracle's episodes, as tokens of the policy that is to learn from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from visenv.errors import RunError
from visenv.policy import Policy, TrainablePolicy
from visenv.rollout import Collector, Env
from visenv.types import Episode


def play_demonstrations(
    policy: TrainablePolicy[Any],
    oracle: Policy[Any],
    make_env: Callable[[], Env],
    seeds: Sequence[int],
) -> list[Episode]:
    """Play an episode for each seed; those that did not end by themselves are left out.

    Args:
        policy: What will learn from them.
        oracle: Plays.
        make_env: Makes what is played.
        seeds: Of the resets.

    Returns:
        Episodes with segments, for `Trainer.fit`.

    Raises:
        RunError: If no episode came to its end; says why the first did not.
    """
    collector = Collector(make_env, oracle)
    played = [episode for (episode,) in collector.groups(seeds)]
    collector.close()
    whole = [episode for episode in played if episode.status == "terminated"]
    if not whole:
        reason = played[0].failure or played[0].reason
        raise RunError(f"The oracle finished no episode: {reason}")
    return [policy.encode(episode) for episode in whole]
