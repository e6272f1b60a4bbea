"""Creates tasks, which are instructions with goals, from a seed."""

from .generate import HouseTask, TaskOptions, actions_of, make_task, next_action
from .specs import MIXES, SUBSETS, TASKS

__all__ = ["MIXES", "SUBSETS", "TASKS", "HouseTask", "TaskOptions", "actions_of", "make_task",
           "next_action"]  # fmt: skip
