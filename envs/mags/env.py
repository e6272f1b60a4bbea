"""Defines MagsZoom: name boxes, see them enlarged, think again and answer (Mags-RL).

`BoxesBeside` is its teacher.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, NoneType
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from typing_extensions import override

from visenv.data.source import Source
from visenv.drawing import annotated
from visenv.env import EpisodeLimits, VisEnv
from visenv.errors import DataError
from visenv.grammar import ParsedTurn, ToolCall, ZoomInThinkGrammar
from visenv.grammar.zoom_in_think import scan
from visenv.images import fit
from visenv.teacher import GIVING_UP, AimingTeacher, Teacher
from visenv.types import Event, Image, Message, Part, QuestionTruth, TurnRequest

from . import prompts
from .answers import includes, is_exact
from .boxes import MOST_BOXES, moved_box, sides_of
from .evidence import coverage, covers, evidence_of
from .ground_truth import MagsTruth
from .magnifier.magnify import Magnifier
from .presets import PRESETS, MagsPreset
from .rewards import COUNTING, count_words, first_thought
from .tools import INPUT_IMAGE, MultiBoxZoom, ZoomSettings

_MARGIN = 1
"""Margin of the oracle's boxes around a target, pixels of the image as shown."""

_BRIEF_GRID = 8
"""Grid to which the brief oracle rounds boxes outwards, so that fewer numbers must be learned."""


@dataclass(frozen=True)
class BoxesBeside(AimingTeacher["MagsZoom"]):
    """Names too many boxes, beside the objects, and answers from the content of the crops.

    Each box of the oracle is moved by an error of its own, in sides of the box. The further boxes
    have the size of the first one and random positions. The teacher counts the objects that a crop
    covers; it answers another question only if the crops cover all evidence, otherwise it gives up.

    Attributes:
        extra: The number of further boxes at strength 1.

    Raises:
        ConfigurationError: If `extra` is negative.
    """

    summary: ClassVar[str] = (
        "Names boxes beside the objects, by a constant offset and by noise, and one box too many. "
        "It counts only the objects in its crops, and gives up on another question if its crops do "
        "not contain the object."
    )
    offset: tuple[float, float] = (0.175, -0.05)
    noise: float = 0.1
    extra: int = 1

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_not_negative("extra")

    @override
    def turn(self, env: MagsZoom, rng: np.random.Generator) -> ParsedTurn:
        turn = env.oracle_turn()
        if turn.answer is not None:
            return turn._replace(answer=_teacher_answer(env, turn.answer))
        (call,) = turn.calls
        boxes = self._boxes(env, call.arguments["boxes"], rng)
        return turn._replace(calls=(ToolCall(call.name, {"boxes": boxes}),))

    def _boxes(
        self, env: MagsZoom, boxes: Sequence[Sequence[int]], rng: np.random.Generator
    ) -> list[list[int]]:
        """Return the moved boxes, then the further ones."""
        size, grid = env.store.images[INPUT_IMAGE].size, env.box_grid
        errors = [self.error(rng) for _ in boxes]
        moved = [
            moved_box(box, error, size, grid) for box, error in zip(boxes, errors, strict=True)
        ]
        across, down = sides_of(boxes[0])
        for _ in range(round(self.strength * self.extra)):
            left = grid * int(rng.integers((size[0] - across) // grid + 1))
            top = grid * int(rng.integers((size[1] - down) // grid + 1))
            moved.append([left, top, left + across, top + down])
        return moved[:MOST_BOXES]


def _teacher_answer(env: MagsZoom, right: str) -> str:
    """Return the answer of a player that knows the objects in its crops, and no others."""
    truth = env.sample.ground_truth
    if not isinstance(truth, MagsTruth):
        return right  # a row of a data set, whose objects are not known
    crops = env.crops()

    def seen(box: Sequence[float]) -> bool:
        return any(covers(crop, box) for crop in crops)

    if env.sample.kind == COUNTING:
        return str(sum(map(seen, truth.target_boxes)))
    return right if all(map(seen, evidence_of(env.sample))) else GIVING_UP


class TextIgnored(NamedTuple):
    """Records that the policy wrote ignored text outside the thought of round 1.

    Text before ``<think>`` and text after ``</think>`` are logged together.

    Attributes:
        turn: The index of the turn, from 0.
    """

    turn: int
    text: str


class MagsZoom(VisEnv):
    """The policy answers a question about a crowded image in two rounds, with a magnifier between.

    ### Description
    In round 1 the policy thinks and names boxes. The environment cuts them from the native image
    and enlarges them with a super-resolution network, the magnifier. In round 2 the policy thinks
    again and answers. The task is from "Mags-RL: Wearing Multimodal LLMs a Magnifying Glass via
    Agentic Reinforcement Learning For Complex Scene Reasoning".

    ### Action space
    `Unicode`: ``<think>… <zoom>[[x1, y1, x2, y2], …]</zoom> …</think>`` in round 1, and
    ``<rethink>…</rethink><answer>…</answer>`` in round 2. Coordinates are pixels of the image as
    shown.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the prompt with the image, then the crops and
    a line about each rejected box.

    ### Starting state
    A sample that is drawn with the seed: a procedural scene, or a row of a data set. The preset
    ``"degraded"`` has scenes whose signs are 18 to 24 native pixels wide, and which are blurred,
    noisy and compressed. A reader of sharp signs names them more often after a network than after
    interpolation (docs/mags.md).

    ### Reward
    The sum of the terms of `visenv.envs.mags.rewards`, at most 4.2, is paid at the end. Stage 1
    rewards the share of valid boxes; stage 2 rewards a look at all signs that decide the answer,
    and in a data set as many boxes as there are objects to count.
    ``"outcome"`` is 1 for an exact answer.

    ### Episode end
    Every episode has exactly two turns, whatever round 1 contains. It terminates with an answer in
    round 2, and is truncated without one.

    ### Information
    ``info["step"].metrics`` contains on the last step: ``accuracy`` (exact answer), ``inclusion``
    (the true answer occurs in the answer), ``zoomed`` (a crop was cut, even if ``crops="hidden"``
    does not show it), ``boxes``, ``valid_boxes``, ``duplicates``, ``thought_words`` (words of the
    thought of round 1), and, if it is known, ``coverage`` (the share of the decisive signs that a
    crop contained).

    ### Arguments
    See `visenv.envs.mags.make`.

    ### Version history
    v0: first release.
    """

    ground_truths: ClassVar[tuple[type, ...]] = (QuestionTruth, NoneType)
    presets: ClassVar[Mapping[str, object]] = PRESETS
    controls: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
        {"random_boxes": {"boxes": "random"}, "no_crops": {"crops": "hidden"}}
    )
    teachers: ClassVar[Mapping[str, type[Teacher[Any]]]] = MappingProxyType(
        {"boxes_beside": BoxesBeside}
    )

    def __init__(
        self,
        *,
        source: Source,
        preset: MagsPreset,
        magnifier: Magnifier,
        zoom: ZoomSettings,
        render_mode: str | None = None,
        on_abort: Literal["truncate", "raise"] = "truncate",
    ) -> None:
        self.preset = preset
        super().__init__(
            source=source,
            grammar=ZoomInThinkGrammar(),
            tools=[MultiBoxZoom(magnifier, zoom)],
            limits=EpisodeLimits(
                turns=2, image_pixels=max(preset.image_pixels, preset.crop_pixels)
            ),
            render_mode=render_mode,
            on_abort=on_abort,
        )

    @override
    def initial_messages(self) -> list[Message]:
        """Return the message with the image at its limited size, and the question."""
        view = self._view()
        self.store.images[INPUT_IMAGE] = view
        tool = "".join(tool.description for tool in self.tools.values())
        return prompts.opening(self.preset.prompt, self.sample.question, view, tool)

    @override
    def turn_request(self) -> TurnRequest:
        """Request a thought in round 1, and a second thought and an answer in round 2."""
        return TurnRequest(stop=("</answer>",) if self._must_answer else ("</think>",))

    @override
    def check_turn(self, turn: ParsedTurn) -> str:
        """Reject an answer in round 1, and anything but an answer in round 2."""
        if not self._must_answer:
            return "" if turn.answer is None else prompts.ANSWER_IN_ROUND_1
        if turn.calls:
            return prompts.NO_ZOOM_LEFT
        return prompts.ANSWER_MISSING if turn.answer is None else ""

    @override
    def turn_events(self, turn: ParsedTurn) -> Iterable[Event]:
        """Return an event for ignored text before and after the thought of round 1."""
        if self._must_answer or turn.thought is None:
            return ()
        ignored = scan(self.log.turns[-1].text).outside.strip()
        return (TextIgnored(self.turn, ignored),) if ignored else ()

    @override
    def turn_notice(self) -> tuple[Part, ...]:
        """Return the notice before round 2: its format, and whether nothing was enlarged."""
        said = () if self.log.tool_calls else (prompts.NO_ZOOM,)
        return said if self.preset.prompt == "brief" else (*said, prompts.ROUND_2)

    @override
    def render(self) -> Any:
        """Return the conversation, or the image with the question and the boxes of round 1."""
        if self.render_mode != "rgb_array" or INPUT_IMAGE not in self.store.images:
            return super().render()
        details = [call.detail for call in self.log.tool_calls if "boxes" in call.detail]
        valid = [each for detail in details for each in detail["boxes"] if each["box"]]
        boxes = [each["shown_box"] for each in valid]
        return annotated(self.store.images[INPUT_IMAGE], self.sample.question, boxes=boxes)

    @override
    def task_score(self) -> float:
        """Return 1 for an exact answer."""
        answer = self.log.answer
        return float(answer is not None and is_exact(answer, self.sample.answers))

    @override
    def metrics(self) -> dict[str, float]:
        answer = self.log.answer
        details = [call.detail for call in self.log.tool_calls if "written" in call.detail]
        crops = self.crops()
        metrics = {
            "accuracy": self.episode_score,
            "inclusion": float(answer is not None and includes(answer, self.sample.answers)),
            "zoomed": float(bool(crops)),
            "boxes": float(sum(detail["written"] for detail in details)),
            "valid_boxes": float(len(crops)),
            "duplicates": float(sum(detail["duplicates"] for detail in details)),
            "thought_words": float(count_words(first_thought(self.log))),
        }
        evidence = evidence_of(self.sample)
        if evidence:
            metrics["coverage"] = coverage(crops, evidence)
        return metrics

    @override
    def oracle_turn(self) -> ParsedTurn:
        """Zoom into all signs that must be looked at, then give the true answer."""
        style = self.preset.prompt
        if self._must_answer:
            answers = self.sample.answers
            return ParsedTurn(
                prompts.second_thought(style), answer=answers[0] if answers else "unknown"
            )
        call = ToolCall(MultiBoxZoom.name, {"boxes": self._oracle_boxes()})
        return ParsedTurn(prompts.thought(style), (call,))

    @override
    def direct_turn(self, answer: str) -> ParsedTurn:
        """Think without zooming in round 1, and answer in round 2."""
        turn = self.oracle_turn()._replace(calls=())
        return turn._replace(answer=answer) if self._must_answer else turn

    @override
    def random_answer(self, rng: np.random.Generator) -> str:
        """Return one of the sample's options, or a number."""
        options = self.sample.truth_as(QuestionTruth).options
        return str(rng.choice(options)) if options else super().random_answer(rng)

    def crops(self) -> list[list[int]]:
        """Return the boxes of the crops of the episode, in native pixels."""
        details = [call.detail for call in self.log.tool_calls if "boxes" in call.detail]
        return [each["box"] for detail in details for each in detail["boxes"] if each["box"]]

    @property
    def box_grid(self) -> int:
        """Return the grid of the boxes of a demonstration, pixels of the image as shown."""
        return _BRIEF_GRID if self.preset.prompt == "brief" else 1

    @property
    def _must_answer(self) -> bool:
        """Return whether the next turn is round 2."""
        return self.turns_left == 1

    def _view(self) -> Image:
        count = len(self.sample.images)
        if count != 1:
            raise DataError(f"Sample {self.sample.id!r} has {count} images; MagsZoom shows one.")
        return fit(self.sample.images[0], self.preset.image_pixels, self.preset.view_side)

    def _oracle_boxes(self) -> list[list[int]]:
        truth, evidence = self.sample.truth_as(QuestionTruth), evidence_of(self.sample)
        one = () if truth.target_box is None else (truth.target_box,)
        brief = self.preset.prompt == "brief"
        # Boxes are sorted from left to right, because a model cannot learn a random order.
        native = sorted(evidence) if brief else evidence or one
        size, shown = self.sample.images[0].size, self.store.images[INPUT_IMAGE].size
        if not native:
            return [[0, 0, max(1, shown[0] // 2), max(1, shown[1] // 2)]]
        return [_box_around(box, size, shown, self.box_grid) for box in native[:MOST_BOXES]]


def _box_around(
    box: tuple[float, ...], native: tuple[int, int], shown: tuple[int, int], grid: int
) -> list[int]:
    """Return a native box in pixels of the image as shown, rounded outwards, with a margin."""
    across, down = shown[0] / native[0], shown[1] / native[1]
    low = [box[0] * across - _MARGIN, box[1] * down - _MARGIN]
    high = [box[2] * across + _MARGIN, box[3] * down + _MARGIN]
    left, top = (max(0, int(edge // grid) * grid) for edge in low)
    right, bottom = (
        min(side, -int(-edge // grid) * grid) for edge, side in zip(high, shown, strict=True)
    )
    return [left, top, right, bottom]
