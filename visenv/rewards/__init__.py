"""Rewards: the wrapper that pays named terms, and pure functions that score answers."""

from visenv.rewards.terms import RewardContext, RewardTerm, of_log
from visenv.rewards.wrapper import RewardWrapper

__all__ = ["RewardContext", "RewardTerm", "RewardWrapper", "of_log"]
