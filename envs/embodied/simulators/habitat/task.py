"""The task over a served house: data set, task, action and measure, registered with habitat-lab."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import attr
import numpy as np
from gym import spaces
from habitat.config import read_write
from habitat.config.default_structured_configs import ActionConfig, MeasurementConfig
from habitat.core.dataset import Dataset, Episode
from habitat.core.embodied_task import Measure
from habitat.core.registry import registry
from habitat.tasks.rearrange.actions.pddl_actions import PddlApplyAction
from habitat.tasks.rearrange.multi_task.pddl_domain import PddlProblem
from habitat.tasks.rearrange.multi_task.pddl_logical_expr import LogicalExprType
from habitat.tasks.rearrange.multi_task.pddl_task import PddlTask
from hydra.core.config_store import ConfigStore

from ...world.written import read_house
from .problem import ROBOT, write_problem

VERBS = {"go_to": "nav", "pick": "pick", "put": "place", "open_up": "open", "close_up": "close"}
"""The actions of the planning domain by the verbs of House."""

CODES = {
    "nav": (),
    "pick": ("not_here", "hand_full"),
    "place": ("hand_empty", "no_receptacle", "closed", "full"),
    "open": ("not_near", "already_open", "is_on"),
    "close": ("not_near", "already_closed"),
}
"""The codes of House for the parts of each precondition, in their order."""


@attr.s(auto_attribs=True, kw_only=True)
class HouseEpisode(Episode):
    """An episode in a house.

    Attributes:
        house: The house as JSON.
        skills: Rows of verb, object and whether the object is a type.
        goal: The goal as JSON.
        targets: Empty: goals are predicates, not positions.
    """

    house: dict[str, Any] = attr.ib(factory=dict)
    skills: list[Any] = attr.ib(factory=list)
    goal: dict[str, Any] = attr.ib(factory=dict)
    targets: dict[str, Any] = attr.ib(factory=dict)


@registry.register_dataset(name="VisenvHouse-v0")
class HouseDataset(Dataset[HouseEpisode]):
    """The episodes that visenv hands over, one at a time."""

    def __init__(self, config: Any, episodes: list[HouseEpisode]) -> None:
        self.config = config
        self.episodes = episodes


@registry.register_task(name="VisenvHousePddl-v0")
class HousePddlTask(PddlTask):
    """habitat-lab's PDDL task with a planning problem of its own in each episode."""

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

    def _write(self, episode: HouseEpisode) -> tuple[Path, Path]:
        return write_problem(Path(self._folder.name), read_house(episode.house), episode.goal)

    def _check_episode_is_active(self, *args: Any, **kwargs: Any) -> bool:
        is_reached = self.pddl_problem.is_expr_true(self.pddl_problem.goal)
        return super()._check_episode_is_active(*args, **kwargs) and not is_reached


@registry.register_task_action(name="VisenvSkill")
class SkillAction(PddlApplyAction):
    """One of the numbered skills, carried out as an action of the planning domain.

    A skill that names a type of objects tries them in turn: the first one whose precondition holds
    is meant.

    Attributes:
        code: `""`, or the code of the rule that forbids the last skill.
    """

    code = ""

    @property
    def action_space(self) -> spaces.Dict:
        """The space of the number of a skill."""
        return spaces.Dict({"skill": spaces.Discrete(10_000)})

    def reset(self, *args: Any, **kwargs: Any) -> None:
        """Read the actions and entities of the episode."""
        super().reset(*args, **kwargs)
        problem = self._task.pddl_problem
        self._action_ordering = problem.get_ordered_actions()
        self._entities_list = problem.get_ordered_entities_list()
        self._numbers = {each.name: place for place, each in enumerate(self._entities_list, 1)}
        self.code = ""

    def step(self, *args: Any, skill: int, **kwargs: Any) -> None:
        """Carry out a skill, or find out why it is invalid."""
        verb, name, is_type = self._task.skills[skill]
        reached = -1
        self.code = "not_here"
        for candidate in self._sim.candidates(name) if is_type else [name]:
            super().step(pddl_action=self._encoded(VERBS[verb], candidate))
            if not self.was_prev_action_invalid:
                self.code = ""
                return
            part = failed_part(self._prev_action.precond)
            if part > reached:
                reached, self.code = part, CODES[VERBS[verb]][part]

    def _encoded(self, action: str, name: str) -> np.ndarray:
        """Return an action as habitat-lab takes it: the numbers of its arguments, from 1 on."""
        encoded = np.zeros(sum(each.n_args for each in self._action_ordering))
        place = [each.name for each in self._action_ordering].index(action)
        start = self.get_pddl_action_start(place)
        encoded[start : start + 2] = self._numbers[name], self._numbers[ROBOT]
        return encoded


def failed_part(precondition: Any) -> int:
    """Return the number of the part of a precondition that did not hold.

    A quantifier has become an OR over all objects: the one that got furthest says what is missing.
    """
    if precondition.expr_type is LogicalExprType.OR:
        return max(failed_part(each) for each in precondition.sub_exprs)
    return int(precondition.prev_truth_vals.index(False))


@registry.register_measure(name="VisenvSkillOutcome")
class SkillOutcome(Measure):
    """The code of the rule that forbids the last skill, `""` if it was valid."""

    cls_uuid = "skill_outcome"

    @staticmethod
    def _get_uuid(*args: Any, **kwargs: Any) -> str:
        return SkillOutcome.cls_uuid

    def reset_metric(self, *args: Any, **kwargs: Any) -> None:
        """Begin an episode."""
        self._metric = ""

    def update_metric(self, *args: Any, task: Any, **kwargs: Any) -> None:
        """Read the last skill."""
        self._metric = task.actions["skill"].code


@dataclass
class SkillConfig(ActionConfig):
    """The configuration of `SkillAction`."""

    type: str = "VisenvSkill"


@dataclass
class SkillOutcomeConfig(MeasurementConfig):
    """The configuration of `SkillOutcome`."""

    type: str = "VisenvSkillOutcome"


def register_configs() -> None:
    """Give the action and the measure names in habitat-lab's configurations."""
    store = ConfigStore.instance()
    store.store(
        package="habitat.task.actions.skill",
        group="habitat/task/actions",
        name="visenv_skill",
        node=SkillConfig,
    )
    store.store(
        package="habitat.task.measurements.skill_outcome",
        group="habitat/task/measurements",
        name="visenv_skill_outcome",
        node=SkillOutcomeConfig,
    )
