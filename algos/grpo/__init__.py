"""Group relative policy optimisation (GRPO), with what DAPO and Groundlight changed in it."""

from .algorithm import GRPO

__all__ = ["GRPO"]
