"""Defines ArmZoom: judge responses about a detail of an image by zooming (ARM-Thinker).

`CropsBeside` is its teacher.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from visenv.grammar import ParsedTurn, ToolCall
from visenv.teacher import AimingTeacher, Teacher
from visenv.tools import Tool
from visenv.types import Image

from ..evidence import useful
from ..tools.crop import ORIGINAL_IMAGE, SCALE, CropZoom
from .base import JudgingEnv, wrong_verdict

_MARGIN = 0.25
"""Margin of the oracle's crops relative to the target's sides; context helps recognition."""


@dataclass(frozen=True)
class CropsBeside(AimingTeacher["JudgingEnv"]):
    """Enlarges a part beside the evidence, and believes a wrong response if it misses the evidence.

    The error of a box is in sides of the box. A rewarded episode is one whose error was small by
    chance. A sample that needs no look is judged as by the oracle.
    """

    summary: ClassVar[str] = (
        "Enlarges a part beside the evidence, by a constant offset and by noise, and gives a wrong "
        "verdict unless the part shows the evidence."
    )
    offset: tuple[float, float] = (0.25, -0.2)
    noise: float = 0.2

    @override
    def turn(self, env: JudgingEnv, rng: np.random.Generator) -> ParsedTurn:
        turn = env.oracle_turn()
        if turn.answer is None:
            return turn._replace(calls=tuple(self._moved(call, rng) for call in turn.calls))
        seen = not env.log.tool_calls or useful(env.log, env.sample, "evidence")
        return turn if seen else wrong_verdict(env, rng)

    def _moved(self, call: ToolCall, rng: np.random.Generator) -> ToolCall:
        """Return a call for a part beside that of the given call, inside of the image."""
        box = call.arguments["bbox_2d"]
        steps: list[int] = []
        for axis, by in enumerate(self.error(rng)):
            low, high = box[axis], box[axis + 2]
            steps.append(min(max(round(by * (high - low)), -low), SCALE - high))
        moved = [edge + steps[place % 2] for place, edge in enumerate(box)]
        return ToolCall(call.name, {**call.arguments, "bbox_2d": moved})


class ArmZoom(JudgingEnv):
    """The policy judges responses about an image, and can enlarge any part of it.

    ### Description
    The image is shown with a limited number of pixels, so that the relevant detail may be too
    small to see. The crop-and-zoom tool cuts from the native image. Each crop gets a name
    (``observation_1``…) and can be zoomed into again. The policy judges one response True or False,
    or names the best of several. The task is from "ARM-Thinker: Reinforcing Multimodal Generative
    Reward Models with Agentic Tool Use and Visual Reasoning" (arXiv 2512.05111), track Fine-grained
    Perception.

    ### Action space
    `Unicode`: one whole turn, ``<think>…</think>`` and then one ``<tool_call>`` in JSON, or
    ``<answer>Overall Judgment: …</answer>``.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the task with the image, then each crop.

    ### Starting state
    A sample that is drawn with the seed: a procedural scene, or a row of a data set.

    ### Reward
    ``"stage2"`` (equation 5, at most 1.5), ``"stage1"`` (equation 4), ``"accuracy_format"`` and
    ``"fixed_bonus"`` are paid at the end (`visenv.envs.arm.rewards`). ``"outcome"`` is the
    accuracy.

    ### Episode end
    The episode terminates with an answer. It is truncated after the preset's number of turns; the
    last turn has no tools.

    ### Information
    ``info["step"].metrics`` contains ``accuracy`` on the last step.

    ### Arguments
    See `visenv.envs.arm.make_zoom`.

    ### Version history
    v0: first release.
    """

    teachers: ClassVar[Mapping[str, type[Teacher[Any]]]] = MappingProxyType(
        {"crops_beside": CropsBeside}
    )

    @override
    def oracle_calls(self) -> list[ToolCall]:
        """Crop each deciding detail, or else each target, with a margin around it."""
        truth, target = self.truth, self.truth.target_box
        boxes = truth.detail_boxes or truth.target_boxes or (() if target is None else (target,))
        return crop_calls(self.tools, boxes, self.sample.images)


def crop_calls(
    tools: Mapping[str, Tool[Any]], boxes: Sequence[Sequence[float]], images: Sequence[Image]
) -> list[ToolCall]:
    """Return calls of the zoom tool that show boxes of the first image, with a margin around each.

    Args:
        tools: The tools of the environment, by name.
        boxes: ``[left, top, right, bottom]`` in native pixels; if empty, there may also be no
            image.
        images: The images of the sample.
    """
    if not boxes:
        return []
    zoom = tools[CropZoom.name]
    assert isinstance(zoom, CropZoom)
    which = {"label": "the target", "img_idx": 0} if zoom.indexed else {"image": ORIGINAL_IMAGE}
    size = images[0].size
    return [ToolCall(zoom.name, {"bbox_2d": box_of(box, size), **which}) for box in boxes]


def box_of(box: Sequence[float], size: tuple[int, int]) -> list[int]:
    """Return a box with a margin, in whole thousandths of the image's sides.

    Args:
        box: ``[left, top, right, bottom]`` in pixels.
        size: ``(width, height)`` of the image.
    """
    left, top, right, bottom = box
    across, down = _MARGIN * (right - left), _MARGIN * (bottom - top)
    grown = (left - across, top - down, right + across, bottom + down)
    return [
        min(SCALE, max(0, round(SCALE * edge / size[place % 2])))
        for place, edge in enumerate(grown)
    ]
