"""Plays the episodes of `visenv rollout` and `visenv eval` into a folder, and resumes runs."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from visenv.cli.tables import progress
from visenv.evaluation.controls import controlled
from visenv.evaluation.values import require_finite_values
from visenv.makers import env_id, env_maker, make_policy, settings
from visenv.provenance import arguments_of
from visenv.rollout import Collector, EpisodeSpec, MakeEnv
from visenv.rollout.collector import for_each
from visenv.rollout.run_folder import EpisodeKey, RunFolder
from visenv.types import Episode, Sampling

ReviseEpisode = Callable[[Episode], Awaitable[Episode]]


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
