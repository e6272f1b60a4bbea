"""Computes the advantages of episodes and turns from their rewards.

`group_relative` and `leave_one_out` compare rewards; `by_episode`, `by_turn` and `by_state` assign
credit to the turns of an episode; `punished` and `was_cut_off` handle episodes that are too long.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from visenv.types import Episode, Group, Message

Floats = NDArray[np.float64]
Scale = Literal["group", "batch", "none"]

EPSILON = 1e-4
"""The constant that is added to the standard deviation, as in Groundlight's and TRL's code."""

Credit = Literal["episode", "turn", "state"]


def group_relative(groups: Sequence[ArrayLike], scale: Scale = "group") -> list[Floats]:
    """Return ``(r - mean) / (std + 1e-4)``, with the mean of the group.

    The divisor of the variance is n - 1. If all rewards of a group are equal, also if there is only
    one reward, its advantages are exactly 0.

    Args:
        groups: The rewards of each group of a step, one for each episode (or turn).
        scale: The standard deviation by which advantages are divided: that of the ``"group"``, that
            of the ``"batch"`` (all groups), or ``"none"``. Division by that of the group gives easy
            and hard samples more weight (Dr. GRPO, arXiv:2503.20783, section 3.1).

    Returns:
        A float64 array for each group, of the length of the group.

    Source: DeepSeekMath (arXiv:2402.03300), section 4.1.2; the 0 for equal rewards: Groundlight.
    """
    values = [np.asarray(group, np.float64) for group in groups]
    if scale == "none":
        return [_centered(each) for each in values]
    whole = np.concatenate(values) if scale == "batch" else None
    return [
        _centered(each) / (_deviation(each if whole is None else whole) + EPSILON)
        for each in values
    ]


def leave_one_out(rewards: ArrayLike) -> Floats:
    """Return ``r - mean of the other rewards``, float64 ``[episodes]``; 0 for a single reward.

    Source: RLOO (arXiv:2402.14740), section 3.2.
    """
    centered = _centered(np.asarray(rewards, np.float64))
    return centered * (len(centered) / max(len(centered) - 1, 1))


def whitened(values: Floats, counts: NDArray[np.int64]) -> Floats:
    """Return ``(v - mean) / sqrt(variance + 1e-8)``, where each value is weighted by `counts`.

    Args:
        values: float64 ``[turns]``, the values of a whole step.
        counts: int64 ``[turns]``, the number of sampled tokens with each value.

    Returns:
        float64 ``[turns]``; exactly 0 if all tokens have the same value.

    Source: REINFORCE++ (arXiv:2501.03262), section 3; the variance (divisor tokens - 1) and the
    constant 1e-8 are those of verl.
    """
    counted = values[counts > 0]
    if len(counted) == 0 or counted.min() == counted.max():
        return np.zeros(len(values))
    centered: Floats = values - np.average(values, weights=counts)
    variance = (counts * centered**2).sum() / (counts.sum() - 1)
    return centered / float(np.sqrt(variance + 1e-8))


def _centered(values: Floats) -> Floats:
    if len(values) < 2 or values.min() == values.max():
        return np.zeros(len(values))
    centered: Floats = values - values.mean()
    return centered


def _deviation(values: Floats) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def by_episode(groups: Sequence[Group], scale: Scale) -> list[list[Floats]]:
    """Return one advantage for each episode, from its whole reward, as arrays of shape ``[]``."""
    rewards = [[episode.reward for episode in group] for group in groups]
    return [[np.asarray(each) for each in given] for given in group_relative(rewards, scale)]


def by_turn(groups: Sequence[Group], scale: Scale, discount: float) -> list[list[Floats]]:
    """Return one advantage for each turn, as arrays of shape ``[turns]``.

    The returns to go of all turns of a group are normalized together. If only the last turn is
    rewarded and all episodes have the same number of turns, the result equals `by_episode`. If the
    numbers differ, longer episodes have more weight in the mean of the group.
    """
    returns = [[returns_to_go(episode, discount) for episode in group] for group in groups]
    # One array [turns of all episodes] for each group; below, it is split into [turns] of each.
    relative = group_relative([np.concatenate([*group, []]) for group in returns], scale)
    return [
        np.split(given, np.cumsum([len(each) for each in group])[:-1]) if group else []
        for given, group in zip(relative, returns, strict=True)
    ]


def by_state(
    groups: Sequence[Group], scale: Scale, discount: float, weight: float
) -> list[list[Floats]]:
    """Return the advantage of the episode plus `weight` times that of the turn, ``[turns]``.

    The advantage of a turn compares its return to go with the returns of all turns of its group in
    the same state, at any position in their episodes. The state of a turn is the last observation.
    The advantage of a turn whose state occurs only once is 0.

    Source: GiGPO (arXiv:2505.10978), equations 6 to 8.
    """
    advantages = [
        [np.full(len(episode.turns), given) for episode, given in zip(group, row, strict=True)]
        for group, row in zip(groups, by_episode(groups, scale), strict=True)
    ]
    places: defaultdict[tuple[int, tuple[Message, ...]], list[tuple[int, int]]] = defaultdict(list)
    for number, group in enumerate(groups):
        for member, episode in enumerate(group):
            for turn, taken in enumerate(episode.turns):
                places[number, taken.messages].append((member, turn))
    returns = [[returns_to_go(episode, discount) for episode in group] for group in groups]
    met = [[returns[key[0]][i][t] for i, t in found] for key, found in places.items()]
    relative = group_relative(met, scale)
    for (key, found), given in zip(places.items(), relative, strict=True):
        for (member, turn), advantage in zip(found, given, strict=True):
            advantages[key[0]][member][turn] += weight * advantage
    return advantages


def returns_to_go(episode: Episode, discount: float = 1.0) -> Floats:
    """Return ``r_t + discount · r_t+1 + discount² · r_t+2 + …`` by turn, float64 ``[turns]``."""
    returns = np.zeros(len(episode.turns))
    following = 0.0
    for place in reversed(range(len(returns))):
        following = episode.turns[place].reward + discount * following
        returns[place] = following
    return returns


def sampled_tokens(episode: Episode) -> NDArray[np.int64]:
    """Return the number of sampled tokens of each turn, int64 ``[turns]``; 0 without segments."""
    counts = np.zeros(len(episode.turns), np.int64)
    for segment in episode.segments:
        for span in segment.turns:
            counts[span.turn] = span.end - span.start
    return counts


def soft_punishment(length: int, limit: int, buffer: int) -> float:
    """Return the penalty: 0 up to ``limit - buffer`` tokens, then linear, and -1 from `limit` on.

    Source: DAPO (arXiv:2503.14476), equation 13.
    """
    return -min(max(length - (limit - buffer), 0) / buffer, 1.0)


def punished(episode: Episode, limit: int, buffer: int, penalty: float) -> Episode:
    """Return the episode with `penalty` times `soft_punishment` added to its last reward."""
    added = penalty * soft_punishment(episode.num_sampled_tokens, limit, buffer)
    if added == 0:
        return episode
    *others, last = episode.turns
    return replace(episode, turns=(*others, replace(last, reward=last.reward + added)))


def was_cut_off(episode: Episode) -> bool:
    """Return whether a limit, and not the policy, ended the episode or one of its turns."""
    lengthy = any(turn.finish_reason == "length" for turn in episode.turns)
    return episode.status == "truncated" or lengthy
