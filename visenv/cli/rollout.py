"""`visenv rollout ENV --policy …`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from visenv.cli.arguments import (
    DataName,
    EnvName,
    PolicyName,
    Settings,
    check_at_least,
    new_output,
)
from visenv.makers import env_maker, make_policy
from visenv.types import Sampling


@dataclass(frozen=True)
class Rollout:
    """Play episodes with a policy and write them as JSONL, images beside it."""

    env: EnvName
    """Id (visenv/ may be left out), module:Id or module:Class."""
    policy: PolicyName = "oracle"
    """Name of a policy (visenv list), or module:Class."""
    policy_option: Settings = field(default_factory=list)
    """An argument of the policy; may be given several times."""
    data: DataName = None
    """Data set, for example textvqa:<folder>."""
    option: Settings = field(default_factory=list)
    """An argument of the environment; may be given several times."""
    episodes: int = 8
    """How many groups to play; group k has seed ``seed + k``."""
    group_size: int = 1
    """Episodes of each group."""
    seed: int = 0
    """Seed of the first group."""
    temperature: float = 1.0
    """Sampling temperature; 0 is greedy."""
    max_tokens: int = 512
    """Most tokens in a turn."""
    out: Path = Path("rollout")
    """Folder to write to; one that holds episodes already is refused."""

    def run(self) -> None:
        """Play, write, and print a summary."""
        from visenv.cli.tables import print_summary, progress
        from visenv.episodes import write_episodes
        from visenv.evaluation.summary import summarise
        from visenv.rollout import Collector

        self._check()
        path = new_output(self.out)
        sampling = Sampling(self.temperature, self.max_tokens)
        policy = make_policy(self.policy, self.policy_option)
        collector = Collector(env_maker(self.env, self.option, self.data), policy, sampling)
        seeds = range(self.seed, self.seed + self.episodes)
        with progress("episodes", self.episodes * self.group_size) as advance:
            groups = collector.groups(seeds, self.group_size, lambda _: advance())
        collector.close()
        policy.close()
        episodes = [episode for group in groups for episode in group]
        write_episodes(path, episodes)
        print_summary(summarise(episodes))
        print(f"{len(episodes)} episodes in {path}; look at them: visenv view {self.out}")

    def _check(self) -> None:
        check_at_least(
            1, episodes=self.episodes, group_size=self.group_size, max_tokens=self.max_tokens
        )
        check_at_least(0, seed=self.seed, temperature=self.temperature)
