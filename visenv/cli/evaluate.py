"""`visenv eval ENV --policy …`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from visenv.cli.arguments import DataName, EnvName, PolicyName, Settings, check_at_least
from visenv.makers import env_maker, make_policy
from visenv.types import Episode, Sampling

if TYPE_CHECKING:
    from visenv.evaluation import Row


@dataclass(frozen=True)
class Evaluate:
    """Evaluate a policy on every row of a data set, or on held-out procedural scenes.

    Rows that cannot be read are listed, as are episodes that a failure aborted; neither counts in
    the means.
    """

    env: EnvName
    """Id, with or without the namespace."""
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
    out: Path | None = None
    """Folder for episodes.jsonl and summary.json."""

    def run(self) -> None:
        """Play, print the table, and write it where asked."""
        from visenv.cli.tables import print_summary
        from visenv.evaluation import summarise

        check_at_least(1, episodes=self.episodes, max_tokens=self.max_tokens)
        check_at_least(0, temperature=self.temperature)
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)  # fails before the work, not after it
        episodes, unread = self._play()
        rows = summarise(episodes)
        print_summary(rows)
        for problem in unread:
            print(f"left out: {problem}")
        for episode in episodes:
            if episode.status == "aborted":
                name = episode.sample_id or f"row {episode.seed}"
                print(f"aborted: {name}: {episode.reason}")
        if self.out is not None:
            _write(self.out, episodes, rows, unread)

    def _play(self) -> tuple[list[Episode], list[str]]:
        """The episodes, and what is wrong with each row that cannot be one."""
        from visenv.cli.tables import progress
        from visenv.evaluation import evaluate, places
        from visenv.rollout import Collector

        make = env_maker(self.env, self.option, self.data)
        policy = make_policy(self.policy, self.policy_option)
        collector = Collector(make, policy, Sampling(self.temperature, self.max_tokens))
        env = make()
        # Listed when the data set was opened; a row that fails later is an aborted episode.
        problems = getattr(getattr(env.unwrapped, "source", None), "problems", ())
        unread = [str(problem) for problem in problems]
        with progress("episodes", len(places(env, self.episodes))) as advance:
            episodes = evaluate(collector, env, self.episodes, lambda _: advance())
        collector.close()
        policy.close()
        env.close()
        return episodes, unread


def _write(
    folder: Path, episodes: Sequence[Episode], rows: Sequence[Row], unread: Sequence[str]
) -> None:
    from visenv.episodes import write_episodes
    from visenv.evaluation import as_json

    write_episodes(folder / "episodes.jsonl", episodes)
    summary = json.dumps({"rows": as_json(rows), "left_out": unread}, indent=2)
    (folder / "summary.json").write_text(summary + "\n", encoding="utf-8")
    print(f"written to {folder}; look at the episodes: visenv view {folder}")
