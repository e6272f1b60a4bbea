"""Contains the Visual-ARFT environments: repairing images with code, and searching."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visenv.family import EnvEntry, Family, export_make

if TYPE_CHECKING:
    from .make import *  # noqa: F403  the public names of this package

FAMILY = Family(
    environments={
        "visenv/ArftCoding-v0": EnvEntry(
            "visenv.envs.arft:make_coding", "repair an image by code, then answer (Visual-ARFT)"
        ),
        "visenv/ArftSearch-v0": EnvEntry(
            "visenv.envs.arft:make_search",
            "search for facts that an image does not show (Visual-ARFT)",
        ),
    },
    data={
        "mat_coding": "visenv.envs.arft.datasets.mat_coding:MatCoding",
        "mat_search": "visenv.envs.arft.datasets.mat_search:MatSearch",
        "hotpotqa": "visenv.envs.arft.datasets.multi_hop_sets:HotpotQA",
        "2wikimultihopqa": "visenv.envs.arft.datasets.multi_hop_sets:WikiMultihop",
        "musique": "visenv.envs.arft.datasets.multi_hop_sets:MuSiQue",
        "bamboogle": "visenv.envs.arft.datasets.multi_hop_sets:Bamboogle",
    },
    records={
        "CodingTruth": "visenv.envs.arft.coding.ground_truth:CodingTruth",
        "SearchTruth": "visenv.envs.arft.search.ground_truth:SearchTruth",
    },
    curation={
        "distort": "visenv.envs.arft.coding.curation.distort:Distort",
    },
    recipes={
        "visual_arft_coding": "visenv.recipes:visual_arft_coding.toml",
        "visual_arft_coding_tiny": "visenv.recipes:visual_arft_coding_tiny.toml",
        "visual_arft_search": "visenv.recipes:visual_arft_search.toml",
        "visual_arft_search_tiny": "visenv.recipes:visual_arft_search_tiny.toml",
    },
    baselines={
        "arft": "visenv.envs.arft.baselines:PROMPTS",
    },
)

export_make(__name__)
