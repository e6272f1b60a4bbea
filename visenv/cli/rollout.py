"""Implements `visenv rollout`, and plays the episodes of `visenv rollout` and `visenv eval`."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from visenv.cli.arguments import (
    ControlName,
    DataName,
    EnvName,
    PolicyName,
    Settings,
    check_at_least,
)
from visenv.cli.tables import progress
from visenv.evaluation.controls import controlled
from visenv.evaluation.values import require_finite_values
from visenv.makers import env_id, env_maker, make_policy, settings
from visenv.provenance import arguments_of
from visenv.rollout import Collector, EpisodeSpec, MakeEnv
from visenv.rollout.collector import for_each
from visenv.rollout.run_folder import EpisodeKey, RunFolder
from visenv.terminal import printable, shell_word
from visenv.types import Episode, Sampling

ReviseEpisode = Callable[[Episode], Awaitable[Episode]]

_ROLLOUT = 0x5EED_0A11


class PlaySettings(NamedTuple):
    """Holds the settings of a command that determine its episodes; `run.json` records them.

    Attributes:
        command: The name of the command, for example ``"eval"``.
        env: The environment, with or without the namespace.
        option: The options of the environment, as ``key=value``.
        data: The data set, or None.
        policy: The name of the policy.
        policy_option: The options of the policy, as ``key=value``.
        temperature: Sampling temperature.
        max_tokens: Maximum number of tokens in a turn.
        seed: The seed from which the seeds of the episodes are spawned.
        episodes: Number of samples; None means all rows of a data set.
        repeats: Number of times that each sample is played.
        judge: The scorer that judges the answers, or None.
    """

    command: str
    env: str
    option: Sequence[str]
    data: str | None
    policy: str
    policy_option: Sequence[str]
    temperature: float
    max_tokens: int
    seed: int
    episodes: int | None
    repeats: int
    judge: str | None = None

    def record(self, control: str | None) -> dict[str, Any]:
        """Return the settings in the format of `run.json`, under the names of the options."""
        record = {
            **self._asdict(),
            "env": env_id(self.env),
            "option": settings(self.option),
            "policy_option": settings(self.policy_option),
            "control": control,
        }
        if self.command == "rollout":
            record["groups"] = record.pop("episodes")
            record["num_generations"] = record.pop("repeats")
        return record


class Player:
    """Plays an environment with a policy; `close` closes the policy.

    Args:
        chosen: The settings.
        concurrency: Number of episodes that are played, and held in memory, at the same time.
        revise: Changes each episode before it is saved, for example by a judge's verdict.

    Attributes:
        make_env: Makes the environment without a control.

    Raises:
        ConfigurationError: If a setting is invalid.
    """

    def __init__(
        self, chosen: PlaySettings, concurrency: int, revise: ReviseEpisode | None = None
    ) -> None:
        self.make_env: MakeEnv = env_maker(chosen.env, chosen.option, chosen.data)
        self._chosen = chosen
        self._concurrency = concurrency
        self._revise = revise
        self._policy = make_policy(chosen.policy, chosen.policy_option)

    def play(
        self,
        specs: Sequence[EpisodeSpec],
        out: Path | None,
        control: str | None = None,
    ) -> list[Episode]:
        """Play the episodes that the folder does not contain yet, or that were aborted.

        Args:
            specs: All episodes of the run.
            out: The folder to save them in; None saves nothing.
            control: The control of the run (`visenv.evaluation.controls`), or None.

        Returns:
            All episodes of the run, without messages, in the order of groups and members.

        Raises:
            RunError: If the folder cannot be used.
            CodeError: If the code of a reward term, a tool or an environment has a bug.
            EpisodeError: If a reward, a term or a metric is not a finite number.
        """
        make = self.make_env if control is None else controlled(self.make_env, control)
        chosen = self._chosen
        collector = Collector(
            make,
            self._policy,
            Sampling(chosen.temperature, chosen.max_tokens),
            self._concurrency,
        )

        async def played(spec: EpisodeSpec) -> Episode:
            episode = await collector.play(spec)
            require_finite_values(episode)
            return episode if self._revise is None else await self._revise(episode)

        with ExitStack() as stack:
            stack.callback(collector.close)
            episodes: dict[EpisodeKey, Episode] = {}
            keep: Callable[[Episode], None] = _keeping(episodes)
            if out is not None:
                policy = arguments_of(self._policy, settings(chosen.policy_option))
                run = RunFolder(out, chosen.record(control), {"policy": policy})
                stack.enter_context(run)
                if again := run.forget_aborted():
                    print(f"Aborted episodes that are played again: {again}.", file=sys.stderr)
                episodes, keep = run.known, run.add
            label = "episodes" if control is None else control
            advance = stack.enter_context(progress(label, len(specs), len(episodes)))
            missing = [spec for spec in specs if (spec.group, spec.member) not in episodes]

            def saved(episode: Episode) -> None:
                keep(episode)
                advance()

            for_each(missing, played, saved, self._concurrency)
        return [episodes[place] for place in sorted(episodes)]

    def close(self) -> None:
        """Close the policy. Each environment is closed after its last episode."""
        self._policy.close()


def _keeping(episodes: dict[EpisodeKey, Episode]) -> Callable[[Episode], None]:
    def keep(episode: Episode) -> None:
        episodes[episode.group, episode.member] = episode.without_messages()

    return keep


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
        from visenv.cli.failures import check_not_all_aborted
        from visenv.cli.tables import print_summary
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
