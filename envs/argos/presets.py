"""Defines presets and settings of the Argos environments: images, prompts and worlds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from typing_extensions import TypedDict

from visenv.data.source import Source
from visenv.images import QWEN_PIXELS
from visenv.verifier import Teachers
from visenv.verifier.grounding import Categories
from visenv.verifier.reasoning import Mean

from .prompts import Coordinates, PromptStyle
from .rewards import Reward
from .world.presets import Split

TeacherNames = Literal["detector", "segmenter", "pointing_model", "judge", "reasoner"]
"""Names of teachers; ``judge`` judges descriptions and the equivalence of answers."""

MAX_FRAMES = 32
"""Maximum number of frames of a video (appendix C)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgosPreset:
    """Holds the fields of a preset.

    Attributes:
        coordinates: Whether points are in pixels of the image as shown, or from 0 to 1000.
        view_side: Longest side of a shown image in pixels; None shows it at native size.
        image_pixels: Maximum number of pixels of a shown image.
        observation_pixels: Maximum number of pixels of all images together.
        world: Preset of the procedural world.
        split: ``"train"``, where the tint of the background is a shortcut, or ``"ood"``.
    """

    prompt: PromptStyle = "grounded"
    coordinates: Coordinates = "pixels"
    view_side: int | None = None
    image_pixels: int = QWEN_PIXELS
    observation_pixels: int | None = None
    world: str = "default"
    split: Split = "ood"


PRESETS = {
    "default": ArgosPreset(),
    # The paper gives no pixel budget; EasyR1, the trainer that it uses, has this maximum.
    "train": ArgosPreset(image_pixels=4_194_304, observation_pixels=8_388_608, split="train"),
    "direct": ArgosPreset(prompt="direct"),
    "cot": ArgosPreset(prompt="cot"),
    "qwen3": ArgosPreset(coordinates="relative1000"),
    # Small enough for a CPU.
    "tiny": ArgosPreset(prompt="brief", world="tiny", split="train"),
}


class ArgosSettings(TypedDict, total=False):
    """Lists the arguments of both environments.

    Args:
        data: ``"procedural"``, a data set such as ``"blink:<folder>"``, or a `Source`.
        preset: ``"default"``, ``"train"`` (at most 4.2 megapixels for an image), ``"direct"`` or
            ``"cot"`` (prompts of baselines without grounding), ``"qwen3"`` (points from 0 to 1000)
            or ``"tiny"`` (for a very small model on a CPU).
        reward: ``"argos"``, ``"no_reasoning"``, ``"no_grounding"`` or ``"outcome"``; by default
            ``"argos"``, and ``"outcome"`` for a data set if no teachers are given.
        teachers: ``"oracle"`` (exact, for procedural samples), scorers by the names of teachers,
            for example ``{"detector": "detector:<model>", "segmenter": "segmenter:<model>",
            "reasoner": "openai:<model>?base_url=…"}``, or `Teachers`.
        noise: Share of wrong verdicts of the oracle, 0 to 1.
        pointing_coordinates: Unit of the points that the pointing model writes as JSON:
            ``"pixels"`` (Qwen2.5-VL), or ``"relative1000"``, from 0 to 1000 (Qwen3-VL).
        threshold: Minimum accuracy at which the other terms count.
        weights: Weights of terms by name, 1 by default.
        empty: ``"zero"``, or ``"skip"``, which omits the grounding term if there is no grounding.
        categories: Number of categories of the temporal score, 3 or 2.
        mean: Kind of mean of token probabilities in the reasoning score.
        mask_answer: Whether sentences that state the answer are hidden from the reasoner.
        selector: A scorer that chooses the scoring functions; by default rules do.
        extractor: A scorer that extracts the references of video traces; by default rules do.
        kinds: Kinds of procedural questions; all by default.
        render_mode: ``"ansi"``, ``"rgb_array"`` or None.
        on_abort: ``"truncate"`` or ``"raise"``, see `VisEnv`.
        prompt: The style of the prompt: ``"grounded"``, ``"direct"``, ``"cot"`` or ``"brief"``.
            This and the following arguments change fields of the preset.
        coordinates: The unit of points in turns: ``"pixels"`` of the image as shown, or
            ``"relative1000"``, from 0 to 1000.
        view_side: The longest side of a shown image in pixels; None shows it at native size.
        image_pixels: The maximum number of pixels of a shown image.
        observation_pixels: The maximum number of pixels of all images together; None sets no limit.
        world: The preset of the procedural world: ``"default"`` or ``"tiny"``.
        split: ``"train"``, where the tint of the background is a shortcut, or ``"ood"``.
    """

    data: str | Source
    preset: str
    reward: Reward | None
    teachers: Literal["oracle"] | Mapping[TeacherNames, str] | Teachers
    noise: float
    pointing_coordinates: Coordinates
    threshold: float
    weights: Mapping[str, float] | None
    empty: Literal["zero", "skip"]
    categories: Categories
    mean: Mean
    mask_answer: bool
    selector: str | None
    extractor: str | None
    kinds: list[str] | None
    render_mode: str | None
    on_abort: Literal["truncate", "raise"]
    prompt: PromptStyle
    coordinates: Coordinates
    view_side: int | None
    image_pixels: int
    observation_pixels: int | None
    world: str
    split: Split
