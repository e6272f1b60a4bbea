"""Defines the task over a served house: its data set and habitat-lab's PDDL task."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import attr
from habitat.config import read_write
from habitat.core.dataset import Dataset, Episode
from habitat.core.registry import registry
from habitat.tasks.rearrange.multi_task.pddl_domain import PddlProblem
from habitat.tasks.rearrange.multi_task.pddl_task import PddlTask

from ...world.written import read_house
from .problem import write_problem
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
    """Represents a data set of the episode that visenv sends, one at a time."""

    def __init__(self, config: Any, episodes: list[HouseEpisode]) -> None:
        self.config = config
        self.episodes = episodes


@registry.register_task(name="VisenvHousePddl-v0")
class HousePddlTask(PddlTask):
    """Implements habitat-lab's PDDL task with a separate planning problem in each episode."""

    codes = CODES

    def __init__(self, *args: Any, config: Any, dataset: HouseDataset, **kwargs: Any) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="visenv-habitat-")
        domain, problem = self._write(dataset.episodes[0])
        with read_write(config):
            config.pddl_domain_def = str(domain)
            config.task_spec_base_path = str(problem.parent)
            config.task_spec = problem.stem
        super().__init__(*args, config=config, dataset=dataset, **kwargs)

    def reset(self, episode: HouseEpisode) -> Any:
        """Read the episode's planning problem, and return the first observations."""
        domain, problem = self._write(episode)
        self.pddl_problem = PddlProblem(str(domain), str(problem), self._config)
        self.skills = episode.skills
        return super().reset(episode)

    def pddl_action(self, verb: str, name: str) -> str:
        """Return the action of the planning domain for a verb of House."""
        return VERBS[verb]

    def candidates(self, kind: str) -> list[str]:
        """Return the objects of a type: first the one in view, then from left to right."""
        found: list[str] = self._sim.candidates(kind)
        return found

    def _write(self, episode: HouseEpisode) -> tuple[Path, Path]:
        return write_problem(Path(self._folder.name), read_house(episode.house), episode.goal)

    def _check_episode_is_active(self, *args: Any, **kwargs: Any) -> bool:
        is_reached = self.pddl_problem.is_expr_true(self.pddl_problem.goal)
        return super()._check_episode_is_active(*args, **kwargs) and not is_reached
