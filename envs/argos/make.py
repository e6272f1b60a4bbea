"""Creates the Argos environments with their samples, a user's own rows, teachers and rewards."""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any, Literal, get_args

import gymnasium as gym
from typing_extensions import Unpack

from visenv.data.open import open_data
from visenv.data.row import Row, RowSchema
from visenv.data.source import Source
from visenv.data.user_rows import Rows
from visenv.env import Observation
from visenv.errors import ConfigurationError
from visenv.presets import check_choice, choose_preset
from visenv.rewards import RewardWrapper
from visenv.types import Sample
from visenv.verifier import GatedAggregate, Teachers, Verifier
from visenv.verifier.grounding import Categories
from visenv.verifier.reasoning import Mean

from .env import ArgosImage, ArgosVideo
from .env.base import ArgosEnv
from .ground_truth import GroundedTruth, MediaTruth
from .presets import MAX_FRAMES, PRESETS, ArgosPreset, ArgosSettings, TeacherNames
from .prompts import Coordinates
from .rewards import TERMS_OF, Reward
from .teachers import make_extractor, make_selector, make_teachers
from .world.images import ImageWorld
from .world.videos import VideoWorld

__all__ = [
    "PRESETS",
    "ArgosImage",
    "ArgosPreset",
    "ArgosSettings",
    "ArgosVideo",
    "GroundedTruth",
    "ImageWorld",
    "MediaTruth",
    "VideoWorld",
    "make_image",
    "make_video",
]


def make_image(**settings: Unpack[ArgosSettings]) -> gym.Env[Observation, str]:
    """Create ``visenv/ArgosImage-v0``; see `ArgosSettings` for the arguments."""
    return make("visenv/ArgosImage-v0", ArgosImage, ImageWorld, IMAGES, **settings)


def make_video(**settings: Unpack[ArgosSettings]) -> gym.Env[Observation, str]:
    """Create ``visenv/ArgosVideo-v0``; see `ArgosSettings` for the arguments."""
    return make("visenv/ArgosVideo-v0", ArgosVideo, VideoWorld, VIDEOS, **settings)


def make(
    env_id: str,
    env_class: type[ArgosEnv],
    world_class: type[ImageWorld] | type[VideoWorld],
    schema: RowSchema,
    *,
    data: str | Source = "procedural",
    preset: str = "default",
    reward: Reward | None = None,
    teachers: Literal["oracle"] | Mapping[TeacherNames, str] | Teachers = "oracle",
    noise: float = 0.0,
    pointing_coordinates: Coordinates = "pixels",
    threshold: float = 0.5,
    weights: Mapping[str, float] | None = None,
    empty: Literal["zero", "skip"] = "zero",
    categories: Categories = 3,
    mean: Mean = "geometric",
    mask_answer: bool = False,
    selector: str | None = None,
    extractor: str | None = None,
    kinds: list[str] | None = None,
    render_mode: str | None = None,
    on_abort: Literal["truncate", "raise"] = "truncate",
    **overrides: Any,
) -> gym.Env[Observation, str]:
    """Create an Argos environment.

    `ArgosSettings` describes the arguments; `env_class`, `world_class` and `schema` are the
    environment, its procedural world, and the columns of a user's own rows.

    Raises:
        ConfigurationError: If the value of an option is invalid.
        DataError: If the data set cannot be read.
    """
    chosen = choose_preset(env_id, make_image, PRESETS, preset, overrides)
    knows_facts = data == "procedural" or teachers != "oracle"
    left_out = reward is None and not knows_facts
    if reward is None:
        reward = "argos" if knows_facts else "outcome"
    check_choice("reward", reward, TERMS_OF)
    if reward != "outcome" and not knows_facts and isinstance(data, str):
        raise ConfigurationError(
            f"reward={reward!r} needs facts about objects and events, which a data set does not "
            "contain: name models with teachers={...} (docs/argos.md), or set reward='outcome'."
        )
    check_choice("empty", empty, ("zero", "skip"))
    check_choice("mean", mean, get_args(Mean))
    check_choice("pointing_coordinates", pointing_coordinates, get_args(Coordinates))
    if categories not in (2, 3):
        raise ConfigurationError(f"categories must be 2 or 3, got {categories!r}.")
    source: Any
    if data == "procedural":
        source = world_class(
            chosen.world, chosen.split, **({} if kinds is None else {"kinds": kinds})
        )
    else:
        source = open_data(data, schema) if isinstance(data, str) else data
        if left_out and isinstance(source, Rows):
            others = [name for name in TERMS_OF["argos"] if name not in TERMS_OF["outcome"]]
            source.note(
                f"{data}: The reward is the accuracy, with the same maximum; the terms "
                f"{', '.join(others)} are left out, because rows have no facts about objects and "
                "events. To score them, name models with teachers={...}."
            )
    outcome = getattr(source, "score", None)
    env = env_class(
        source=source,
        preset=chosen,
        selector=make_selector(selector),
        # The paper reads points of images by a regular expression.
        extractor=make_extractor(extractor) if env_class is ArgosVideo else None,
        outcome=outcome,
        render_mode=render_mode,
        on_abort=on_abort,
    )
    gate = GatedAggregate(threshold, weights or {})
    verifier = Verifier(
        make_teachers(teachers, noise, pointing_coordinates),
        TERMS_OF[reward],
        gate,
        empty,
        categories,
        mean,
        mask_answer,
        outcome,
    )
    return RewardWrapper(env, verifier.reward_terms(), top=1.0, combine=gate)


def media_sample(row: Row) -> Sample:
    """Return the sample of a question about images or a video; the answer is text, not a letter."""
    options = row.options()
    if options:
        answers: tuple[str, ...] = (options[ascii_uppercase.index(row.letter(options))],)
    else:
        answers = row.answers()
    truth = MediaTruth(options=options)
    return Sample(row.id, row.question(), (), answers, row.optional_text("kind"), truth)


IMAGES = RowSchema(
    "questions about images",
    ("image", "question", "answer"),
    ("options", "kind"),
    MediaTruth,
    media_sample,
)
"""Rows of images, a question and an answer, for ArgosImage."""

VIDEOS = RowSchema(
    "questions about videos",
    ("video", "question", "answer"),
    ("options", "kind"),
    MediaTruth,
    media_sample,
    most_frames=MAX_FRAMES,
)
"""Rows of a video file, a question and an answer, for ArgosVideo."""
