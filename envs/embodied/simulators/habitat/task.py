"""Defines the task over a served house: its data set and habitat-lab's PDDL task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attr
from habitat.core.dataset import Dataset, Episode
from habitat.core.registry import registry
from typing_extensions import override

from ...world.written import read_house
from .problem import write_problem
from .problem_task import ProblemTask
from .skills import CODES, VERBS


@attr.s(auto_attribs=True, kw_only=True)
class HouseEpisode(Episode):
    """Represents an episode in a house.

    Attributes:
        house: The house as JSON.
        skills: Rows of verb, object and whether the object is a type.
        goal: The goal as JSON.
        targets: An empty list, because goals are predicates and not positions.
    """

    house: dict[str, Any] = attr.ib(factory=dict)
    skills: list[Any] = attr.ib(factory=list)
    goal: dict[str, Any] = attr.ib(factory=dict)
    targets: dict[str, Any] = attr.ib(factory=dict)


@registry.register_dataset(name="VisenvHouse-v0")
class HouseDataset(Dataset[HouseEpisode]):
    """Represents a data set whose only episode is the one that visenv sends."""

    def __init__(self, config: Any, episodes: list[HouseEpisode]) -> None:
        self.config = config
        self.episodes = episodes


@registry.register_task(name="VisenvHousePddl-v0")
class HousePddlTask(ProblemTask):
    """Implements habitat-lab's PDDL task with a separate planning problem in each episode."""

    codes = CODES

    def reset(self, episode: HouseEpisode) -> Any:
        """Read the episode's planning problem, and return the first observations."""
        self.read_problem(*self.write_first(episode))
        self.skills = episode.skills
        return super().reset(episode)

    def pddl_action(self, verb: str, name: str) -> str:
        """Return the action of the planning domain for a verb of House."""
        return VERBS[verb]

    def candidates(self, kind: str) -> list[str]:
        """Return the objects of a type: first the one in view, then from left to right."""
        found: list[str] = self._sim.candidates(kind)
        return found

    @override
    def write_first(self, episode: HouseEpisode) -> tuple[Path, Path]:
        """Write the planning problem of an episode; return the files of domain and problem."""
        return write_problem(self.folder, read_house(episode.house), episode.goal)
