"""Rewards: the wrapper that pays named terms, and pure scorers of answers."""

from visenv.rewards.wrapper import RewardTerm, RewardWrapper

__all__ = ["RewardTerm", "RewardWrapper"]
