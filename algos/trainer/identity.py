"""Collects and compares the settings that determine the result of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from visenv.algorithm import Algorithm

from .config import TrainerConfig
from .episode_sources import EpisodeSource

Identity = Mapping[str, Any]
"""JSON-like settings. A checkpoint can continue only a run with the same settings."""


def identify(
    config: TrainerConfig, algorithm: Algorithm, episode_source: EpisodeSource
) -> Identity:
    """Return all settings of a run except those of saving and the timeout."""
    told = asdict(config)
    for name in ("saving", "timeout"):
        del told[name]
    for name in ("sleep", "engine_restarts", "episode_retries"):
        del told["rollouts"][name]
    if config.optimization.schedule == "constant":
        del told["steps"]  # the first steps do not depend on the number of steps
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


def differences(old: Identity, new: Identity, prefix: str = "") -> list[str]:
    """Return a description of each difference between two nested mappings."""
    found: list[str] = []
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found += differences(before, after, f"{prefix}{key}.")
        elif before != after:
            found.append(f"{prefix}{key} was {before!r} and is {after!r}")
    return found
