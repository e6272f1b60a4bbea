r"""The rewards of ARM-Thinker (arXiv 2512.05111, equations 4 and 5) for plain questions.

The constants, the names of the rewards, the format and the calls that count are those of judging
(`visenv.envs.arm.rewards`). In place of the verdict, which is right or wrong, s is the score of the
answer from 0 to 1 (ANLS and the VQA score are graded). For s of 0 and 1 the table is that of
judging; between, every cell is linear in s, so that a better answer is never worth less:

====================  =======  =============  ===========  =============
well-formed, and      stage 1  stage 2        no tool      fixed bonus
====================  =======  =============  ===========  =============
no call counts        0.3      0.3 + 0.7 s    0.3 + 0.7 s  0.3 + 0.7 s
a call counts         0.4      0.4 + 1.1 s    0.3 + 0.7 s  0.8 + 0.7 s
====================  =======  =============  ===========  =============

Under the published rule, where a call can count for ``R_try`` and not for ``R_succ``, stage 2 pays
0.4 + 0.6 s for such calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from visenv.rewards import RewardTerm, of_log
from visenv.types import EventLog, Sample

from .answers import AnswerScore, score_of
from .rewards import (
    R_ACCURACY,
    R_FORMAT,
    R_SUCCESS,
    R_TRY,
    EpisodeReading,
    format_share,
    succeeded,
    tried,
)


@dataclass(frozen=True)
class AnswerRewards:
    """The values of the terms; all are 0 where the episode does not end in a well-formed answer.

    Args:
        rule: The score of an answer that no judge has scored.
        reading: How an episode is read, and which tool calls count.
    """

    rule: AnswerScore
    reading: EpisodeReading

    def terms(self, reward: str) -> list[RewardTerm]:
        """Return the terms of a reward of `visenv.envs.arm.rewards.REWARDS`."""
        answer = ("answer", R_ACCURACY, self.score)
        listed: dict[str, tuple[tuple[str, float, Callable[[EventLog, Sample], float]], ...]] = {
            "stage1": (("try", R_TRY, self.tried),),
            "stage2": (
                answer,
                ("try", R_TRY, self.tried_in_vain),
                ("success", R_SUCCESS, self.score_with_success),
            ),
            "accuracy_format": (answer,),
            "fixed_bonus": (answer, ("bonus", R_SUCCESS, self.tried)),
        }
        named = (("format", R_FORMAT, self.form), *listed[reward])
        return [RewardTerm(name, weight, of_log(value)) for name, weight, value in named]

    def form(self, log: EventLog, sample: Sample) -> float:
        """Return the share of well-formed turns."""
        return format_share(log, self.reading.compat)

    def score(self, log: EventLog, sample: Sample) -> float:
        """Return the score of the answer, s."""
        return score_of(log, sample, self.rule) if self.form(log, sample) else 0.0

    def tried(self, log: EventLog, sample: Sample) -> float:
        """Return 1 if a tool was called in a way that counts."""
        return float(self.form(log, sample) > 0 and tried(log, sample, self.reading))

    def tried_in_vain(self, log: EventLog, sample: Sample) -> float:
        """Return 1 - s if a tool was called in a way that counts."""
        return self.tried(log, sample) * (1 - self.score(log, sample))

    def score_with_success(self, log: EventLog, sample: Sample) -> float:
        """Return the score of the answer if a call with a result counts."""
        return self.score(log, sample) * succeeded(log, sample, self.reading)
