"""Generates trajectories: a stronger policy plays the environment's agent loop (section 3.2).

The output is a file of episodes (`visenv.episodes`) with images in a folder next to it:
`read_episodes` reads it, `visenv view` shows it, `TrainablePolicy.encode` turns it into training
data.
"""

from __future__ import annotations

from collections.abc import Callable
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


class Trajectories(CurationStep):
    """Plays places, and keeps the episodes.

    An aborted episode (a service failed, or a sample could not be read) fails its row, so that the
    next run plays it again.

    Args:
        make_env: Makes one environment.
        policy: The policy that plays.
        folder: The folder of the episodes; images are written to its ``images/``.
        sampling: Sampling parameters of the policy; the seed is that of the place.
        label: Name of policy and environment in the journal.
    """

    name: ClassVar[str] = "trajectories"

    def __init__(
        self,
        make_env: Callable[[], gym.Env[Any, str]],
        policy: Policy[Any],
        folder: Path,
        sampling: Sampling | None = None,
        label: str = "",
    ) -> None:
        self._collector = Collector(make_env, policy, sampling or Sampling(max_tokens=2048))
        self._images = folder / "images"
        self._label = label

    @override
    def settings(self) -> dict[str, Any]:
        sampling = self._collector.sampling
        return {
            "players": self._label,
            "temperature": sampling.temperature,
            "max_tokens": sampling.max_tokens,
        }

    @override
    async def decide(self, row: Row) -> RowOutcome:
        episode = await self._collector.play(place_of(row))
        if episode.status == "aborted":
            return failed("aborted", episode.end_reason)
        save_images(self._images, episode.images)
        return kept({"id": row["id"], **episode_to_json(episode)})

    @override
    def close(self) -> None:
        """Close the environments; the policy stays open."""
        self._collector.close()
