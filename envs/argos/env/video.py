"""Defines ArgosVideo: reason about a video with points and time spans, then answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from typing_extensions import override

from visenv.errors import DataError
from visenv.grammar import ParsedTurn
from visenv.teacher import Teacher
from visenv.types import Message
from visenv.verifier.selector import times_of

from ..demonstrators import LongSpans
from ..ground_truth import GroundedTruth
from ..presets import MAX_FRAMES
from .base import ArgosEnv, PlacedPoint


class ArgosVideo(ArgosEnv):
    """The policy answers a question about a video, and cites points, frames and time spans.

    ### Description
    The task is that of `ArgosImage`, with a video of at most 32 frames, which are announced as
    ``[F1 @ t=0.00s]``. A point belongs to the closest frame or time in its sentence, or in the
    clause before it. Events are cited with their spans. From "Multimodal Reinforcement Learning
    with Agentic Verifier for AI Agents" (Argos).

    ### Action space
    `Unicode`: ``<think>…</think><answer>…</answer>``, with points as in `ArgosImage` and anchors
    such as "frame 6", "4.47 seconds", "[F2 @ t=0.50s]", "from frame 7 to frame 20" and "frame 25
    onwards".

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the video and the question. Policies whose
    model has video tokens receive a `Video`, others its frames.

    ### Starting state
    A sample that is drawn with the seed: a procedural video, or a row of a data set.

    ### Reward
    The rewards are those of `ArgosImage`, with the temporal score instead of the spatial one. The
    temporal score is the mean of three means: over points, descriptions of frames and descriptions
    of spans.

    ### Episode end
    The episode terminates after one turn. A malformed turn gets reward 0.

    ### Information
    ``info["step"].metrics`` contains the metrics of `ArgosImage`, and ``temporal_iou`` (of the
    spans with the named events).

    ### Arguments
    See `visenv.envs.argos.make_video`.

    ### Version history
    v0: first release.
    """

    teachers: ClassVar[Mapping[str, type[Teacher[Any]]]] = MappingProxyType(
        {"long_spans": LongSpans}
    )

    @override
    def initial_messages(self) -> list[Message]:
        """Return the message with the video and the question.

        Raises:
            DataError: If the sample is not a video of 1 to 32 frames with a time for each.
        """
        frames, times = len(self.sample.images), len(self.times())
        if not 1 <= frames <= MAX_FRAMES or frames != times:
            raise DataError(
                f"Sample {self.sample.id!r} has {frames} frames and {times} times; ArgosVideo "
                f"shows videos of 1 to {MAX_FRAMES} frames with a time for each."
            )
        return super().initial_messages()

    @override
    def times(self) -> Sequence[float]:
        """Return the time of each frame in seconds."""
        return times_of(self.sample)

    @override
    def oracle_turn(self) -> ParsedTurn:
        """Cite the span and one point of each relevant event, state the conclusion, and answer.

        The events of a row of a data set are not known; the oracle only answers.
        """
        if not isinstance(self.sample.ground_truth, GroundedTruth):
            return self.answer_only()
        return self.grounded_turn()

    @override
    def grounded_turn(
        self, error: tuple[float, float] = (0.0, 0.0), further_frames: int = 0
    ) -> ParsedTurn:
        truth = self.truth
        said: list[str] = []
        points: list[PlacedPoint] = []
        for event in truth.events[: truth.key_events]:
            first = max(1, event.first + 1 - further_frames)
            last = min(len(truth.frames), event.last + 1 + further_frames)
            number = truth.named(event.first, event.names[0])[0]
            points.append(self.point(event.first, number, error))
            said.append(
                f"From frame {first} to frame {last}, {event.sentence}. "
                f"Here: {points[-1].tag} in frame {event.first + 1}."
            )
        cited = {event.names[0] for event in truth.events[: truth.key_events]}
        for target in truth.targets:
            if not any(name == target or name.endswith(f" {target}") for name in cited):
                number = truth.named(0, target)[0]
                points.append(self.point(0, number, error))
                said.append(f"Here: {points[-1].tag} in frame 1.")
        return self.concluded(said, points)
