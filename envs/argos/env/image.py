"""ArgosImage: reason about an image with points, then answer."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from visenv.grammar import ParsedTurn

from .base import ArgosEnv


class ArgosImage(ArgosEnv):
    """Answer a question about an image, pointing to what the reasoning mentions.

    ### Description
    The policy writes one response: a reasoning whose points can be checked, and an answer. The
    reward asks whether the answer is right, whether the points lie on what they name, and whether
    the reasoning supports the answer. From "Multimodal Reinforcement Learning with Agentic Verifier
    for AI Agents" (Argos).

    ### Action space
    `Unicode`: ``<think>…</think><answer>…</answer>``, with points as
    ``<point x="12" y="34" alt="cup">cup</point>`` in pixels of the image as shown. The final answer
    is the last ``<|begin_of_box|>…<|end_of_box|>`` inside ``<answer>``, otherwise all of it.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the image and the question.

    ### Starting state
    A sample drawn by the seed: a procedural scene, chart or map, or a row of the data set named.

    ### Reward
    ``"argos"``: the accuracy if it is below 0.5, otherwise the mean of accuracy, spatial score and
    reasoning score; at most 1 (`visenv.verifier`). ``"no_reasoning"`` and ``"no_grounding"`` leave
    out a term, ``"outcome"`` is the accuracy alone.

    ### Episode end
    Terminated by the turn; a malformed one gets 0.

    ### Information
    ``info["step"].metrics``: ``accuracy`` and ``points`` (their number); in procedural scenes also
    ``pointing_accuracy`` (the share of points on what they name) and ``label_recall`` (the share of
    what the question is about that is pointed to).

    ### Arguments
    See `visenv.envs.argos.make_image`.

    ### Version history
    v0: first release.
    """

    @override
    def times(self) -> Sequence[float]:
        """Return nothing: there is one moment."""
        return ()

    @override
    def oracle_turn(self) -> ParsedTurn:
        """Point to what the question is about, say what follows, and answer."""
        truth = self.truth
        numbers = dict.fromkeys(
            number for label in truth.targets for number in truth.named(0, label)
        )
        answer = self.sample.answers[0]
        said = " ".join(f"Here: {self.point(0, number)}." for number in numbers)
        return ParsedTurn(f" {said} {conclusion(self)}", answer=answer)


def conclusion(env: ArgosEnv) -> str:
    """Return the sentence from which the right answer follows."""
    answer = env.sample.answers[0]
    each = next(each for each in env.truth.entailments if each.answer == answer)
    return f"{each.statement[0].upper()}{each.statement[1:]}."
