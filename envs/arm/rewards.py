r"""The rewards of ARM-Thinker (arXiv 2512.05111, equations 4 and 5), and its ablation's other arms.

Constants as published in code: ``R_f`` 0.3 (format), ``R_try`` 0.1, ``R_a`` 0.7 (right verdict),
``R_succ`` 0.5. An episode whose turns are not all well-formed gets 0 in every arm.

======================================  =======  =======  ===========  ===========
well-formed, and                        stage 1  stage 2  no tool      fixed bonus
======================================  =======  =======  ===========  ===========
wrong, no tool called                   0.3      0.3 *    0.3          0.3
wrong, a tool called                    0.4      0.4      0.3          0.8
right, no tool called                   0.3      1.0      1.0          1.0
right, tools called, none with success  0.4      1.0      1.0          1.5
right, a tool called with success       0.4      1.5      1.0          1.5
======================================  =======  =======  ===========  ===========

\* Equation 5 leaves this case out; 0.3 is what the public code pays.

``"accuracy_format"`` ("no tool") and ``"fixed_bonus"`` are the two other arms of figure 4. The
paper gives no size for the fixed bonus: ours is ``R_succ``, so that it can pay as much as stage 2.
Everything is read from the event log. ``compat="arm"`` reads the policy's own text instead, as the
public reward does, markers that it can write itself included, and looks at the last turn's form
alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from visenv.errors import UnknownNameError
from visenv.grammar.tool_call import Compat, scan
from visenv.rewards import RewardTerm, of_log
from visenv.types import Log, Malformed, Sample

from .datasets.rewardbench2 import rating_of
from .ground_truth import JudgingTruth
from .verdicts import read_verdict, verdict_of_rating

R_FORMAT, R_TRY, R_ACCURACY, R_SUCCESS = 0.3, 0.1, 0.7, 0.5

ARM_MARKERS = (
    "This is the zoom-in image",
    "Concatenated page images for query",
    "Here is page image #",
)
"""What the public reward takes as the sign of a successful tool call, wherever it stands."""

_ARM_THOUGHT_TO_ANSWER = re.compile(r"</think>\s*<answer>", re.IGNORECASE)
_ARM_BANNED = re.compile(r"</?tool_call>", re.IGNORECASE)


def terms(reward: str, compat: Compat = None) -> list[RewardTerm]:
    """The named terms of a reward; each is 0 or 1 and its weight one of the constants.

    Args:
        reward: ``"stage1"``, ``"stage2"``, ``"accuracy_format"`` or ``"fixed_bonus"``.
        compat: See the module.

    Raises:
        UnknownNameError: If there is no such reward.
    """
    if reward not in REWARDS:
        raise UnknownNameError("reward", reward, [*REWARDS, "outcome"])
    return [
        RewardTerm(name, weight, of_log(partial(_paid, score=score, compat=compat)))
        for name, weight, score in REWARDS[reward]
    ]


def well_formed(log: Log, compat: Compat = None) -> bool:
    """Whether every turn is one thought and one action, and nothing else, and the last an answer.

    With ``compat="arm"`` the last turn alone is looked at.
    """
    if log.answer is None:
        return False
    if compat == "arm":
        return _published_form(log.turns[-1].text)
    malformed = any(type(event) is Malformed for event in log)
    return not malformed and all(_whole(turn.text) for turn in log.turns)


def right(log: Log, sample: Sample, compat: Compat = None) -> bool:
    """Whether the verdict is the sample's; of a rating, whether it lies in the right half."""
    if log.answer is None:
        return False
    truth = sample.truth_as(JudgingTruth)
    if truth.rating is not None:
        verdict = verdict_of_rating(rating_of(log.answer, truth.rating), truth.rating)
    else:
        verdict = read_verdict(log.answer, len(truth.candidates), compat)
    return verdict in sample.answers


def tried(log: Log, compat: Compat = None) -> bool:
    """Whether a tool was called, with success or without."""
    if compat == "arm":
        return bool(log.tool_calls) or any("<tool_response>" in turn.text for turn in log.turns)
    return bool(log.tool_calls)


def succeeded(log: Log, compat: Compat = None) -> bool:
    """Whether a tool returned a result."""
    if compat == "arm" and any(mark in turn.text for turn in log.turns for mark in ARM_MARKERS):
        return True
    return any(call.ok for call in log.tool_calls)


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
    """A thought, an answer, and no tag of a call, whatever else they hold; linear in the text."""
    turn = text.strip()
    opening, inside, closing = turn[:7].lower(), turn[7:-9], turn[-9:].lower()
    return (
        (opening, closing) == ("<think>", "</answer>")
        and _ARM_THOUGHT_TO_ANSWER.search(inside) is not None
        and _ARM_BANNED.search(turn) is None
    )


def _paid(
    log: Log, sample: Sample, score: Callable[[Log, Sample, Compat], bool], compat: Compat
) -> float:
    return float(well_formed(log, compat) and score(log, sample, compat))


def _always(log: Log, sample: Sample, compat: Compat) -> bool:
    return True


def _tried(log: Log, sample: Sample, compat: Compat) -> bool:
    return tried(log, compat)


def _tried_in_vain(log: Log, sample: Sample, compat: Compat) -> bool:
    return tried(log, compat) and not right(log, sample, compat)


def _succeeded_and_right(log: Log, sample: Sample, compat: Compat) -> bool:
    return succeeded(log, compat) and right(log, sample, compat)


_FORMAT = ("format", R_FORMAT, _always)
_ACCURACY = ("verdict", R_ACCURACY, right)

REWARDS: dict[str, tuple[tuple[str, float, Callable[[Log, Sample, Compat], bool]], ...]] = {
    "stage1": (_FORMAT, ("try", R_TRY, _tried)),
    "stage2": (
        _FORMAT,
        _ACCURACY,
        ("try", R_TRY, _tried_in_vain),
        ("success", R_SUCCESS, _succeeded_and_right),
    ),
    "accuracy_format": (_FORMAT, _ACCURACY),
    "fixed_bonus": (_FORMAT, _ACCURACY, ("bonus", R_SUCCESS, _tried)),
}
"""Name -> its terms: name, weight, and what pays it in a well-formed episode."""

TOP = {"stage1": 0.4, "stage2": 1.5, "accuracy_format": 1.0, "fixed_bonus": 1.5}
"""Name -> the largest reward there is: the table's best cell."""
