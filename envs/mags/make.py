"""Creates MagsZoom with its samples, magnifier and reward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import gymnasium as gym
import numpy as np

from visenv.data.open import open_data
from visenv.data.row import ONE_IMAGE
from visenv.data.source import FixedSamples, Source
from visenv.env import Observation
from visenv.errors import ConfigurationError
from visenv.presets import check_choice, check_count, choose_preset
from visenv.rewards import RewardWrapper
from visenv.seeding import seeds

from .boxes import MOST_OVERLAP
from .env import MagsZoom
from .evidence import ZoomRule
from .magnifier.magnify import open_magnifier
from .presets import PRESETS, MagsPreset
from .rewards import Compat, RewardSettings, reward_terms, top_reward
from .tools import Boxes, Crops, ZoomSettings
from .world import MagsWorld

__all__ = ["PRESETS", "MagsPreset", "MagsZoom", "make"]

_FIXED_SAMPLES = 2_026
"""Entropy of the stream of seeds for `samples`."""


def make(
    *,
    data: str | Source = "procedural",
    preset: str = "stage2",
    reward: str | None = None,
    magnifier: str | None = None,
    judge: str = "rules",
    rethink: bool = True,
    compat: Compat = None,
    zoom_rule: ZoomRule | None = None,
    kinds: Sequence[str] | None = None,
    samples: int = 0,
    most_overlap: float | None = None,
    boxes: Boxes = "policy",
    crops: Crops = "shown",
    deterministic: bool = True,
    render_mode: str | None = None,
    on_abort: Literal["truncate", "raise"] = "truncate",
    **overrides: Any,
) -> gym.Env[Observation, str]:
    """Create ``visenv/MagsZoom-v0``.

    Args:
        data: ``"procedural"`` (scenes with exact ground truth), a data set in a local folder such
            as ``"tallyqa:<folder>"``, ``"vsr:<folder>"`` or ``"gqa:<folder>"``, your own rows
            (``"rows:my.jsonl"``), or a `Source`.
        preset: ``"stage1"`` or ``"stage2"``; ``"tiny-stage1"`` and ``"tiny"`` are these stages for
            a very small model; ``"degraded"`` is stage 2 with blurred scenes, in which a network
            helps, and ``"tiny-degraded"`` is stage 1 with such scenes for a very small model. Each
            preset sets prompt, data, reward and magnifier.
        reward: ``"stage1"``, ``"stage2"`` or ``"outcome"``; by default that of the preset.
        magnifier: ``"small"``, ``"small-deblur"`` (trained for the preset ``"degraded"``),
            ``"lanczos"``, ``"resize"`` (bicubic), ``"none"`` (crops at native size) or
            ``"smfanet:<file>"`` (published weights); by default that of the preset.
        judge: The judge of answers that are not exact: ``"rules"``, or a scorer such as
            ``"openai:gpt-4o-mini"``.
        rethink: Whether the optional rethink term is paid.
        compat: ``"paper"`` pays the formulas as printed (docs/mags.md lists the differences).
        zoom_rule: The boxes that stage 2 pays for: ``"evidence"`` (the default for procedural
            scenes) pays for signs that the crops show, so that a guess gains nothing by zooming;
            ``"valid"`` (the default for data sets, and the only one with ``compat``) for valid
            boxes.
        kinds: Kinds of procedural questions: ``"counting"``, ``"relation"``, ``"attribute"``; all
            by default.
        samples: Number of different procedural samples; 0 creates a new one for each seed.
        most_overlap: A box with a higher IoU to an earlier valid box is an invalid duplicate, above
            0 and at most 1; by default 0.9, or 1 (duplicates are valid) with ``compat="paper"``.
        boxes: ``"random"`` cuts at random positions, as a control.
        crops: ``"hidden"`` shows no crop, as a control.
        deterministic: Whether equal seeds give bitwise equal crops even if crops of several
            episodes are enlarged at the same time. With ``deterministic=False`` a network computes
            crops of equal size together, with all threads.
        render_mode: ``"ansi"``, ``"rgb_array"`` or None.
        on_abort: ``"truncate"`` or ``"raise"``, see `VisEnv`.
        **overrides: Fields of `MagsPreset` to change, for example ``scenes="simple"``.

    Raises:
        ConfigurationError: If the value of an option is invalid.
        DataError: If the data set cannot be read.
    """
    chosen = choose_preset("visenv/MagsZoom-v0", make, PRESETS, preset, overrides)
    paid = reward or chosen.reward
    check_choice("reward", paid, ("stage1", "stage2", "outcome"))
    check_choice("compat mode", compat or "paper", ("paper",))
    check_choice("boxes", boxes, get_args(Boxes))
    check_choice("crops", crops, get_args(Crops))
    source: Source
    if data == "procedural":
        source, chosen = _procedural(chosen, kinds, samples)
    elif kinds is not None or samples:
        raise ConfigurationError(
            "kinds and samples are options of procedural data, got "
            f"kinds={kinds!r}, samples={samples!r} and data={data!r:.80}: omit them."
        )
    else:
        source = open_data(data, ONE_IMAGE) if isinstance(data, str) else data
    check_choice("zoom rule", zoom_rule or "valid", get_args(ZoomRule))
    if compat and zoom_rule == "evidence":
        raise ConfigurationError(
            f'compat={compat!r} computes the printed formulas, got zoom_rule="evidence": set '
            'zoom_rule="valid", or omit it.'
        )
    if zoom_rule is None:
        zoom_rule = "evidence" if data == "procedural" and not compat else "valid"
    if most_overlap is None:
        most_overlap = 1.0 if compat == "paper" else MOST_OVERLAP
    if not 0 < most_overlap <= 1:
        raise ConfigurationError(f"most_overlap must be above 0 and at most 1, got {most_overlap}.")
    settings = RewardSettings(
        "stage1" if paid == "stage1" else "stage2", judge, bool(rethink), compat, zoom_rule
    )
    terms = reward_terms(settings)
    env = MagsZoom(
        source=source,
        preset=chosen,
        magnifier=open_magnifier(magnifier or chosen.magnifier, deterministic),
        zoom=ZoomSettings(chosen.crop_pixels, most_overlap, boxes, crops),
        render_mode=render_mode,
        on_abort=on_abort,
    )
    if paid == "outcome":
        return env
    return RewardWrapper(env, terms, top_reward(settings.rethink))


def _procedural(
    preset: MagsPreset, kinds: Sequence[str] | None, samples: int
) -> tuple[Source, MagsPreset]:
    """Return the world, and the preset with a view in which the signs are too small to read."""
    if isinstance(kinds, str):
        raise ConfigurationError(f"kinds must be a list such as [{kinds!r}], got {kinds!r}.")
    world = MagsWorld(preset.scenes, **({} if kinds is None else {"kinds": tuple(kinds)}))
    if preset.view_side is None:
        preset = replace(preset, view_side=world.scenes.view_side)
    check_count("samples", samples, least=0)
    if not samples:
        return world, preset
    return FixedSamples(world, seeds(np.random.SeedSequence(_FIXED_SAMPLES), samples)), preset
