"""The episode pool: many environments at once, none waiting for another."""

from visenv.pool.pool import EpisodePool
from visenv.pool.result import Reset, Result

__all__ = ["EpisodePool", "Reset", "Result"]
