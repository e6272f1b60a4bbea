"""Defines the action and the measure of both tasks, and registers them with habitat-lab.

A task with this action has ``skills`` (rows of verb, object and whether the object is a type),
``codes``, `candidates` and `pddl_action`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gym import spaces
from habitat.config.default_structured_configs import ActionConfig, MeasurementConfig
from habitat.core.embodied_task import Measure
from habitat.core.registry import registry
from habitat.tasks.rearrange.actions.pddl_actions import PddlApplyAction
from habitat.tasks.rearrange.multi_task.pddl_logical_expr import LogicalExprType
from hydra.core.config_store import ConfigStore

from .problem import ROBOT

VERBS = {"go_to": "nav", "pick": "pick", "put": "place", "open_up": "open", "close_up": "close"}
"""The actions of the planning domain by the verbs of House."""

CODES = {
    "nav": (),
    "pick": ("not_here", "hand_full"),
    "place": ("hand_empty", "no_receptacle", "closed", "full"),
    "open": ("not_near", "already_open", "is_on"),
    "close": ("not_near", "already_closed"),
}
"""The codes of House for the parts of each precondition in the domain of House, in their order."""


@registry.register_task_action(name="VisenvSkill")
class SkillAction(PddlApplyAction):
    """Executes one of the numbered skills as an action of the planning domain.

    A skill with a type of objects tries them in turn, and uses the first whose precondition holds.

    Attributes:
        code: `""`, or the code of the rule that forbids the last skill.
    """

    code = ""

    @property
    def action_space(self) -> spaces.Dict:
        """Return the space of the number of a skill."""
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
        """Execute a skill, or determine why it is invalid."""
        verb, name, is_type = self._task.skills[skill]
        reached = -1
        self.code = "not_here"
        for candidate in self._task.candidates(name) if is_type else [name]:
            action = self._task.pddl_action(verb, candidate)
            super().step(pddl_action=self._encoded(action, candidate))
            if not self.was_prev_action_invalid:
                self.code = ""
                return
            part = failed_part(self._prev_action.precond)
            if part > reached:
                reached, self.code = part, self._task.codes[action][part]

    def _encoded(self, action: str, name: str) -> np.ndarray:
        """Return an action in habitat-lab's form: the indices of its arguments, from 1."""
        encoded = np.zeros(sum(each.n_args for each in self._action_ordering))
        place = [each.name for each in self._action_ordering].index(action)
        start = self.get_pddl_action_start(place)
        encoded[start : start + 2] = self._numbers[name], self._numbers[ROBOT]
        return encoded


def failed_part(precondition: Any) -> int:
    """Return the index of the part of a precondition that did not hold.

    A quantifier is expanded to an OR over all objects; the object that satisfies the most parts
    determines the result.
    """
    if precondition.expr_type is LogicalExprType.OR:
        return max(failed_part(each) for each in precondition.sub_exprs)
    return int(precondition.prev_truth_vals.index(False))


@registry.register_measure(name="VisenvSkillOutcome")
class SkillOutcome(Measure):
    """Measures the code of the rule that forbids the last skill, `""` if it was valid."""

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
    """Configures `SkillAction`."""

    type: str = "VisenvSkill"


@dataclass
class SkillOutcomeConfig(MeasurementConfig):
    """Configures `SkillOutcome`."""

    type: str = "VisenvSkillOutcome"


def register_configs() -> None:
    """Register the action and the measure in habitat-lab's configurations."""
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
