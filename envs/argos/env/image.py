"""Defines ArgosImage: reason about an image with points, then answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from typing_extensions import override

from visenv.grammar import ParsedTurn
from visenv.teacher import Teacher

from ..demonstrators import PointsBeside
from ..ground_truth import GroundedTruth
from .base import ArgosEnv


class ArgosImage(ArgosEnv):
    """The policy answers a question about an image, and points to the objects that it mentions.

    ### Description
    The policy writes one response: a reasoning with points, and an answer. The reward evaluates
    whether the answer is right, whether the points are on the named objects, and whether the
    reasoning supports the answer. The task is from "Multimodal Reinforcement Learning with Agentic
    Verifier for AI Agents" (Argos).

    ### Action space
    `Unicode`: ``<think>…</think><answer>…</answer>``, with points as
    ``<point x="12" y="34" alt="cup">cup</point>`` in pixels of the image as shown. The final answer
    is the last ``<|begin_of_box|>…<|end_of_box|>`` inside ``<answer>``; without a box, it is the
    whole content of ``<answer>``.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the image and the question.

    ### Starting state
    A sample that is drawn with the seed: a procedural scene, chart or map, or a row of a data set.

    ### Reward
    ``"argos"`` is the accuracy if it is below 0.5; otherwise it is the mean of accuracy, spatial
    score and reasoning score, at most 1 (`visenv.verifier`). ``"no_reasoning"`` and
    ``"no_grounding"`` omit a term, and ``"outcome"`` is the accuracy alone.

    ### Episode end
    The episode terminates after one turn. A malformed turn gets reward 0.

    ### Information
    ``info["step"].metrics`` contains ``accuracy`` and ``points`` (the number of points). In
    procedural scenes it also contains ``pointing_accuracy`` (the share of points that are on the
    named object) and ``label_recall`` (the share of the question's objects that have a point).

    ### Arguments
    See `visenv.envs.argos.make_image`.

    ### Version history
    v0: first release.
    """

    teachers: ClassVar[Mapping[str, type[Teacher[Any]]]] = MappingProxyType(
        {"points_beside": PointsBeside}
    )

    @override
    def times(self) -> Sequence[float]:
        """Return an empty tuple, because an image has no frames."""
        return ()

    @override
    def oracle_turn(self) -> ParsedTurn:
        """Point to the objects of the question, state the conclusion, and answer.

        The objects of a row of a data set are not known; the oracle only answers.
        """
        if not isinstance(self.sample.ground_truth, GroundedTruth):
            return self.answer_only()
        return self.grounded_turn()

    @override
    def grounded_turn(
        self, error: tuple[float, float] = (0.0, 0.0), further_frames: int = 0
    ) -> ParsedTurn:
        truth = self.truth
        numbers = dict.fromkeys(
            number for label in truth.targets for number in truth.named(0, label)
        )
        points = [self.point(0, number, error) for number in numbers]
        return self.concluded([f"Here: {point.tag}." for point in points], points)
