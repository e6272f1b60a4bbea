"""Evaluates a policy on held-out samples before, during and after training."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from typing_extensions import override

from visenv.checksums import check_checksums
from visenv.decoding.json_text import WRONG_VALUES, read_json_at
from visenv.errors import ConfigurationError, RunError, UnknownNameError
from visenv.evaluation import places
from visenv.evaluation.intervals import NOTHING
from visenv.evaluation.summary import summarize
from visenv.files import empty_folder, output_folder, write_text
from visenv.policy import Policy, TrainablePolicy
from visenv.rollout import MakeEnv
from visenv.types import Episode, Sampling
from visenv.worlds.recent import SAMPLES_AT_ONCE

from .backend import TrainingBackend
from .checkpoint import publish, save_weights
from .distributed import DistributedContext
from .metrics import EVALUATIONS, MetricsLog
from .placement import Placement

WAYS = ("greedy", "sampled")
"""The sampling modes in which held-out samples are played."""


class HeldOutEpisodes(NamedTuple):
    """Holds the held-out episodes of one environment and one sampling mode.

    Attributes:
        env: The name of the environment.
        way: One of `WAYS`.
        episodes: The episodes of the samples that this process plays.
    """

    env: str
    way: str
    episodes: list[Episode]


@dataclass(frozen=True)
class HeldOutScore:
    """Holds means over the held-out episodes of one environment and one sampling mode.

    Attributes:
        episodes: Number of episodes; an aborted one counts as 0 in the means.
        reward: Mean reward; NaN if there is no episode.
        metrics: Means of the metrics by name.
        intervals: Half widths of the 95 % intervals of the metrics.
        kinds: Means of the metrics by kind of sample, if there are several kinds.
        aborted: Number of episodes that were aborted.
    """

    episodes: int
    reward: float
    metrics: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, float] = field(default_factory=dict)
    kinds: dict[str, dict[str, float]] = field(default_factory=dict)
    aborted: int = 0

    @classmethod
    def of(cls, episodes: Sequence[Episode]) -> HeldOutScore:
        """Return the means over episodes."""
        first, *rows = summarize(episodes).rows
        metrics = {name: mean for name, mean in first.means.items() if name != "reward"}
        names = {name for episode in episodes for name in episode.metrics}
        return cls(
            first.episodes,
            first.means.get("reward", NOTHING).value,
            {name: mean.value for name, mean in metrics.items()},
            {name: mean.half_width for name, mean in metrics.items()},
            {
                row.label: {name: row.means[name].value for name in names & row.means.keys()}
                for row in rows
                if row.label != "mean of groups"
            },
            first.aborted,
        )

    def value(self, metric: str) -> float | None:
        """Return the mean of a metric, or of the reward; None if no episode has it."""
        return self.reward if metric == "reward" else self.metrics.get(metric)

    @override
    def __str__(self) -> str:
        accuracy = self.metrics.get("accuracy")
        said = "" if accuracy is None else f"accuracy {accuracy:.3f}, "
        lost = f", {self.aborted} of {self.episodes} episodes aborted" if self.aborted else ""
        return f"{said}reward {self.reward:.3f}{lost}"


Scores = Mapping[str, Mapping[str, HeldOutScore]]
"""Scores by environment and by one of `WAYS`."""


@dataclass(frozen=True)
class HeldOut:
    """Holds the settings of evaluations on held-out samples during training.

    Attributes:
        make_envs: Functions that create an environment, by the name of the environment.
        headlines: The metric of each environment by which the best weights are selected.
        episodes: The number of samples of each environment.
        max_tokens: The maximum number of sampled tokens in a turn.
        every: The number of steps between two evaluations.
        temperature: Temperature of the sampled episodes, above 0.
        placement: Where environments run.

    Raises:
        ConfigurationError: If a number is below 1, the temperature is not above 0, or an
            environment has no headline metric.
    """

    make_envs: Mapping[str, MakeEnv]
    headlines: Mapping[str, str]
    episodes: int
    max_tokens: int
    every: int
    temperature: float = 1.0
    placement: Placement = Placement()  # noqa: RUF009 - a tuple

    def __post_init__(self) -> None:
        if not 0 < self.temperature < math.inf:
            raise ConfigurationError(f"temperature must be above 0, got {self.temperature}.")
        for name in ("episodes", "max_tokens", "every"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"{name} must be at least 1, got {getattr(self, name)}.")
        if not self.make_envs or set(self.make_envs) != set(self.headlines):
            raise ConfigurationError(
                f"Each held-out environment needs a headline metric, got {sorted(self.headlines)} "
                f"for {sorted(self.make_envs)}."
            )

    def headline(self, scores: Scores) -> float:
        """Return the mean greedy headline metric over environments; a missing metric counts 0.

        Raises:
            UnknownNameError: If no episode has the metric, and its name looks misspelled.
        """
        for name, metric in self.headlines.items():
            score = scores[name]["greedy"]
            known = score.metrics
            if score.value(metric) is None and get_close_matches(metric, known, n=1, cutoff=0.8):
                raise UnknownNameError(f"metric of the environment {name!r}", metric, known)
        return mean_headline(scores, self.headlines)


def mean_headline(scores: Scores, headlines: Mapping[str, str], way: str = "greedy") -> float:
    """Return the mean headline metric over environments; a missing metric counts 0.

    Args:
        scores: The scores of the environments.
        headlines: The headline metric of each environment.
        way: ``"greedy"`` or ``"sampled"``.
    """
    values = [scores[name][way].value(metric) or 0.0 for name, metric in headlines.items()]
    return sum(0.0 if math.isnan(value) else value for value in values) / len(values)


def play_held_out(
    policy: Policy[Any],
    make_envs: Mapping[str, MakeEnv],
    episodes: int,
    max_tokens: int,
    temperature: float,
    rank: int = 0,
    count: int = 1,
    placement: Placement = Placement(),  # noqa: B008 - a tuple
) -> Iterator[HeldOutEpisodes]:
    """Play the held-out samples of each environment with greedy decoding and with sampling.

    Args:
        policy: The policy.
        make_envs: Functions that create an environment, by the name of the environment.
        episodes: The number of samples of each environment.
        max_tokens: The maximum number of sampled tokens in a turn.
        temperature: The temperature of the sampled episodes.
        rank: The number of this process, from 0.
        count: The number of processes that share the samples.
        placement: Where environments run.
    """
    for name, make_env in make_envs.items():
        with closing(make_env()) as env:
            specs = places(env, episodes)[rank::count]
        with closing(placement.collector(make_env, policy)) as collector:
            played: dict[str, list[Episode]] = {way: [] for way in WAYS}
            for start in range(0, len(specs), SAMPLES_AT_ONCE):
                some = specs[start : start + SAMPLES_AT_ONCE]
                for way, heat in zip(WAYS, (0.0, temperature), strict=True):
                    collector.sampling = Sampling(heat, max_tokens)
                    played[way] += collector.episodes(some)
        for way, way_episodes in played.items():
            yield HeldOutEpisodes(name, way, way_episodes)


def flattened(scores: Scores) -> dict[str, float]:
    """Return scores as ``eval/<environment>/<way>/<metric>``, also by kind: ``…/<kind>``."""
    flat: dict[str, float] = {}
    for env, ways in scores.items():
        for way, score in ways.items():
            prefix = f"eval/{env}/{way}"
            flat[f"{prefix}/reward"] = score.reward
            flat[f"{prefix}/aborted"] = score.aborted
            flat |= {f"{prefix}/{name}": value for name, value in score.metrics.items()}
            for kind, metrics in score.kinds.items():
                flat |= {f"{prefix}/{name}/{kind}": value for name, value in metrics.items()}
    return flat


class EvaluationResult(NamedTuple):
    """Holds one evaluation of `Evaluator`.

    Attributes:
        metrics: The scores by name (`flattened`), of all processes.
        examples: A greedy episode of this process for each environment.
    """

    metrics: dict[str, float]
    examples: dict[str, Episode]


class Evaluator:
    """Evaluates a policy every few steps and after the last step, and keeps the best weights.

    It writes two outputs to the folder of the run: ``evaluations.jsonl``, with an object for each
    evaluation, and ``best/step_000123/``, with the weights of the policy and ``score.json``. Every
    process plays its share of the samples. An evaluation does not affect training.

    Args:
        held_out: The settings of the evaluations.
        folder: The folder of the run.
        step: The number of steps that were taken; evaluations of later steps are removed from the
            file.
        steps: The number of steps of the run.
        policy: The policy that is trained; its weights are saved.
        player: The policy that plays: the trained policy, or an engine with its weights.
        backend: The backend of the policy.
        processes: The processes of the run.
    """

    def __init__(
        self,
        held_out: HeldOut,
        folder: Path,
        step: int,
        steps: int,
        *,
        policy: TrainablePolicy[Any],
        player: Policy[Any],
        backend: TrainingBackend,
        processes: DistributedContext,
    ) -> None:
        self._held_out = held_out
        self._steps = steps
        self._best = folder / "best"
        self._policy = policy
        self._player = player
        self._backend = backend
        self._processes = processes
        self._log = MetricsLog(folder / EVALUATIONS, step) if processes.first else None

    def due(self, step: int) -> bool:
        """Return whether an evaluation after `step` steps is due and has not been made."""
        if not step or (step % self._held_out.every and step != self._steps):
            return False
        return self._processes.broadcast(self._log is None or step not in self._log.steps)

    def evaluate(self, step: int) -> EvaluationResult:
        """Evaluate the policy after `step` steps. Every process makes this call."""
        self._policy.train_mode(False)
        with self._backend.playing(self._player):
            shares, examples = self._play()
        scores: dict[str, dict[str, HeldOutScore]] = {name: {} for name in self._held_out.make_envs}
        for name, way in shares:
            everyones = self._processes.gather(shares[name, way])
            scores[name][way] = HeldOutScore.of(
                [episode for share in everyones for episode in share]
            )
        headline = self._held_out.headline(scores)
        self._keep_best(step, headline)
        metrics = {"eval/headline": headline, **flattened(scores)}
        if self._log is not None:
            self._log.write(step, metrics)
        return EvaluationResult(metrics, examples)

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()

    def _play(self) -> tuple[dict[tuple[str, str], list[Episode]], dict[str, Episode]]:
        """Return the episodes of this process without messages, and one example by environment."""
        told, processes = self._held_out, self._processes
        shares: dict[tuple[str, str], list[Episode]] = {}
        examples: dict[str, Episode] = {}
        numbers = (told.episodes, told.max_tokens, told.temperature)
        share = (processes.rank, processes.count, told.placement)
        for name, way, episodes in play_held_out(self._player, told.make_envs, *numbers, *share):
            shares[name, way] = [episode.without_messages() for episode in episodes]
            if way == "greedy" and episodes:
                examples[name] = episodes[0]
        return shares, examples

    def _keep_best(self, step: int, headline: float) -> None:
        known = sorted(self._best.glob("step_*/score.json")) if self._processes.first else []
        values = [_headline_at(path) for path in known]
        if not self._processes.broadcast(headline > max(values, default=float("-inf"))):
            return
        final = self._best / f"step_{step:06d}"
        partial = self._best / f".{final.name}"
        with self._backend.reading():
            if self._processes.first:
                output_folder(self._best)
                empty_folder(partial)
                told = json.dumps({"step": step, "headline": headline})
                write_text(partial / "score.json", told)
                save_weights(self._policy, partial)
                shutil.rmtree(final, ignore_errors=True)
                publish(partial, final)
                for path in known:
                    if path.parent != final:
                        shutil.rmtree(path.parent)
        self._processes.wait()


def _headline_at(path: Path) -> float:
    """Return the headline metric of the best weights, which the file beside them contains."""
    check_checksums(path.parent, required=True, names=[path.name])
    try:
        return float(read_json_at(path)["headline"])
    except WRONG_VALUES as error:
        raise RunError(f"{path} is not the score of kept weights: {error}") from error
