"""From advantages of episodes to advantages of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from visenv.algorithm import Algorithm
from visenv.errors import ConfigurationError
from visenv.types import Episode, Group, Image, Segment


@dataclass(frozen=True, slots=True)
class Credited:
    """A segment with the credit of its tokens.

    Attributes:
        segment: The token stream.
        advantages: float32 ``[length]``, 0 off the loss mask.
        images: The images it names, by hash.
    """

    segment: Segment
    advantages: NDArray[np.float32]
    images: Mapping[str, Image]


def credit(algorithm: Algorithm, groups: Sequence[Group]) -> list[Credited]:
    """Every segment of the groups, with the algorithm's advantages spread over its turns.

    Raises:
        ConfigurationError: If the algorithm gives advantages of a wrong shape, or not finite ones.
    """
    advantages = algorithm.advantages(groups)
    if [len(group) for group in advantages] != [len(group) for group in groups]:
        raise ConfigurationError(
            f"{type(algorithm).__name__}.advantages must give, for each group, one array for each "
            f"of its {[len(group) for group in groups]} episodes, "
            f"got {[len(group) for group in advantages]}."
        )
    return [
        credited
        for group, given in zip(groups, advantages, strict=True)
        for episode, advantage in zip(group, given, strict=True)
        for credited in _credit_episode(algorithm, episode, np.asarray(advantage))
    ]


def _credit_episode(
    algorithm: Algorithm, episode: Episode, advantage: NDArray[np.float64]
) -> list[Credited]:
    turns = len(episode.turns)
    if advantage.shape not in ((), (turns,)) or not np.isfinite(advantage).all():
        raise ConfigurationError(
            f"{type(algorithm).__name__}.advantages must give finite numbers of shape [] or "
            f"[{turns}] for an episode of {turns} turns, got {advantage!r} for one of reward "
            f"{episode.reward}."
        )
    by_turn = np.broadcast_to(advantage, (turns,))
    images = {image.sha256: image for image in episode.images}
    return [Credited(segment, _by_token(segment, by_turn), images) for segment in episode.segments]


def _by_token(segment: Segment, by_turn: NDArray[np.float64]) -> NDArray[np.float32]:
    advantages = np.zeros(len(segment), np.float32)
    for span in segment.turns:
        advantages[span.start : span.end] = by_turn[span.turn]
    return advantages
