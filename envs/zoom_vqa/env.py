"""Defines ZoomVQA: look at an image, zoom in once, answer the question (Groundlight).

`LooksBeside` is its teacher.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, NoneType
from typing import Any, ClassVar, Literal

import numpy as np
from typing_extensions import override

from visenv.data.source import Source
from visenv.env import EpisodeLimits, VisEnv
from visenv.errors import DataError
from visenv.grammar import KeyValueGrammar, ParsedTurn, ToolCall, ToolCallGrammar
from visenv.images import fit
from visenv.teacher import GIVING_UP, AimingTeacher, Teacher
from visenv.types import Image, Message, QuestionTruth, TurnRequest

from .presets import PRESETS, ZoomVQAPreset
from .prompts import LATER_PREFIX, first_prefix, looked, looking, opening
from .rewards import AnswerScore
from .tools import (
    INPUT_IMAGE,
    BoxZoom,
    KeypointSource,
    KeypointZoom,
    ZoomOptions,
    ZoomTool,
    crop_window,
)

GRAMMARS: Mapping[ZoomTool, type[KeyValueGrammar | ToolCallGrammar]] = MappingProxyType(
    {"keypoint": KeyValueGrammar, "json_box": ToolCallGrammar}
)
"""The grammar of each zoom tool."""


@dataclass(frozen=True)
class LooksBeside(AimingTeacher["ZoomVQA"]):
    """Zooms beside the target, and gives up unless its crop contains the whole detail.

    The keypoint is the target's center plus the error. Lengths are in sides of the crop, so that
    the flaw has the same effect with all presets.
    """

    summary: ClassVar[str] = (
        "Zooms beside the target, by a constant offset and by noise, and gives up unless the crop "
        "contains the whole detail."
    )
    offset: tuple[float, float] = (0.375, -0.25)
    noise: float = 0.25

    @override
    def turn(self, env: ZoomVQA, rng: np.random.Generator) -> ParsedTurn:
        turn = env.oracle_turn()
        if turn.answer is not None:
            # Without a box of the detail, nobody knows whether the crop contains it.
            return turn if env.metrics().get("hit", 1.0) else turn._replace(answer=GIVING_UP)
        (x, y), (right, down) = env.target_center(), self.error(rng)
        side = env.preset.crop_side
        return turn._replace(calls=(env.zoom_call((x + side * right, y + side * down)),))


class ZoomVQA(VisEnv):
    """The policy answers a question about an image, after zooming into it once.

    ### Description
    The image is shown at a limited size. The policy may name one keypoint; a square around it is
    cut out and shown at the size of the input. Then the policy must answer. The task is from
    "Reinforcing VLMs to Use Tools for Detailed Visual Reasoning Under Resource Constraints"
    (Groundlight, arXiv 2506.14821).

    ### Action space
    `Unicode`: one whole turn, ``<think>…</think>`` and then ``<tool>`` with ``name: zoom`` and
    ``keypoint: [x, y]``, or ``<answer>…</answer>``. With ``tool="json_box"`` a call is JSON in
    ``<tool_call>``, with the argument ``bbox``.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the prompt with the image, then the crop.

    ### Starting state
    A sample that is drawn with the seed: a procedural scene, or a row of a data set.

    ### Reward
    ``"paper"`` is 0.5 vqa + 0.5 soft + 1.0 format + 0.1 tool, at most 2.1, paid at the end
    (`visenv.envs.zoom_vqa.rewards`). ``"outcome"`` is the answer's score alone, 0 to 1.

    ### Episode end
    The episode terminates with an answer. It is truncated after ``tool_calls + 1`` turns. The last
    turn's `TurnRequest` contains a regular expression that forces an answer.

    ### Information
    ``info["step"].metrics`` contains on the last step: ``accuracy`` (the answer's score, 0 to 1),
    ``zoomed`` (a crop was shown), and, if the ground truth has a box, ``hit`` (a crop contained the
    whole box).

    ### Arguments
    See `visenv.envs.zoom_vqa.make`.

    ### Version history
    v0: first release.
    """

    ground_truths: ClassVar[tuple[type, ...]] = (QuestionTruth, NoneType)
    presets: ClassVar[Mapping[str, object]] = PRESETS
    controls: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
        {"no_tool": {"tool_calls": 0}, "random_crop": {"zoom": "random"}}
    )
    headline_metrics: ClassVar[tuple[str, ...]] = ("accuracy", "zoomed", "hit")
    teachers: ClassVar[Mapping[str, type[Teacher[Any]]]] = MappingProxyType(
        {"looks_beside": LooksBeside}
    )

    def __init__(
        self,
        *,
        source: Source,
        preset: ZoomVQAPreset,
        answer_score: AnswerScore,
        tool_calls: int = 1,
        keypoint_source: KeypointSource = "policy",
        zoom_tool: ZoomTool = "keypoint",
        render_mode: str | None = None,
        on_abort: Literal["truncate", "raise"] = "truncate",
    ) -> None:
        self.preset = preset
        self.tool_calls = tool_calls
        self._answer_score = answer_score
        self.zoom_tool = zoom_tool
        options: ZoomOptions = {
            "source": preset.crop_source,
            "enlarge": preset.enlarge,
            "max_pixels": preset.image_pixels,
            "keypoint_source": keypoint_source,
        }
        zoom: KeypointZoom | BoxZoom
        if zoom_tool == "keypoint":
            zoom = KeypointZoom(crop_side=preset.crop_side, **options)
        else:
            zoom = BoxZoom(**options)
        self._spoken = GRAMMARS[zoom_tool]()
        super().__init__(
            source=source,
            grammar=self._spoken,
            tools=[zoom] if tool_calls else [],
            limits=EpisodeLimits(turns=tool_calls + 1, image_pixels=preset.image_pixels),
            render_mode=render_mode,
            on_abort=on_abort,
        )

    @override
    def initial_messages(self) -> list[Message]:
        """Return the message with the image at its limited size, and the question."""
        view = self._view()
        self.store.images[INPUT_IMAGE] = view
        tools = list(self.tools.values())
        question = self.sample.question
        return opening(self.preset.prompt, question, view, self._spoken, tools, self.tool_calls)

    @override
    def turn_request(self) -> TurnRequest:
        """Request a free turn while a tool call is left, and force an answer on the last turn."""
        prefix = LATER_PREFIX if self.turn else first_prefix(self.preset.prompt)
        regex = self.grammar.answer_regex(prefix) if self.turns_left == 1 else None
        return TurnRequest(prefix, self.grammar.stop, regex)

    @override
    def task_score(self) -> float:
        """Return the data set's own score of the answer, 0 to 1."""
        answer = self.log.answer
        return 0.0 if answer is None else float(self._answer_score(answer, self.sample))

    @override
    def metrics(self) -> dict[str, float]:
        """Return ``accuracy``, ``zoomed`` and, if the ground truth has a box, ``hit``."""
        crops = [call.detail["box"] for call in self.log.tool_calls if call.ok]
        metrics = {"accuracy": self.episode_score, "zoomed": float(bool(crops))}
        box = self.truth.detail_box
        if box is not None:
            metrics["hit"] = float(any(_holds(crop, box) for crop in crops))
        return metrics

    @override
    def oracle_turn(self) -> ParsedTurn:
        """Zoom to the target's center, then give the most common reference answer."""
        # The thought continues the prefill.
        begun = self.turn_request().prefill.removeprefix(LATER_PREFIX)
        if self.turns_left > 1:
            thought = looking(self.preset.prompt)
            return ParsedTurn(begun + thought, calls=(self.zoom_call(self.target_center()),))
        thought = looked(self.preset.prompt)
        answers = Counter(self.sample.answers).most_common(1)
        return ParsedTurn(begun + thought, answer=answers[0][0] if answers else "unanswerable")

    @override
    def random_answer(self, rng: np.random.Generator) -> str:
        """Return one of the sample's options, or a number."""
        options = self.truth.options
        return str(rng.choice(options)) if options else super().random_answer(rng)

    @property
    def truth(self) -> QuestionTruth:
        """Return the ground truth of the sample."""
        return self.sample.truth_as(QuestionTruth)

    def _view(self) -> Image:
        count = len(self.sample.images)
        if count != 1:
            raise DataError(f"Sample {self.sample.id!r} has {count} images; ZoomVQA shows one.")
        return fit(self.sample.images[0], self.preset.image_pixels, self.preset.view_side)

    def target_center(self) -> tuple[float, float]:
        """Return the center of the target, or of the image, in pixels of the shown image."""
        native, view = self.sample.images[0].size, self.store.images[INPUT_IMAGE].size
        left, top, right, bottom = self.truth.target_box or (0, 0, *native)
        return (left + right) / 2 * view[0] / native[0], (top + bottom) / 2 * view[1] / native[1]

    def zoom_call(self, point: tuple[float, float]) -> ToolCall:
        """Return a call that zooms to a point, or to a box with a crop's side around it.

        Args:
            point: (x, y) in pixels of the shown image. It is rounded to multiples of 5 and moved
                into the image.
        """
        size = self.store.images[INPUT_IMAGE].size
        x, y = (min(max(_round(point[axis]), 0), size[axis] - 1) for axis in (0, 1))
        if self.zoom_tool == "keypoint":
            return ToolCall("zoom", {"keypoint": [x, y]})
        return ToolCall("zoom", {"bbox": list(crop_window(size, (x, y), self.preset.crop_side))})


def _round(coordinate: float) -> int:
    """Round to a multiple of 5, so that a policy need not learn insignificant digits."""
    return 5 * round(coordinate / 5)


def _holds(outer: Sequence[float], inner: Sequence[float]) -> bool:
    return (
        outer[0] <= inner[0]
        and outer[1] <= inner[1]
        and outer[2] >= inner[2]
        and outer[3] >= inner[3]
    )
