"""Contains the wrapper that computes rewards from named terms, and functions that score answers."""

from visenv.rewards.terms import RewardContext, RewardTerm, of_log
from visenv.rewards.wrapper import RewardWrapper

__all__ = ["RewardContext", "RewardTerm", "RewardWrapper", "of_log"]
