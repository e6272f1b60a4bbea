"""Defines the base class of both Argos environments: one turn of reasoning with an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from typing_extensions import override

from visenv.data.source import Source
from visenv.drawing import annotated
from visenv.env import EpisodeLimits, VisEnv
from visenv.grammar import ParsedTurn
from visenv.grammar.points import PointsGrammar, read_references
from visenv.images import fit, fit_all
from visenv.teacher import GIVING_UP
from visenv.types import Event, Image, Message, QuestionTruth, Sample, TurnRequest
from visenv.verifier import Referred, Selector, refer, referred_in, rule_score, select_by_rules
from visenv.verifier.extraction import TraceReader
from visenv.verifier.grounding import frame_number
from visenv.verifier.oracle import inner_pixel
from visenv.verifier.verifier import OutcomeScore

from ..ground_truth import GroundedTruth, MediaTruth
from ..presets import PRESETS, ArgosPreset
from ..prompts import PREFILL, opening
from ..rewards import measure

NOTHING_THERE = "I see nothing there."
"""The conclusion of a player whose points are not all on the objects."""


class PlacedPoint(NamedTuple):
    """Holds the tag of a point, and whether it is on the thing that it names."""

    tag: str
    hits: bool


class ArgosEnv(VisEnv):
    """Implements the parts that `ArgosImage` and `ArgosVideo` share.

    Args:
        source: The samples.
        preset: The settings of images and prompt.
        selector: Chooses the scoring functions of a response; by default rules do.
        extractor: Extracts the references of a trace; by default rules do.
        outcome: The official score of a data set; None compares by rules.
        render_mode: ``"ansi"``, ``"rgb_array"`` or None.
        on_abort: ``"truncate"`` or ``"raise"``, see `VisEnv`.
    """

    presets: ClassVar[Mapping[str, object]] = PRESETS
    ground_truths: ClassVar[tuple[type, ...]] = (MediaTruth, QuestionTruth, NoneType)

    def __init__(
        self,
        *,
        source: Source,
        preset: ArgosPreset,
        selector: Selector | None = None,
        extractor: TraceReader | None = None,
        outcome: OutcomeScore | None = None,
        render_mode: str | None = None,
        on_abort: Literal["truncate", "raise"] = "truncate",
    ) -> None:
        self.preset = preset
        self.points_grammar = PointsGrammar()
        self._selector = selector
        self._extractor = extractor
        self._outcome = outcome
        super().__init__(
            source=source,
            grammar=self.points_grammar,
            limits=EpisodeLimits(
                turns=1,
                image_pixels=preset.image_pixels,
                observation_pixels=preset.observation_pixels,
            ),
            render_mode=render_mode,
            on_abort=on_abort,
        )

    @override
    def initial_messages(self) -> list[Message]:
        """Return the message with the images or the video, and the question."""
        preset = self.preset
        views = [fit(each, preset.image_pixels, preset.view_side) for each in self.sample.images]
        if preset.observation_pixels is not None:
            views = fit_all(views, preset.observation_pixels)
        for number, view in enumerate(views):
            self.store.images[f"image_{number + 1}"] = view
        sample, times = self.sample, self.times()
        options = () if isinstance(sample.ground_truth, GroundedTruth) else options_shown(sample)
        return opening(preset.prompt, preset.coordinates, sample.question, options, views, times)

    @override
    def turn_request(self) -> TurnRequest:
        return TurnRequest(PREFILL, self.grammar.stop)

    @override
    def turn_events(self, turn: ParsedTurn) -> Iterable[Event] | Awaitable[Iterable[Event]]:
        """Return the events of a response: its references, and the scoring functions that apply."""
        if turn.answer is None:
            return []
        reasoning = self.points_grammar.reasoning(self.log.turns[-1].text)
        if self._selector is not None or self._extractor is not None:
            return self._asked_events(self.turn, self.sample, reasoning)
        referred = self._refer(self.turn, reasoning)
        return [referred, select_by_rules(self.sample, referred)]

    @override
    def is_done(self) -> bool:
        """Return whether there was a response; a malformed one ends the episode, too."""
        return bool(self.log.turns)

    @override
    def task_score(self) -> float:
        """Return 1 if the answer is right, by rules or by the data set's own score, otherwise 0."""
        answer = self.log.answer
        if answer is None:
            return 0.0
        if self._outcome is not None:
            return float(self._outcome(answer, self.sample))
        return rule_score(self.sample, answer)

    @override
    def metrics(self) -> dict[str, float]:
        """Return the accuracy, the number of points and, in procedural worlds, their accuracy."""
        referred = referred_in(self.log)
        return {"accuracy": self.episode_score} | measure(self.sample, referred)

    @override
    def random_answer(self, rng: np.random.Generator) -> str:
        """Return one of the options, or a number if there are none."""
        options = options_shown(self.sample)
        return str(rng.choice(options)) if options else super().random_answer(rng)

    @override
    def render(self) -> Any:
        """Return the conversation, or the image with the question and the points of the response.

        Of a video, the frame of the first point is shown, or the first frame.
        """
        if self.render_mode != "rgb_array" or "image_1" not in self.store.images:
            return super().render()
        points = referred_in(self.log).points
        times = self.times()
        frames = [frame_number(each.frame, each.time, times) if times else 0 for each in points]
        number = next((frame for frame in frames if frame is not None), 0)
        shown = self._shown(number)
        across = shown.size[0] / self.sample.images[number].size[0]
        spots = [
            (each.x * across, each.y * across, each.label)
            for each, frame in zip(points, frames, strict=True)
            if frame == number
        ]
        return annotated(shown, self.sample.question, spots)

    @property
    @override
    def waits(self) -> bool:
        """Return whether `step` may wait for a selector or an extractor."""
        asks = self._selector is not None or self._extractor is not None
        return asks and not self.defers

    def read_by(self, extractor: TraceReader) -> None:
        """Set the extractor that parses the next trace."""
        self._extractor = extractor

    def times(self) -> Sequence[float]:
        """Return the time of each frame in seconds; empty for images."""
        raise NotImplementedError

    @property
    def truth(self) -> GroundedTruth:
        """Return the ground truth of a procedural sample."""
        return self.sample.truth_as(GroundedTruth)

    def answer_only(self) -> ParsedTurn:
        """Return a turn with the right answer, without points."""
        return ParsedTurn(" The answer is visible.", answer=self.sample.answers[0])

    def grounded_turn(
        self, error: tuple[float, float] = (0.0, 0.0), further_frames: int = 0
    ) -> ParsedTurn:
        """Return the turn of a player that points, cites, and answers if its points are right.

        Args:
            error: The error of each point, (x, y), see `point`.
            further_frames: The number of frames by which a span is too long at each end.
        """
        raise NotImplementedError

    def concluded(self, said: Sequence[str], points: Sequence[PlacedPoint]) -> ParsedTurn:
        """Return a turn that states the conclusion and answers if all points hit.

        Args:
            said: The sentences of the reasoning that precede the conclusion.
            points: The points in these sentences.
        """
        if not all(point.hits for point in points):
            return ParsedTurn(f" {' '.join(said)} {NOTHING_THERE}", answer=GIVING_UP)
        thought = f" {' '.join(said)} {conclusion(self.truth)}"
        return ParsedTurn(thought, answer=self.sample.answers[0])

    def point(
        self, frame: int, number: int, error: tuple[float, float] = (0.0, 0.0)
    ) -> PlacedPoint:
        """Return a point for a thing, in the coordinates of the policy.

        The coordinates are multiples of 10 if the point then still is on the thing, otherwise
        multiples of 5, whole numbers, or numbers with one decimal: round numbers are easier to
        learn. A point beside the thing is rounded likewise, so that it stays beside the thing.

        Args:
            frame: The index of the frame.
            number: The index of the thing.
            error: The distance of the point from the middle of the thing, (x, y), in sides of the
                box around its visible pixels.
        """
        truth = self.truth
        name = truth.frames[frame][number].name
        left, top, right, bottom = truth.box(frame, number)
        middle = inner_pixel(truth, frame, number)
        x, y = middle[0] + error[0] * (right - left), middle[1] + error[1] * (bottom - top)
        x, y = min(max(x, 0.0), truth.width - 0.5), min(max(y, 0.0), truth.height - 0.5)
        hits = truth.shows(frame, name, x, y)
        across, down = self._scale()
        spots = [
            (10 * round(x * across / 10), 10 * round(y * down / 10)),
            (5 * round(x * across / 5), 5 * round(y * down / 5)),
            (int(x * across), int(y * down)),
            (round(x * across, 1), round(y * down, 1)),
        ]
        alike = (
            (x, y)
            for x, y in spots
            if x < truth.width * across
            and y < truth.height * down
            and truth.shows(frame, name, x / across, y / down) == hits
        )
        shown_x, shown_y = next(alike, spots[-1])
        return PlacedPoint(f'<point x="{shown_x}" y="{shown_y}" alt="{name}">{name}</point>', hits)

    # --------------------------------------------------------------------------- private helpers

    def _scale(self) -> tuple[float, float]:
        """Return the policy's coordinates per native pixel, horizontally and vertically."""
        native = self.sample.images[0].size
        if self.preset.coordinates == "relative1000":
            return 1000 / native[0], 1000 / native[1]
        shown = self._shown(0).size
        return shown[0] / native[0], shown[1] / native[1]

    def _shown(self, number: int) -> Image:
        return self.store.images[f"image_{number + 1}"]

    def _refer(self, turn: int, reasoning: str) -> Referred:
        if not self.sample.images:
            return Referred(turn, reasoning=reasoning)
        return refer(
            turn,
            read_references(reasoning, video=bool(self.times())),
            reasoning,
            native_size=self.sample.images[0].size,
            shown_size=self._shown(0).size,
            relative=1000 if self.preset.coordinates == "relative1000" else None,
        )

    async def _asked_events(self, turn: int, sample: Sample, reasoning: str) -> Iterable[Event]:
        if self._extractor is not None and sample.images:
            relative = 1000 if self.preset.coordinates == "relative1000" else None
            native, shown = sample.images[0].size, self._shown(0).size
            references = await self._extractor.extract(reasoning)
            referred = refer(
                turn, references, reasoning, native_size=native, shown_size=shown, relative=relative
            )
        else:
            referred = self._refer(turn, reasoning)
        if self._selector is None:
            return [referred, select_by_rules(sample, referred)]
        return [referred, await self._selector.select(sample, referred)]


def conclusion(truth: GroundedTruth) -> str:
    """Return a sentence that entails the right answer."""
    assert truth.asked is not None  # only episodes of an earlier world have none
    text = truth.asked.conclusion
    return f"{text[0].upper()}{text[1:]}."


def options_shown(sample: Sample) -> Sequence[str]:
    """Return the options of a sample, empty if it is an open question."""
    options: Any = getattr(sample.ground_truth, "options", ())
    return tuple(options)
