"""Assigns credit to the turns of an episode: by episode, by turn or by state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from visenv.types import Episode, Group, Message

from .advantage import Floats, Scale, group_relative

Credit = Literal["episode", "turn", "state"]


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
