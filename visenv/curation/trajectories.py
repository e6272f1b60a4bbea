"""Generates trajectories: a stronger policy plays the environment's agent loop (section 3.2).

The output is a file of episodes (`visenv.episodes`) with images in a folder next to it:
`read_episodes` reads it, `visenv view` shows it, `TrainablePolicy.encode` turns it into training
data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
from typing_extensions import override

from visenv.curation.journal import RowOutcome, failed, kept
from visenv.curation.lines import Row
from visenv.curation.places import place_of
from visenv.curation.step import CurationStep
from visenv.episodes import episode_to_json, save_images
from visenv.policy import Policy
from visenv.rollout import Collector
from visenv.types import Sampling

SAMPLING = Sampling(max_tokens=2048)


@dataclass(eq=False)
class Trajectories(CurationStep):
    """Plays an environment with a policy, and keeps the episodes.

    An aborted episode (a service failed, or a sample could not be read) fails its row, so that the
    next run plays it again.
    """

    name: ClassVar[str] = "trajectories"
    default_tries: ClassVar[int] = 1

    make_env: Callable[[], gym.Env[Any, str]]
    policy: Policy[Any]
    folder: Path
    sampling: Sampling = SAMPLING
    label: str = ""

    def __post_init__(self) -> None:
        self._collector = Collector(self.make_env, self.policy, self.sampling)

    @override
    def settings(self) -> dict[str, Any]:
        sampling = self._collector.sampling
        return {
            "players": self.label,
            "temperature": sampling.temperature,
            "max_tokens": sampling.max_tokens,
        }

    @override
    async def decide(self, row: Row) -> RowOutcome:
        episode = await self._collector.play(place_of(row))
        if episode.status == "aborted":
            return failed("aborted", episode.end_reason)
        save_images(self.folder / "images", episode.images)
        return kept({"id": row["id"], **episode_to_json(episode)})

    @override
    def close(self) -> None:
        """Close the environments; the policy stays open."""
        self._collector.close()
