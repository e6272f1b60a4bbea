"""Assigns the advantages of episodes and turns to tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from visenv.algorithm import Algorithm
from visenv.errors import ConfigurationError
from visenv.types import Episode, Group, Segment, Turn, Visual
from visenv.types.empty import EMPTY

from .metrics import advantages_by_tool


@dataclass(frozen=True, slots=True)
class TrainingSegment:
    """Holds a segment with the advantages of its tokens.

    Attributes:
        segment: The tokens, as the policy sampled them.
        advantages: float32 ``[length]``, 0 outside the loss mask.
        images: The images and videos of the segment, by hash.
        group: The number of the segment's group in the step.
        episode_tokens: The number of sampled tokens in all segments of its episode.
        old_logprobs: float32 ``[length]``, the log-probabilities that the trainer computed before
            the step, or None.
    """

    segment: Segment
    advantages: NDArray[np.float32]
    images: Mapping[str, Visual]
    group: int
    episode_tokens: int
    old_logprobs: NDArray[np.float32] | None = None


class TokenCounts(NamedTuple):
    """Holds the numbers of sampled tokens and of episodes of a group."""

    tokens: int
    episodes: int


class StepData(NamedTuple):
    """Holds the training data of one process for a step.

    Attributes:
        own: The segments of the groups of this process.
        sizes: The sizes of all groups of the step, including those of other processes.
        metrics: `advantages_by_tool` of all groups of the step.
    """

    own: list[TrainingSegment]
    sizes: list[TokenCounts]
    metrics: Mapping[str, float] = EMPTY


def credit(
    algorithm: Algorithm,
    groups: Sequence[Group],
    is_own: Callable[[Group], bool] = lambda _: True,
) -> StepData:
    """Return the advantages of the algorithm, assigned to the turns of every segment.

    Args:
        algorithm: The algorithm, which receives all groups because its baseline may depend on them.
        groups: All groups of the step.
        is_own: Whether a group belongs to this process. The images of other groups are not
            available in this process.

    Raises:
        ConfigurationError: If an advantage has a wrong shape or is not finite.
    """
    advantages = algorithm.advantages(groups)
    if [len(group) for group in advantages] != [len(group) for group in groups]:
        raise ConfigurationError(
            f"{type(algorithm).__name__}.advantages must return, for each group, an array for each "
            f"of its {[len(group) for group in groups]} episodes, "
            f"got {[len(group) for group in advantages]}."
        )
    own = [
        credited
        for number, (group, given) in enumerate(zip(groups, advantages, strict=True))
        if is_own(group)
        for episode, advantage in zip(group, given, strict=True)
        for credited in _credit_episode(algorithm, episode, np.asarray(advantage), number)
    ]
    sizes = [_size(group) for group in groups]
    return StepData(own, sizes, advantages_by_tool(groups, advantages))


def with_advantages(
    algorithm: Algorithm, groups: Sequence[Group], learned: Sequence[Group]
) -> list[Episode]:
    """Return all episodes, with advantages in the turns of the episodes that were trained on.

    Args:
        algorithm: The algorithm that computes the advantages.
        groups: The groups of a step.
        learned: The groups that were trained on, with the same episode objects.
    """
    by_episode = {
        id(episode): np.broadcast_to(np.asarray(advantage), (len(episode.turns),)).tolist()
        for group, given in zip(learned, algorithm.advantages(learned), strict=True)
        for episode, advantage in zip(group, given, strict=True)
    }
    return [
        replace(episode, turns=tuple(map(_with_advantage, episode.turns, by_episode[id(episode)])))
        if id(episode) in by_episode
        else episode
        for group in groups
        for episode in group
    ]


def _with_advantage(turn: Turn, advantage: float) -> Turn:
    return replace(turn, advantage=advantage)


def _size(group: Group) -> TokenCounts:
    return TokenCounts(sum(episode.num_sampled_tokens for episode in group), len(group))


def _credit_episode(
    algorithm: Algorithm, episode: Episode, advantage: NDArray[np.float64], group: int
) -> list[TrainingSegment]:
    turns = len(episode.turns)
    if advantage.shape not in ((), (turns,)) or not np.isfinite(advantage).all():
        raise ConfigurationError(
            f"{type(algorithm).__name__}.advantages must return finite numbers of shape [] or "
            f"[{turns}] for an episode of {turns} turns, got {advantage!r} for an episode with the "
            f"reward {episode.reward}."
        )
    by_turn = np.broadcast_to(advantage, (turns,))
    images: dict[str, Visual] = {image.sha256: image for image in episode.images}
    if any(segment.videos for segment in episode.segments):
        images |= {video.sha256: video for video in episode.videos}
    tokens = episode.num_sampled_tokens
    return [
        TrainingSegment(segment, _by_token(segment, by_turn), images, group, tokens)
        for segment in episode.segments
    ]


def _by_token(segment: Segment, by_turn: NDArray[np.float64]) -> NDArray[np.float32]:
    advantages = np.zeros(len(segment), np.float32)
    for span in segment.turns:
        advantages[span.start : span.end] = by_turn[span.turn]
    return advantages
