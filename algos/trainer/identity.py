"""Collects the settings that determine the result of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from visenv.algorithm import Algorithm

from .config import TrainerConfig
from .episode_sources import EpisodeSource

Identity = Mapping[str, Any]
"""JSON-like settings. A run can be resumed with other settings only as far as `changes` allows."""


def identify(
    config: TrainerConfig, algorithm: Algorithm, episode_source: EpisodeSource
) -> Identity:
    """Return all settings of a run except those of saving and the timeout."""
    told = asdict(config)
    for name in ("saving", "timeout"):
        del told[name]
    for name in ("sleep", "engine_restarts", "episode_retries"):
        del told["rollouts"][name]
    given: Any = algorithm
    options = (
        {each.name: getattr(given, each.name) for each in fields(given)}
        if is_dataclass(given)
        else {}
    )
    return {
        "algorithm": {"name": type(algorithm).__qualname__, **options},
        "config": told,
        "episodes": {"from": type(episode_source).__name__, "in_step": episode_source.size},
        "mixture": None if episode_source.samples is None else episode_source.samples.identity,
    }
