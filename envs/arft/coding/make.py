"""Creates ArftCoding with its samples and its reward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import gymnasium as gym

from visenv.data.open import open_data
from visenv.data.row import ONE_IMAGE
from visenv.data.source import Source
from visenv.env import Observation
from visenv.errors import ConfigurationError

from ..presets import PRESETS, TRAIN_PIXELS, ArftPreset, ArftSettings, choose
from .compat import PublishedCoding
from .env import ArftCoding
from .rewards import rewarded
from .world import PLANS, DistortedRows
from .world.plans import read_problems
from .world.questions import procedural


def make_coding(
    *,
    data: str | Source = "procedural",
    problems: Sequence[str] | None = None,
    seed: int = 0,
    **settings: Unpack[ArftSettings],
) -> gym.Env[Observation, str]:
    """Create ``visenv/ArftCoding-v0``.

    Args:
        data: ``"procedural"`` (distorted pictures in eight layouts), ``"mat_coding:<folder>"`` (the
            benchmark, or the output of ``visenv data distort``), any other data set of questions
            about one image, such as ``"textvqa:<folder>"`` or your own rows (``"rows:my.jsonl"``),
            whose images are then distorted, or a `Source` of samples that are already distorted.
        problems: The problems of the images, in equal numbers, for example ``["dark",
            "rotation90+noise"]``; by default those of the paper's training set. Not allowed for
            samples that are already distorted.
        seed: The seed of the distortions of a data set's images.
        **settings: The arguments that `ArftSettings` lists.

    Raises:
        ConfigurationError: If the value of an option is invalid.
        DataError: If the data set cannot be read.
    """
    preset, reward, compat, options = choose("visenv/ArftCoding-v0", make_coding, PRESETS, settings)
    if data == "procedural":  # small enough that details must be cropped
        preset = replace(preset, image_pixels=min(preset.image_pixels, TRAIN_PIXELS))
    made = PublishedCoding if compat else ArftCoding
    env = made(source=coding_source(data, problems, seed, preset), preset=preset, **options)
    return env if reward == "outcome" else rewarded(env, reward, compat)


def coding_source(
    data: str | Source, problems: Sequence[str] | None, seed: int, preset: ArftPreset
) -> Source:
    """Return the samples of `data`, which is a source or the name of one.

    Raises:
        ConfigurationError: If `problems` is given for samples that are already distorted.
    """
    plan = None if problems is None else dict.fromkeys(map(read_problems, problems), 1)
    if data == "procedural":
        return procedural(preset.world, plan)
    name = data.partition(":")[0] if isinstance(data, str) else ""
    if isinstance(data, str) and name != "mat_coding":
        return DistortedRows(
            open_data(data, ONE_IMAGE), PLANS["train"] if plan is None else plan, seed
        )
    if plan is not None:
        raise ConfigurationError(
            f"The images of {name or type(data).__name__} are already distorted: omit problems."
        )
    return open_data(data) if isinstance(data, str) else data
