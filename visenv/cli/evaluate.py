"""`visenv eval ENV --policy …`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import tyro

from visenv.makers import env_maker, make_policy
from visenv.types import Sampling


@dataclass(frozen=True)
class Evaluate:
    """Evaluate a policy on every row of a data set, or on held-out procedural seeds."""

    env: tyro.conf.Positional[str]
    """Id, with or without the namespace."""
    policy: str = "oracle"
    """Name of a policy (visenv list), or module:Class."""
    policy_option: list[str] = field(default_factory=list)
    """Arguments of the policy, key=value."""
    data: str | None = None
    """Data set, for example vstar:<folder>."""
    option: list[str] = field(default_factory=list)
    """Further arguments of the environment, key=value."""
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
        from visenv.cli.tables import print_summary, progress
        from visenv.episodes import write_episodes
        from visenv.evaluation import as_json, evaluate, places, summarise
        from visenv.rollout import Collector

        make = env_maker(self.env, self.option, self.data)
        policy = make_policy(self.policy, self.policy_option)
        collector = Collector(make, policy, Sampling(self.temperature, self.max_tokens))
        env = make()
        for problem in getattr(getattr(env.unwrapped, "source", None), "problems", ()):
            print(f"left out: {problem}")
        with progress("episodes", len(places(env, self.episodes))) as advance:
            episodes = evaluate(collector, env, self.episodes, lambda _: advance())
        collector.close()
        policy.close()
        rows = summarise(episodes)
        print_summary(rows)
        for episode in episodes:
            if episode.status == "aborted":
                print(f"aborted: sample {episode.sample_id or episode.seed}: {episode.reason}")
        if self.out is not None:
            write_episodes(self.out / "episodes.jsonl", episodes)
            (self.out / "summary.json").write_text(json.dumps(as_json(rows), indent=2) + "\n")
            print(f"written to {self.out}; look at the episodes: visenv view {self.out}")
