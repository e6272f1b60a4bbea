"""The reward of Groundlight's paper (arXiv 2506.14821, §2.1 "Reward shaping").

``R = alpha R_c + beta R_f + gamma R_t`` with ``R_c = lambda R_a + (1 - lambda) R_e``; the paper's
best run had alpha = 1, beta = 1, gamma = 0.1, lambda = 0.5. Each part is one named term.

==========  ======  ============================================================================
term        weight  score, 0 to 1
==========  ======  ============================================================================
``vqa``     0.5     R_a, the data set's own score of the answer
``soft``    0.5     R_e, mean edit similarity to the three closest reference answers
``format``  1.0     R_f, mean over turns of `format_score`
``tool``    0.1     R_t, successful tool calls over attempted ones, 0 when none was attempted
==========  ======  ============================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

from visenv.grammar.key_value import scan
from visenv.rewards import RewardTerm, of_log
from visenv.rewards.text import soft_score
from visenv.types import Log, Sample

Compat = Literal["r1_vlm"] | None
AnswerScore = Callable[[str, Sample], float]

ALPHA, BETA, GAMMA, LAMBDA = 1.0, 1.0, 0.1, 0.5


def paper_terms(answer_score: AnswerScore, compat: Compat) -> list[RewardTerm]:
    """The paper's four terms with its weights.

    Args:
        answer_score: Scores an answer against a sample, 0 to 1.
        compat: ``"r1_vlm"`` reproduces the public code's spacing check, which is always passed,
            and its edit score of two empty strings, 0.
    """
    return [
        RewardTerm("vqa", ALPHA * LAMBDA, of_log(partial(_exact, answer_score=answer_score))),
        RewardTerm("soft", ALPHA * (1 - LAMBDA), of_log(partial(_soft, compat=compat))),
        RewardTerm("format", BETA, of_log(partial(_format, compat=compat))),
        RewardTerm("tool", GAMMA, of_log(tool_success)),
    ]


def _exact(log: Log, sample: Sample, answer_score: AnswerScore) -> float:
    return 0.0 if log.answer is None else answer_score(log.answer, sample)


def _soft(log: Log, sample: Sample, compat: Compat) -> float:
    return 0.0 if log.answer is None else soft_score(log.answer, sample.answers, compat=compat)


def _format(log: Log, sample: Sample, compat: Compat) -> float:
    scores = [format_score(turn.text, compat) for turn in log.turns]
    return sum(scores) / len(scores)


def format_score(text: str, compat: Compat = None) -> float:
    """How well one turn is formed, 0 to 1 (R_f before averaging).

    0.4 for a thought and exactly one of tool call and answer; 0.2 when only white space stands
    outside the tags (the public code's check of this is always true); 0.2 when the turn begins
    with the thought; 0.2 when it ends with the closing tag of its call or answer.
    """
    blocks = scan(text)
    actions = len(blocks.calls) + len(blocks.answers)
    whole = len(blocks.thoughts) == 1 and actions == 1 and not blocks.unclosed
    spaced = compat == "r1_vlm" or (not blocks.unclosed and not blocks.outside.strip())
    stripped = text.strip()
    begins = stripped.startswith("<think>")
    ending = "</tool>" if blocks.calls else "</answer>"
    ends = actions > 0 and stripped.endswith(ending)
    return 0.4 * whole + 0.2 * spaced + 0.2 * begins + 0.2 * ends


def tool_success(log: Log, sample: Sample) -> float:
    """Successful over attempted tool calls, from events: text cannot fake one."""
    calls = log.tool_calls
    return sum(call.ok for call in calls) / len(calls) if calls else 0.0
