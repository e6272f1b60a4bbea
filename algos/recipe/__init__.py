"""The main job: warm a model up on oracle episodes, train it with RL, compare, report."""

from .config import Train

__all__ = ["Train"]
