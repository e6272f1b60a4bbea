"""Supplies the episodes of a step: played by the policy, played ahead, or taken from a list.

Which episodes a supply gives for a step depends on the run's seed and the step alone, so that a
resumed run needs no memory of the steps before.
"""

from .ahead import Ahead
from .base import OnEpisode, Share, Supply, random_stream, usable
from .played import Played
from .selection import Selection
from .taken import Taken

__all__ = [
    "Ahead",
    "OnEpisode",
    "Played",
    "Selection",
    "Share",
    "Supply",
    "Taken",
    "random_stream",
    "usable",
]
