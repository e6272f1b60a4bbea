"""`visenv eval ENV --policy …`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from visenv.cli.arguments import (
    EPISODES_FILE,
    DataName,
    EnvName,
    PolicyName,
    Settings,
    check_at_least,
    new_output,
)
from visenv.makers import env_id, env_maker, make_policy
from visenv.types import Episode, Sampling

if TYPE_CHECKING:
    from visenv.evaluation.summary import Summary


@dataclass(frozen=True)
class Evaluate:
    """Evaluate a policy on every row of a data set, or on held-out procedural scenes.

    The table has a row for each group of the data (kind, or track and tag), with 95 % intervals.
    Rows that cannot be read are listed, as are episodes that a failure aborted; neither counts in
    the means.
    """

    env: EnvName
    """Id (visenv/ may be left out), module:Id or module:Class; or a file of saved episodes (.jsonl)
    to sum up again."""
    policy: PolicyName = "oracle"
    """Name of a policy (visenv list), or module:Class."""
    policy_option: Settings = field(default_factory=list)
    """An argument of the policy; may be given several times."""
    data: DataName = None
    """Data set, for example vstar:<folder>."""
    option: Settings = field(default_factory=list)
    """An argument of the environment; may be given several times."""
    episodes: int | None = None
    """How many; all rows of a data set, or 256 scenes, by default."""
    temperature: float = 0.0
    """Sampling temperature; 0 is greedy."""
    max_tokens: int = 2048
    """Most tokens in a turn."""
    judge: str | None = None
    """A scorer that also judges the answers, for example openai:gpt-4o or
    rules:module:function; adds the metric "judge"."""
    out: Path | None = None
    """Folder for the table (summary.md, .csv, .json), items.csv and episodes.jsonl; a new one."""

    def run(self) -> None:
        """Play, print the table, and write it where asked."""
        from visenv.cli.tables import print_summary

        check_at_least(1, episodes=self.episodes, max_tokens=self.max_tokens)
        check_at_least(0, temperature=self.temperature)
        if self.out is not None:
            new_output(self.out)  # fails before the work, not after it
        episodes, summary = self._play()
        print_summary(summary)
        for item, status, reason in summary.failures:
            if status != "unanswered":  # the table counts those; the files list them
                print(f"{status}: {item}: {reason}")
        if self.out is not None:
            self._write(self.out, episodes, summary)

    def _play(self) -> tuple[list[Episode], Summary]:
        """Return the episodes and their summary."""
        from visenv.evaluation.summary import summarise

        if self.env.endswith(".jsonl"):
            from visenv.episodes import read_episodes

            saved = self._judged(list(read_episodes(self.env)))
            return saved, summarise(saved)
        return self._play_new()

    def _judged(self, episodes: list[Episode]) -> list[Episode]:
        if self.judge is None:
            return episodes
        from visenv.evaluation.answer_judge import judge_answers
        from visenv.scorers import Scorer

        return judge_answers(episodes, Scorer.parse(self.judge))

    def _play_new(self) -> tuple[list[Episode], Summary]:
        from visenv.cli.tables import progress
        from visenv.evaluation import evaluate, places
        from visenv.evaluation.summary import summarise
        from visenv.rollout import Collector

        make = env_maker(self.env, self.option, self.data)
        policy = make_policy(self.policy, self.policy_option)
        collector = Collector(make, policy, Sampling(self.temperature, self.max_tokens))
        env = make()
        source = getattr(env.unwrapped, "source", None)
        # Listed when the data set was opened; a row that fails later is an aborted episode.
        unread = [str(problem) for problem in getattr(source, "problems", ())]
        with progress("episodes", len(places(env, self.episodes))) as advance:
            episodes = self._judged(evaluate(collector, env, self.episodes, lambda _: advance()))
        collector.close()
        policy.close()
        env.close()
        totals = getattr(source, "totals", None)
        return episodes, summarise(episodes, unread, totals(episodes) if totals else None)

    def _write(self, folder: Path, episodes: list[Episode], summary: Summary) -> None:
        from visenv.episodes import write_episodes
        from visenv.evaluation.summary_files import write_summary

        saved = self.env.endswith(".jsonl")
        played = f"{self.policy}, {self.data or 'held-out scenes'}"
        title = self.env if saved else f"{env_id(self.env)}, {played}"
        write_episodes(folder / EPISODES_FILE, episodes)
        write_summary(folder, title, summary, episodes)
        print(f"written to {folder}; look at the episodes: visenv view {folder}")
