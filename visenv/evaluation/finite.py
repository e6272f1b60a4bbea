"""Refuses rewards, terms and metrics that are not finite numbers.

With a NaN, a mean would be empty and the advantages of a whole group NaN, without an error.
"""

from __future__ import annotations

import math

from visenv.errors import EpisodeError
from visenv.types import Episode

_ADVICE = "correct the term, or let the environment abort the episode"


def require_finite_reward(episode: Episode) -> None:
    """Check that the reward of an episode is finite.

    Raises:
        EpisodeError: If it is not. The message names the episode and its terms.
    """
    if not math.isfinite(episode.reward):
        raise EpisodeError(
            f"{_place(episode)} has the reward {episode.reward}, of the terms "
            f"{dict(episode.terms)}; rewards must be finite numbers: {_ADVICE}"
        )


def require_finite_values(episode: Episode) -> None:
    """Check that the reward, the terms and the metrics of an episode are finite.

    Raises:
        EpisodeError: If one of them is not. The message names the episode and the value.
    """
    for kind, values in (("term", episode.terms), ("metric", episode.metrics)):
        for name, value in values.items():
            if value is not None and not math.isfinite(value):
                raise EpisodeError(
                    f"{_place(episode)} has the value {value} of the {kind} {name!r}; terms and "
                    f"metrics must be finite numbers: {_ADVICE}"
                )
    require_finite_reward(episode)


def _place(episode: Episode) -> str:
    sample = f"sample {episode.sample_id!r}, " if episode.sample_id else ""
    return (
        f"the episode of {episode.env_id} with {sample}seed {episode.seed} (group {episode.group}, "
        f"member {episode.member})"
    )
