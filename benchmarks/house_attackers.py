"""Defines players with less or more knowledge than a policy, which show what a task requires.

`play_blind` has all text and the goal, but no image: it knows the type of the object, but cannot
distinguish the object from look-alikes. It tries them in turn, puts wrong ones back, and continues
until a limit is reached. `play_sighted` also reads the rendered ids of the objects in front of it,
and their looks. `play_without_feedback` takes the actions of a plan without knowing which ones
fail. These players are not policies to train.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from visenv.envs.embodied.ground_truth import HouseTruth
from visenv.envs.embodied.simulation import HouseSimulation
from visenv.envs.embodied.world.goals import Clause, Fact, Goal, with_target
from visenv.envs.embodied.world.tasks import next_action

LIMIT, INVALID = 30, 10
"""The limits of actions and of invalid actions."""

_SIDE = 224


class _Player:
    """Takes actions within the limits of an episode."""

    def __init__(self, truth: HouseTruth) -> None:
        self.simulation = HouseSimulation(truth)
        self.truth = truth
        self.invalid = 0

    @property
    def is_over(self) -> bool:
        """Return whether the goal or a limit is reached."""
        simulation = self.simulation
        return simulation.succeeded or simulation.steps >= LIMIT or self.invalid >= INVALID

    def take(self, ids: list[int]) -> None:
        """Take actions until one fails or the episode is over."""
        for index in ids:
            if self.is_over:
                return
            ok, _ = self.simulation.act(index)
            self.invalid += not ok
            if not ok:
                return

    def pursue(self, goal: Goal) -> None:
        """Plan for a goal, and act."""
        simulation = self.simulation
        self.take(next_action(simulation.dialect, simulation.state, goal))

    def put_back(self, item: str) -> None:
        """Return an object to its first place, as far as the limits allow."""
        fixture = self.simulation.house.places[item][0]
        self.pursue(_at(item, fixture))


def _at(item: str, fixture: str) -> Goal:
    """Return the goal that an object is in or on a fixture."""
    return Goal((Clause("exists", ((item,),), (Fact("in", ("?0", fixture)),)),))


def _candidates(truth: HouseTruth, rng: np.random.Generator) -> Iterator[str]:
    """Yield the objects of the right type, in random order."""
    everything = [*truth.targets, *truth.others]
    for place in rng.permutation(len(everything)).tolist():
        yield everything[place]


def play_blind(truth: HouseTruth, seed: int) -> bool:
    """Play a task without images; return whether it succeeded.

    Args:
        truth: The task, which must have look-alikes, as in the subsets spatial and
            visual_appearance.
        seed: The seed of the order in which candidates are tried.
    """
    player = _Player(truth)
    for item in _candidates(truth, np.random.default_rng((truth.seed, seed))):
        player.pursue(with_target(truth.goal, truth.targets, item))
        if player.is_over:
            break
        player.put_back(item)
    return player.simulation.succeeded


def play_sighted(truth: HouseTruth, seed: int) -> bool:
    """Play a task with the rendered ids of the objects in front of the player.

    The player looks at the candidates one by one, and takes the first that is visible and matches.
    """
    player = _Player(truth)
    simulation = player.simulation
    for item in _candidates(truth, np.random.default_rng((truth.seed, seed))):
        place = item if truth.dialect == "alfred" else simulation.house.places[item][0]
        player.take([simulation.dialect.id_by_object("go_to", place)])
        seen = simulation.renderer.visible(simulation.state, _SIDE, pixels=4)
        fitting = [name for name in truth.targets if name in seen]
        if fitting:
            player.pursue(with_target(truth.goal, truth.targets, fitting[0]))
            break
    return simulation.succeeded


def play_without_feedback(truth: HouseTruth, seed: int) -> bool:
    """Execute a plan that was made for a house with open doors, ignoring failed actions."""
    player = _Player(truth)
    simulation = player.simulation
    imagined = simulation.state.copy()
    doors = {name for name, each in simulation.house.fixtures.items() if each.type.opening}
    imagined.open = set(doors)
    for index in next_action(simulation.dialect, imagined, truth.goal):
        player.take([index])
    return simulation.succeeded
