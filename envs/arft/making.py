"""Making ArftCoding: its samples and its reward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import gymnasium as gym

from visenv.data.distortions import PLANS, DistortedRows
from visenv.data.distortions.plans import read_problems
from visenv.data.distortions.questions import procedural
from visenv.data.open import open_data
from visenv.data.source import Source
from visenv.env import Observation
from visenv.errors import ConfigurationError

from .coding import ArftCoding
from .coding_rewards import rewarded
from .published_coding import PublishedCoding
from .settings import Settings, choose
from .stages import STAGES, TRAIN_PIXELS, Stage


def coding_source(
    data: str | Source, problems: Sequence[str] | None, seed: int, stage: Stage
) -> Source:
    """The samples that `data` is or names.

    Raises:
        ConfigurationError: If `problems` are named for samples that are distorted already.
    """
    plan = None if problems is None else dict.fromkeys(map(read_problems, problems), 1)
    if data == "procedural":
        return procedural(stage.world, plan)
    name = data.partition(":")[0] if isinstance(data, str) else ""
    if isinstance(data, str) and name != "mat_coding":
        return DistortedRows(open_data(data), PLANS["train"] if plan is None else plan, seed)
    if plan is not None:
        raise ConfigurationError(
            f"The images of {name or type(data).__name__} are distorted already: leave out "
            "problems."
        )
    return open_data(data) if isinstance(data, str) else data


def make(
    data: str | Source, problems: Sequence[str] | None, seed: int, settings: Settings
) -> gym.Env[Observation, str]:
    """The environment with its reward; see `visenv.envs.arft.make_coding`."""
    stage, reward, compat, options = choose("visenv/ArftCoding-v0", STAGES, settings)
    if data == "procedural":  # crops have to be needed
        stage = replace(stage, image_pixels=min(stage.image_pixels, TRAIN_PIXELS))
    made = PublishedCoding if compat else ArftCoding
    env = made(source=coding_source(data, problems, seed, stage), stage=stage, **options)
    return env if reward == "outcome" else rewarded(env, reward, compat)
