r"""Computes the rewards of ARM-Thinker (arXiv 2512.05111, equations 4 and 5), and its ablation's.

Constants are as published in code: ``R_f`` 0.3 (format), ``R_try`` 0.1, ``R_a`` 0.7 (right
verdict), ``R_succ`` 0.5. An episode whose last turn is not a well-formed answer gets 0 with every
reward. Each turn has an equal share of ``R_f``, which is lost if the turn is malformed, even if the
policy corrects it.

======================================  =======  =======  ===========  ===========
well-formed, and                        stage 1  stage 2  no tool      fixed bonus
======================================  =======  =======  ===========  ===========
wrong, no call counts                   0.3      0.3 *    0.3          0.3
wrong, a call counts                    0.4      0.4 **   0.3          0.8
right, no call counts                   0.3      1.0      1.0          1.0
right, a call counts                    0.4      1.5      1.0          1.5
======================================  =======  =======  ===========  ===========

\* Equation 5 does not define this case; the public code pays 0.3.

\*\* With the call rule ``"evidence"``, if the evidence of the sample is known, this case pays
0.3 - 0.5 / (n - 1), where n is the number of possible verdicts: -0.2 for two. A policy that guesses
after it has seen the evidence is right in 1 of n episodes. It gains 0.5 in these and loses
0.5 / (n - 1) in the others, so that its mean is that of a guess without a call. A policy that is
right more often gains from looking. The same is paid after a query in the document of the sample
that did not show the evidence, see `visenv.envs.arm.evidence`.

`CallRule` (`visenv.envs.arm.evidence`) defines which calls count: ``"evidence"`` is the default of
procedural samples, ``"belongs"`` of others. With ``"published"``, any call counts for ``R_try`` and
the bonus, and any call that returned a result for ``R_succ``, so that useless calls are rewarded.

``"accuracy_format"`` ("no tool") and ``"fixed_bonus"`` are the two other rewards of figure 4. The
paper gives no size for the fixed bonus; ours is ``R_succ``, so that its maximum equals that of
stage 2. All rewards are computed from the event log. With ``compat="arm"`` they are computed from
the policy's own text, as in the public reward: markers that the policy writes itself count, only
the format of the last turn is checked, and the published rule is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from visenv.errors import UnknownNameError
from visenv.grammar.tool_call import Compat, scan
from visenv.rewards import RewardTerm, of_log
from visenv.types import EventLog, Malformed, Sample

from .datasets.rewardbench2 import rating_of
from .evidence import CallRule, chance_of, knows_evidence, searched, useful
from .ground_truth import JudgingTruth
from .verdicts import read_verdict, verdict_of_rating

R_FORMAT, R_TRY, R_ACCURACY, R_SUCCESS = 0.3, 0.1, 0.7, 0.5

ARM_MARKERS = (
    "This is the zoom-in image",
    "Concatenated page images for query",
    "Here is page image #",
)
"""Text by which the public reward recognizes a successful tool call, at any position."""

_ARM_THOUGHT_TO_ANSWER = re.compile(r"</think>\s*<answer>", re.IGNORECASE)
_ARM_BANNED = re.compile(r"</?tool_call>", re.IGNORECASE)

Score = Callable[[EventLog, Sample, "EpisodeReading", float], float]
"""Computes the score of a term, at most 1; the number is the share of well-formed turns."""


class EpisodeReading(NamedTuple):
    """Describes how an episode is evaluated: the compatibility mode, and the calls that count."""

    compat: Compat = None
    call_rule: CallRule = "belongs"

    @classmethod
    def of(cls, compat: Compat, call_rule: CallRule) -> EpisodeReading:
        """Return the rules; with ``compat="arm"`` the call rule is always the published one."""
        return cls(compat, "published" if compat else call_rule)

    def lost_by_guessing(self, sample: Sample) -> float | None:
        """Return how much of the success score a wrong answer after the evidence costs.

        It is p / (1 - p) for the probability p of a right guess, so that guesses gain nothing. None
        if the reward of this sample is not corrected for chance, because another rule is used, or
        the evidence or the possible answers are unknown.
        """
        if self.call_rule != "evidence" or not knows_evidence(sample):
            return None
        chance = chance_of(sample)
        return chance / (1 - chance) if chance else None


def terms(reward: str, reading: EpisodeReading) -> list[RewardTerm]:
    """Return the named terms of a reward; each is at most 1 and its weight one of the constants.

    Args:
        reward: ``"stage1"``, ``"stage2"``, ``"accuracy_format"`` or ``"fixed_bonus"``.
        reading: The rules by which an episode is evaluated.

    Raises:
        UnknownNameError: If there is no such reward.
    """
    if reward not in REWARDS:
        raise UnknownNameError("reward", reward, [*REWARDS, "outcome"])
    return [
        RewardTerm(name, weight, of_log(partial(_paid, score=score, reading=reading)), summary)
        for name, weight, score, summary in REWARDS[reward]
    ]


def format_share(log: EventLog, compat: Compat = None) -> float:
    """Return the share of well-formed turns, 0 to 1; 0 if the last one is no well-formed answer.

    A turn is well-formed if it is exactly one thought and one action, and the environment could
    execute the action. With ``compat="arm"`` only the last turn is checked.
    """
    if log.answer is None:
        return 0.0
    if compat == "arm":
        return float(_published_form(log.turns[-1].text))
    malformed = {event.turn for event in log if type(event) is Malformed}
    whole = [turn.turn not in malformed and _whole(turn.text) for turn in log.turns]
    return sum(whole) / len(whole) if whole[-1] else 0.0


def right(log: EventLog, sample: Sample, compat: Compat = None) -> bool:
    """Return whether the verdict is right, or the rating is in the right half of the scale."""
    if log.answer is None:
        return False
    truth = sample.truth_as(JudgingTruth)
    if truth.rating is not None:
        verdict = verdict_of_rating(rating_of(log.answer, truth.rating), truth.rating)
    else:
        verdict = read_verdict(log.answer, len(truth.candidates), compat)
    return verdict in sample.answers


def tried(log: EventLog, sample: Sample, reading: EpisodeReading) -> bool:
    """Return whether a call counts; under the published rule every call does."""
    if reading.call_rule != "published":
        return useful(log, sample, reading.call_rule)
    spoofed = reading.compat == "arm" and any("<tool_response>" in each.text for each in log.turns)
    return spoofed or bool(log.tool_calls)


def succeeded(log: EventLog, sample: Sample, reading: EpisodeReading) -> bool:
    """Return whether a tool was called with a result that counts."""
    if reading.compat == "arm" and any(
        mark in turn.text for turn in log.turns for mark in ARM_MARKERS
    ):
        return True
    return useful(log, sample, reading.call_rule)


def lost_share(log: EventLog, sample: Sample, reading: EpisodeReading, shown: bool) -> float:
    """Return the share of the success score that a wrong answer costs.

    Args:
        log: The events of the episode.
        sample: The sample of the episode.
        reading: The rules by which the episode is evaluated.
        shown: Whether a call with a result counts.
    """
    lost = reading.lost_by_guessing(sample)
    return lost if lost is not None and (shown or searched(log, sample)) else 0.0


def _whole(text: str) -> bool:
    blocks = scan(text)
    actions = len(blocks.calls) + len(blocks.answers)
    return (
        len(blocks.thoughts) == actions == 1
        and not blocks.unclosed
        and not blocks.outside.strip()
        and text.lstrip().startswith("<think>")
    )


def _published_form(text: str) -> bool:
    """Return whether the text is a thought and an answer without the tag of a call."""
    turn = text.strip()
    opening, inside, closing = turn[:7].lower(), turn[7:-9], turn[-9:].lower()
    return (
        (opening, closing) == ("<think>", "</answer>")
        and _ARM_THOUGHT_TO_ANSWER.search(inside) is not None
        and _ARM_BANNED.search(turn) is None
    )


def _paid(log: EventLog, sample: Sample, score: Score, reading: EpisodeReading) -> float:
    """Return the score of a term if the episode ends in a well-formed answer, otherwise 0."""
    share = format_share(log, reading.compat)
    return score(log, sample, reading, share) if share else 0.0


def _format(log: EventLog, sample: Sample, reading: EpisodeReading, share: float) -> float:
    return share


def _right(log: EventLog, sample: Sample, reading: EpisodeReading, share: float) -> float:
    return float(right(log, sample, reading.compat))


def _tried(log: EventLog, sample: Sample, reading: EpisodeReading, share: float) -> float:
    return float(tried(log, sample, reading))


def _tried_in_vain(log: EventLog, sample: Sample, reading: EpisodeReading, share: float) -> float:
    if reading.lost_by_guessing(sample) is not None:
        return 0.0
    return float(tried(log, sample, reading) and not right(log, sample, reading.compat))


def _succeeded_and_right(
    log: EventLog, sample: Sample, reading: EpisodeReading, share: float
) -> float:
    shown = succeeded(log, sample, reading)
    if right(log, sample, reading.compat):
        return float(shown)
    return -lost_share(log, sample, reading, shown)


FORMAT_SUMMARY = (
    "Share of the turns that are well-formed; this and every other term is 0 if the last turn is "
    "not a well-formed answer."
)
TRIED_SUMMARY = "1 if a tool call counts (`call_rule`), else 0."

_FORMAT = ("format", R_FORMAT, _format, FORMAT_SUMMARY)
_ACCURACY = ("verdict", R_ACCURACY, _right, "1 if the verdict is right, else 0.")
_IN_VAIN = (
    "1 if a tool call counts (`call_rule`) but the verdict is wrong, else 0; always 0 with the "
    "rule `evidence`."
)
_SUCCESS = (
    "1 if the verdict is right and a tool call with a result counts, else 0. With the rule "
    "`evidence`, a wrong verdict after the evidence or a query is -1 / (number of verdicts - 1)."
)

REWARDS: dict[str, tuple[tuple[str, float, Score, str], ...]] = {
    "stage1": (_FORMAT, ("try", R_TRY, _tried, TRIED_SUMMARY)),
    "stage2": (
        _FORMAT,
        _ACCURACY,
        ("try", R_TRY, _tried_in_vain, _IN_VAIN),
        ("success", R_SUCCESS, _succeeded_and_right, _SUCCESS),
    ),
    "accuracy_format": (_FORMAT, _ACCURACY),
    "fixed_bonus": (_FORMAT, _ACCURACY, ("bonus", R_SUCCESS, _tried, TRIED_SUMMARY)),
}
"""The terms of each reward by name: name, weight, score in a well-formed episode, and summary."""

TOP = {"stage1": 0.4, "stage2": 1.5, "accuracy_format": 1.0, "fixed_bonus": 1.5}
"""The maximum of each reward by name, the largest cell in its column."""
