r"""Computes the rewards of ARM-Thinker (arXiv 2512.05111, equations 4, 5) for plain questions.

The constants, reward names, format and counted calls are those of judging
(`visenv.envs.arm.rewards`). Instead of a verdict, which is right or wrong, there is s, the score of
the answer from 0 to 1 (ANLS and the VQA score are graded). For s of 0 and 1, the table equals that
of judging. Every cell is linear in s and never decreases, so that a better answer never pays less:

====================  =======  =============  ===========  =============
well-formed, and      stage 1  stage 2        no tool      fixed bonus
====================  =======  =============  ===========  =============
no call counts        0.3      0.3 + 0.7 s    0.3 + 0.7 s  0.3 + 0.7 s
a call counts         0.4      0.4 + 1.1 s    0.3 + 0.7 s  0.8 + 0.7 s
====================  =======  =============  ===========  =============

Under the published rule, a call can count for ``R_try`` and not for ``R_succ``; stage 2 then pays
0.4 + 0.6 s. Under the rule ``"evidence"``, if the evidence and the options of the sample are
known, stage 2 pays 0.3 + 0.7 s + 0.5 (s - (1 - s) p / (1 - p)) after the evidence was shown, where
p is the probability of a right guess, 1 over the number of options: a guess gains nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from visenv.rewards import RewardTerm, of_log
from visenv.types import EventLog, Sample

from .answer_judge import AnswerScore, score_of
from .rewards import (
    FORMAT_SUMMARY,
    R_ACCURACY,
    R_FORMAT,
    R_SUCCESS,
    R_TRY,
    TRIED_SUMMARY,
    EpisodeReading,
    format_share,
    lost_share,
    succeeded,
    tried,
)


@dataclass(frozen=True)
class AnswerRewards:
    """Computes the terms; all are 0 if the episode does not end in a well-formed answer.

    Args:
        rule: The score of an answer without a judge's score.
        reading: The rules by which an episode is evaluated.
    """

    rule: AnswerScore
    reading: EpisodeReading

    def terms(self, reward: str) -> list[RewardTerm]:
        """Return the terms of a reward of `visenv.envs.arm.rewards.REWARDS`."""
        form = RewardTerm("format", R_FORMAT, of_log(self.form), FORMAT_SUMMARY)
        answer = RewardTerm(
            "answer", R_ACCURACY, of_log(self.score), "Score of the answer, 0 to 1."
        )
        tried = RewardTerm("try", R_TRY, of_log(self.tried), TRIED_SUMMARY)
        in_vain = RewardTerm(
            "try",
            R_TRY,
            of_log(self.tried_in_vain),
            "1 minus the score of the answer if a tool call counts (`call_rule`), else 0; always 0 "
            "with the rule `evidence`.",
        )
        success = RewardTerm(
            "success",
            R_SUCCESS,
            of_log(self.score_with_success),
            "Score of the answer if a tool call with a result counts, else 0; with the rule "
            "`evidence`, a wrong answer costs what a lucky guess gains.",
        )
        bonus = RewardTerm("bonus", R_SUCCESS, of_log(self.tried), TRIED_SUMMARY)
        listed = {
            "stage1": [form, tried],
            "stage2": [form, answer, in_vain, success],
            "accuracy_format": [form, answer],
            "fixed_bonus": [form, answer, bonus],
        }
        return listed[reward]

    def form(self, log: EventLog, sample: Sample) -> float:
        """Return the share of well-formed turns."""
        return format_share(log, self.reading.compat)

    def score(self, log: EventLog, sample: Sample) -> float:
        """Return the score of the answer, s."""
        return score_of(log, sample, self.rule) if self.form(log, sample) else 0.0

    def tried(self, log: EventLog, sample: Sample) -> float:
        """Return 1 if a tool call counts."""
        return float(self.form(log, sample) > 0 and tried(log, sample, self.reading))

    def tried_in_vain(self, log: EventLog, sample: Sample) -> float:
        """Return 1 - s if a tool call counts, 0 if the reward is corrected for chance."""
        if self.reading.lost_by_guessing(sample) is not None:
            return 0.0
        return self.tried(log, sample) * (1 - self.score(log, sample))

    def score_with_success(self, log: EventLog, sample: Sample) -> float:
        """Return the score of the answer if a call with a result counts, otherwise 0.

        If the reward is corrected for chance, a wrong answer costs what a lucky guess gains.
        """
        if not self.form(log, sample):
            return 0.0
        score, shown = self.score(log, sample), succeeded(log, sample, self.reading)
        return score * shown - (1 - score) * lost_share(log, sample, self.reading, shown)
