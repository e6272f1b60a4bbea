"""Implements `visenv rollout ENV --policy …`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from visenv.cli.arguments import (
    ControlName,
    DataName,
    EnvName,
    PolicyName,
    Settings,
    check_at_least,
)
from visenv.terminal import printable, shell_word

_ROLLOUT = 0x5EED_0A11


@dataclass(frozen=True)
class RolloutCommand:
    """Play episodes with a policy and write them as JSONL, with the images in a folder.

    Each episode is written when it ends. If the command is killed, run it again: it plays the
    missing episodes.
    """

    env: EnvName
    """Id (visenv/ may be omitted), module:Id or module:Class."""
    policy: PolicyName = "oracle"
    """Name of a policy (visenv list), or module:Class."""
    policy_option: Settings = field(default_factory=list)
    """An argument of the policy; may be given several times."""
    data: DataName = None
    """Data set, for example textvqa:<folder>."""
    option: Settings = field(default_factory=list)
    """An argument of the environment; may be given several times."""
    control: ControlName | None = None
    """Play under a control: no_image, no_tool, shuffled_results or, if the task has it,
    random_crop.
    """
    groups: int = 8
    """Number of groups; the episodes of a group play the same sample."""
    num_generations: int = 1
    """Number of episodes of each group."""
    seed: int = 0
    """Seed from which the seeds of the groups are derived; two values have no common seeds."""
    temperature: float = 1.0
    """Sampling temperature; 0 is greedy."""
    max_tokens: int = 512
    """Maximum number of tokens in a turn."""
    concurrency: int = 32
    """Number of episodes that are played, and held in memory, at the same time."""
    out: Path = Path("rollout")
    """Folder to write to; a run in it with the same settings is resumed."""

    def run(self) -> None:
        """Play and write the episodes, and print a summary."""
        from visenv.cli.playing import Player, PlaySettings
        from visenv.cli.tables import check_not_all_aborted, print_summary
        from visenv.evaluation.summary import summarize
        from visenv.rollout import EpisodeSpec
        from visenv.rollout.run_folder import EPISODES_FILE
        from visenv.seeding import seeds

        self._check()
        chosen = PlaySettings(
            command="rollout",
            env=self.env,
            option=self.option,
            data=self.data,
            policy=self.policy,
            policy_option=self.policy_option,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            seed=self.seed,
            episodes=self.groups,
            repeats=self.num_generations,
        )
        stream = np.random.SeedSequence([_ROLLOUT, self.seed])
        specs = [
            EpisodeSpec(seed, group, member)
            for group, seed in enumerate(seeds(stream, self.groups))
            for member in range(self.num_generations)
        ]
        with closing(Player(chosen, self.concurrency)) as player:
            episodes = player.play(specs, self.out, self.control)
        print_summary(summarize(episodes))
        out, path = shell_word(self.out), printable(self.out / EPISODES_FILE)
        print(f"{len(episodes)} episodes in {path}; look at them: visenv view {out}")
        check_not_all_aborted([("", episodes)])

    def _check(self) -> None:
        check_at_least(
            1,
            groups=self.groups,
            num_generations=self.num_generations,
            max_tokens=self.max_tokens,
            concurrency=self.concurrency,
        )
        check_at_least(0, seed=self.seed, temperature=self.temperature)
