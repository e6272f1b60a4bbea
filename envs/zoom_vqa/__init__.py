"""Contains ZoomVQA (Groundlight): zoom into an image once, then answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visenv.family import EnvEntry, Family, export_make

if TYPE_CHECKING:
    from .make import *  # noqa: F403  the public names of this package

FAMILY = Family(
    environments={
        "visenv/ZoomVQA-v0": EnvEntry(
            "visenv.envs.zoom_vqa:make", "zoom into an image once, then answer (Groundlight)"
        ),
    },
    data={
        "textvqa": "visenv.envs.zoom_vqa.datasets.textvqa:TextVQA",
    },
    records={
        "TextVQATruth": "visenv.envs.zoom_vqa.datasets.textvqa:TextVQATruth",
    },
    recipes={
        "zoom_tiny": "visenv.recipes:zoom_tiny.toml",
        "groundlight": "visenv.recipes:groundlight.toml",
        "groundlight_tiny": "visenv.recipes:groundlight_tiny.toml",
    },
)

export_make(__name__)
