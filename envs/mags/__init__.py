"""Contains MagsZoom (Mags-RL): two rounds of reasoning with a magnifier in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visenv.family import EnvEntry, Family, export_make

if TYPE_CHECKING:
    from .make import *  # noqa: F403  the public names of this package

FAMILY = Family(
    environments={
        "visenv/MagsZoom-v0": EnvEntry(
            "visenv.envs.mags:make", "name boxes, see them enlarged, then answer (Mags-RL)"
        ),
    },
    data={
        "vsr": "visenv.envs.mags.datasets.vsr:VSR",
        "tallyqa": "visenv.envs.mags.datasets.tallyqa:TallyQA",
        "gqa": "visenv.envs.mags.datasets.gqa:GQA",
        "mags": "visenv.envs.mags.datasets.curated:MagsRows",
    },
    records={
        "MagsTruth": "visenv.envs.mags.ground_truth:MagsTruth",
        "TextIgnored": "visenv.envs.mags.env:TextIgnored",
    },
    curation={
        "zoom-score": "visenv.envs.mags.curation:RateZoom",
        "clear": "visenv.envs.mags.curation:DropUnclear",
        "stratify": "visenv.envs.mags.curation:Stratify",
        "mags-train": "visenv.envs.mags.curation:MagsTrain",
    },
    recipes={
        "mags_rl": "visenv.recipes:mags_rl.toml",
        "mags_rl_tiny": "visenv.recipes:mags_rl_tiny.toml",
        "mags_magnifiers_tiny": "visenv.recipes:mags_magnifiers_tiny.toml",
    },
    scorers={
        "magnifier": "visenv.envs.mags.magnifier.backend:MagnifierBackend",
    },
    baselines={
        "mags": "visenv.envs.mags.baselines:PROMPTS",
        "mags-one-shot": "visenv.envs.mags.baselines:ONE_SHOT",
        "mags-grit": "visenv.envs.mags.baselines:GRIT",
    },
)

export_make(__name__)
