"""Contains the Argos environments: grounded reasoning on images and video, scored by a verifier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visenv.family import EnvEntry, Family, export_make

if TYPE_CHECKING:
    from .make import *  # noqa: F403  the public names of this package

FAMILY = Family(
    environments={
        "visenv/ArgosImage-v0": EnvEntry(
            "visenv.envs.argos:make_image", "reason about an image with checked points (Argos)"
        ),
        "visenv/ArgosVideo-v0": EnvEntry(
            "visenv.envs.argos:make_video", "reason about a video with points and spans (Argos)"
        ),
    },
    data={
        "blink": "visenv.envs.argos.datasets.blink:Blink",
        "mindcube": "visenv.envs.argos.datasets.mindcube:MindCube",
        "cv_bench": "visenv.envs.argos.datasets.cv_bench:CVBench",
        "counter_curate": "visenv.envs.argos.datasets.captions:CounterCurate",
        "sugar_crepe": "visenv.envs.argos.datasets.captions:SugarCrepe",
        "hallusion_bench": "visenv.envs.argos.datasets.hallusion_bench:HallusionBench",
        "video_r1": "visenv.envs.argos.datasets.video_r1:VideoR1",
        "pixmo_count": "visenv.envs.argos.datasets.pixmo_count:PixMoCount",
    },
    records={
        "MediaTruth": "visenv.envs.argos.ground_truth:MediaTruth",
        "GroundedTruth": "visenv.envs.argos.ground_truth:GroundedTruth",
    },
    curation={
        "argos-draft": "visenv.envs.argos.curation:DraftAnswers",
        "argos-entities": "visenv.envs.argos.curation:FindEntities",
        "argos-point": "visenv.envs.argos.curation:PointToEntities",
        "argos-overlay": "visenv.envs.argos.curation:DrawOverlay",
        "argos-traces": "visenv.envs.argos.curation:Traces",
        "argos-extract": "visenv.envs.argos.curation:ExtractReferences",
        "argos-score": "visenv.envs.argos.curation:ScoreTraces",
        "argos-reformat": "visenv.envs.argos.curation:Reformat",
        "argos-verify": "visenv.envs.argos.curation:Verify",
        "argos-mix": "visenv.envs.argos.curation:Mix",
    },
    recipes={
        "argos": "visenv.recipes:argos.toml",
        "argos_tiny": "visenv.recipes:argos_tiny.toml",
    },
)

export_make(__name__)
