"""Computes the reward of Groundlight's paper (arXiv 2506.14821, §2.1 "Reward shaping").

``R = alpha R_c + beta R_f + gamma R_t`` with ``R_c = lambda R_a + (1 - lambda) R_e``; the paper's
best run had alpha = 1, beta = 1, gamma = 0.1, lambda = 0.5 (`RewardWeights`). Each part is one
term; the weights below are those of that run.

==========  ======  ============================================================================
term        weight  score, 0 to 1
==========  ======  ============================================================================
``vqa``     0.5     R_a, the data set's own score of the answer
``soft``    0.5     R_e, mean edit similarity to the three closest reference answers
``format``  1.0     R_f, mean over turns of `format_score`
``tool``    0.1     R_t, successful tool calls over attempted ones, 0 when none was attempted
==========  ======  ============================================================================

In procedural scenes, where the deciding detail and all answers are known, ``tool`` is paid only if
a crop contained the detail (``tool_rule="evidence"``), and is corrected for chance: after a wrong
answer it is -R_t / (K - 1), where K is the number of possible answers. A policy that guesses
therefore gains nothing by a call. ``tool_rule="published"`` pays R_t for any call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Real
from typing import Literal, NamedTuple

from visenv.errors import ConfigurationError
from visenv.grammar.blocks import TagBlocks
from visenv.grammar.key_value import scan
from visenv.rewards import RewardTerm, of_log
from visenv.rewards.vqa import soft_score
from visenv.types import EventLog, QuestionTruth, Sample

Compat = Literal["r1_vlm"] | None
ToolRule = Literal["published", "evidence"]
AnswerScore = Callable[[str, Sample], float]

Scan = Callable[[str], TagBlocks]
"""Splits a turn at the tags of a grammar."""


_SHOWN = 0.9
"""Minimum share of the deciding detail that a crop must contain to show it."""


class RewardWeights(NamedTuple):
    """Holds the weights of the reward; the defaults are those of the paper's best run.

    Attributes:
        alpha: Weight of the correctness reward R_c.
        beta: Weight of the format reward R_f.
        gamma: Weight of the tool reward R_t.
        lambda_: Share of the exact score R_a in R_c, 0 to 1; the rest is the soft score R_e.
    """

    alpha: float = 1.0
    beta: float = 1.0
    gamma: float = 0.1
    lambda_: float = 0.5

    def check(self) -> None:
        """Check the weights.

        Raises:
            ConfigurationError: If a weight is not a number, below 0 or not finite, or `lambda_` is
                above 1.
        """
        if not all(map(_is_weight, self)) or self.lambda_ > 1:
            raise ConfigurationError(
                "alpha, beta and gamma must be finite numbers of at least 0, and lambda_ a number "
                f"from 0 to 1, got {tuple(self)!s:.200}."
            )


def _is_weight(value: float) -> bool:
    return isinstance(value, Real) and 0 <= value <= sys.float_info.max


def paper_terms(
    answer_score: AnswerScore,
    compat: Compat,
    weights: RewardWeights = RewardWeights(),  # noqa: B008 - immutable
    scan_turn: Scan = scan,
    tool_rule: ToolRule = "published",
) -> list[RewardTerm]:
    """Return the paper's four terms with its weights.

    Args:
        answer_score: Scores an answer against a sample, 0 to 1.
        weights: The weights of the terms.
        scan_turn: Splits a turn at the tags of the environment's grammar.
        compat: ``"r1_vlm"`` reproduces the public code's spacing check, which is always passed,
            and its edit score of two empty strings, 0.
        tool_rule: ``"published"`` pays every successful call, ``"evidence"`` only a crop that
            contains the detail; see the module.
    """
    if tool_rule == "published":
        tool = of_log(tool_success)
    else:
        tool = of_log(partial(shown_success, answer_score=answer_score))
    alpha, beta, gamma, lambda_ = weights
    return [
        RewardTerm(
            "vqa",
            alpha * lambda_,
            of_log(partial(_exact, answer_score=answer_score)),
            "Score of the answer by the rule of the data set, 0 to 1; 1 if the answer is exact.",
        ),
        RewardTerm(
            "soft",
            alpha * (1 - lambda_),
            of_log(partial(_soft, compat=compat)),
            "Mean edit similarity of the answer to the three most similar reference answers, "
            "0 to 1.",
        ),
        RewardTerm(
            "format",
            beta,
            of_log(partial(_format, compat=compat, scan_turn=scan_turn)),
            "Mean format score of the turns, 0 to 1; a turn of one thought and one action, and "
            "nothing else, scores 1.",
        ),
        RewardTerm(
            "tool",
            gamma,
            tool,
            "Share of the tool calls that succeeded, 0 to 1; 0 if no tool was called. With the "
            "rule `evidence`, 0 if no crop contained the detail, below 0 if the answer is wrong.",
        ),
    ]


def _exact(log: EventLog, sample: Sample, answer_score: AnswerScore) -> float:
    return 0.0 if log.answer is None else answer_score(log.answer, sample)


def _soft(log: EventLog, sample: Sample, compat: Compat) -> float:
    return 0.0 if log.answer is None else soft_score(log.answer, sample.answers, compat=compat)


def _format(log: EventLog, sample: Sample, compat: Compat, scan_turn: Scan) -> float:
    scores = [format_score(turn.text, compat, scan_turn) for turn in log.turns]
    return sum(scores) / len(scores)


def format_score(text: str, compat: Compat = None, scan_turn: Scan = scan) -> float:
    """Return the format score of one turn, 0 to 1 (R_f before averaging).

    The score is the sum of 0.4 for a thought and exactly one of tool call and answer; 0.2 if there
    is only white space outside the tags (always paid by the public code's check); 0.2 if the turn
    begins with the thought; 0.2 if it ends with the closing tag of its call or answer.
    """
    blocks = scan_turn(text)
    actions = len(blocks.calls) + len(blocks.answers)
    whole = len(blocks.thoughts) == 1 and actions == 1 and not blocks.unclosed
    spaced = compat == "r1_vlm" or (not blocks.unclosed and not blocks.outside.strip())
    stripped = text.strip()
    begins = stripped.startswith("<think>")
    ending = f"</{blocks.call_tags[-1]}>" if blocks.calls else "</answer>"
    ends = actions > 0 and stripped.endswith(ending)
    return 0.4 * whole + 0.2 * spaced + 0.2 * begins + 0.2 * ends


def tool_success(log: EventLog, sample: Sample) -> float:
    """Return the share of tool calls that succeeded, from events, which a text cannot fake."""
    calls = log.tool_calls
    return sum(call.ok for call in calls) / len(calls) if calls else 0.0


def shown_success(log: EventLog, sample: Sample, answer_score: AnswerScore) -> float:
    """Return `tool_success` if a crop contained the detail, corrected for chance.

    The mean over all answers is 0, so that a guess gains nothing by a call.
    """
    truth = sample.truth_as(QuestionTruth)
    box = truth.detail_box or truth.target_box
    crops = [call.detail["box"] for call in log.tool_calls if call.ok]
    if box is None or not any(_contains(crop, box) for crop in crops):
        return 0.0
    right = [answer_score(option, sample) for option in truth.options]
    chance = sum(right) / len(right) if right else 0.0
    score = _exact(log, sample, answer_score)
    over_chance = (score - chance) / (1 - chance) if chance < 1 else 0.0
    return tool_success(log, sample) * over_chance


def _contains(crop: Sequence[float], box: Sequence[float]) -> bool:
    """Return whether a crop contains at least `_SHOWN` of a box."""
    across = min(crop[2], box[2]) - max(crop[0], box[0])
    down = min(crop[3], box[3]) - max(crop[1], box[1])
    area = (box[2] - box[0]) * (box[3] - box[1])
    return across > 0 and down > 0 and across * down >= _SHOWN * area
