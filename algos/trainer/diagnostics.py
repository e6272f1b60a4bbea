"""Finds training that goes wrong: large gradients, another sampler, groups with equal rewards.

`DivergenceCheck` stops a run before infinite or suddenly large gradients damage its weights.

`LogprobMismatch` measures the difference between the log-probabilities of sampler and trainer. They
compute with the same weights, possibly in different engines with different rounding. If the sampler
reads other tokens, images or weights than the trainer, the difference is large.

`spread_warnings` warns about a run in which the rewards of no group differ, after ten steps and at
its end. An algorithm that compares the episodes of a group then has no gradient: the run ends as
usual, and the weights are those of before.

`require_finite_rewards` refuses rewards that are not numbers, and `save_step` saves the data of a
step that failed, for inspection.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch

from visenv.episodes import write_episodes
from visenv.errors import SamplerError
from visenv.evaluation.values import require_finite_reward
from visenv.files import output_folder, replacing
from visenv.types import Group

from .credit import TrainingSegment
from .distributed import DistributedContext
from .metrics import read_metrics
from .optimizer_shards import save_tensors

_WATCHED = 50
"""The number of gradient norms of the median."""
_FIRST = 10
"""The number of norms that must be known before norms are compared with the median."""

_FEWEST = 64
"""The minimum number of tokens for `LogprobMismatch.require`, because small means are noisy."""

ZERO_STD = "groups/zero_std"
"""The metric with the share of groups in which all rewards are equal."""

FIRST_STEPS = 10
"""Number of steps after which a run without different rewards is reported while it runs."""

_ADVICE = (
    "Each group had equal rewards, so the policy gradient was 0. If this is the highest possible "
    "reward, the task is solved. Otherwise, try easier samples (an easier preset or data that the "
    "model sometimes solves), a higher temperature, more num_generations, a larger max_tokens, a "
    'reward with partial credit, or demonstrations first (a phase with algorithm = "sft"). Look at '
    "the episodes to see how they fail: visenv view."
)

Scored = Sequence[tuple[TrainingSegment, torch.Tensor]]


class DivergenceCheck:
    """Checks loss and gradient before each optimizer step, equally on every process.

    Args:
        max_grad_norm_ratio: The maximum ratio of a norm to the median norm; None sets no limit.
    """

    def __init__(self, max_grad_norm_ratio: float | None) -> None:
        self._max_ratio = max_grad_norm_ratio
        self._norms: deque[float] = deque(maxlen=_WATCHED)

    @property
    def norms(self) -> list[float]:
        """Return the latest norms, for a checkpoint."""
        return list(self._norms)

    def remember(self, norms: Sequence[float]) -> None:
        """Restore the norms of a checkpoint."""
        self._norms = deque(norms, maxlen=_WATCHED)

    def problem(self, loss: float, norm: float) -> str | None:
        """Return the reason for refusing the step, or None."""
        if not math.isfinite(loss):
            return f"the loss is {loss}"
        if not math.isfinite(norm):
            return f"the gradient is {norm}"
        if self._max_ratio is None or len(self._norms) < _FIRST:
            return None
        usual = median(self._norms)
        if norm <= self._max_ratio * usual:
            return None
        return f"the gradient norm is {norm:.4g}, {norm / usual:.3g} times its median"

    def taken(self, norm: float) -> None:
        """Record the norm of a step that was taken."""
        self._norms.append(norm)


@dataclass
class LogprobMismatch:
    """Sums differences over tokens that were sampled with the current weights."""

    tokens: float = 0.0
    distance: float = 0.0
    largest: float = 0.0
    ratios: float = 0.0
    squares: float = 0.0

    def add(self, trainer: torch.Tensor, sampler: torch.Tensor, fresh: torch.Tensor) -> None:
        """Compare log-probabilities.

        Args:
            trainer: Those of the trainer, ``[segments, length]``, in nats.
            sampler: Those of the sampler, in the same shape; NaN for unknown values.
            fresh: bool, in the same shape: whether a token was sampled with the current weights.
        """
        compared = fresh & ~sampler.isnan()
        difference = (trainer.detach().double() - sampler.double())[compared]
        if not len(difference):
            return
        ratio = difference.exp()
        self.tokens += len(difference)
        self.distance += float(difference.abs().sum())
        self.largest = max(self.largest, float(difference.abs().max()))
        self.ratios += float(ratio.sum())
        self.squares += float(ratio.square().sum())

    def measures(self, processes: DistributedContext) -> dict[str, float]:
        """Return the metrics over all processes; an empty mapping if no token could be compared.

        Returns:
            ``sampler/distance``, the mean of ``|log p_trainer - log p_sampler|``;
            ``sampler/largest``, their maximum; ``sampler/ratio``, the mean of the weights
            ``w = p_trainer / p_sampler``, whose expected value is 1; ``sampler/effective``, the
            effective sample size with these weights as a share of the tokens,
            ``(Σ w)² / (n Σ w²)``.
        """
        all_of_them = processes.gather(self)
        tokens = sum(each.tokens for each in all_of_them)
        if not tokens:
            return {}
        ratios = sum(each.ratios for each in all_of_them)
        squares = sum(each.squares for each in all_of_them)
        return {
            "sampler/distance": sum(each.distance for each in all_of_them) / tokens,
            "sampler/largest": max(each.largest for each in all_of_them),
            "sampler/ratio": ratios / tokens,
            "sampler/effective": ratios**2 / (tokens * squares),
        }

    def require(self, processes: DistributedContext, limit: float | None) -> None:
        """Check that the sampler uses the weights of the trainer. All processes make this call.

        Args:
            processes: The processes of the run.
            limit: The maximum ``sampler/distance``, in nats; None sets no limit. Fewer than 64
                tokens over all processes are not checked.

        Raises:
            SamplerError: If the distance exceeds the limit.
        """
        if limit is None:
            return
        compared = sum(processes.gather(self.tokens))
        distance = self.measures(processes).get("sampler/distance", 0.0)
        if compared >= _FEWEST and distance > limit:
            raise SamplerError(
                "the sampler and the trainer disagree on the tokens that were sampled with the "
                f"current weights: sampler/distance is {distance:.3g} nats, max_sampler_distance "
                f"{limit:g}. The sampler holds other weights, or reads other tokens or images; "
                'see "When training diverges" in docs/training.md.'
            )


def spread_warnings(path: Path) -> list[str]:
    """Return a warning if no group of a run had different rewards.

    Args:
        path: The file of metrics of the run.

    Returns:
        One warning for the run; in a mixture, one for each environment of which no group had
        different rewards; an empty list if all is well, or groups have a single episode.
    """
    shares: dict[str, list[float]] = defaultdict(list)
    rewards: dict[str, list[float]] = defaultdict(list)
    for _, row in read_metrics(path):
        for name, value in row.items():
            env = name.removesuffix(ZERO_STD)
            if name == f"{env}{ZERO_STD}" and "kind/" not in env:
                shares[env].append(value)
                rewards[env].append(row.get(f"{env}reward", 0.0))
    flat = [env for env, values in shares.items() if min(values) >= 1.0]
    if "" in flat:
        flat = [""]
    return [
        f"No group{_of(env)} had different rewards in any of {len(shares[env])} steps (mean reward "
        f"{sum(rewards[env]) / len(rewards[env]):.3g}). {_ADVICE}"
        for env in flat
    ]


def _of(env: str) -> str:
    name = env.removeprefix("env/").removesuffix("/")
    return f" of {name}" if name else ""


def save_step(
    folder: Path, step: int, groups: Sequence[Group], scored: Scored, processes: DistributedContext
) -> Path:
    """Write the episodes and scores of a step. Every process makes this call.

    Args:
        folder: The output folder.
        step: The number of the step, from 1.
        groups: The groups of this process.
        scored: The segments and log-probabilities of the latest optimizer step (`Updater.latest`).
        processes: The processes of the run.

    Returns:
        The file of the episodes. The same folder contains a file ``….scores-<rank>.pt`` for each
        process. It holds a list with, for each segment, ``group``, ``token_ids``, ``loss_mask``,
        ``advantages``, ``sampling_logprobs`` and ``logprobs`` (of the last forward pass), all
        ``[length]`` except ``group``.
    """
    name = f"step_{step:06d}"
    path = folder / f"{name}.jsonl"
    everyones = processes.collect(groups)
    output_folder(folder)
    if processes.first:
        write_episodes(path, [one for each in everyones for group in each for one in group])
    if scored:
        rows = [_row(credited, logprobs) for credited, logprobs in scored]
        with replacing(folder / f"{name}.scores-{processes.rank}.pt") as partial:
            save_tensors(rows, partial)
    return path


def _row(credited: TrainingSegment, logprobs: torch.Tensor) -> dict[str, object]:
    segment = credited.segment
    arrays = {
        "token_ids": segment.token_ids,
        "loss_mask": segment.loss_mask,
        "advantages": credited.advantages,
        "sampling_logprobs": segment.logprobs,
    }
    return {
        "group": credited.group,
        **{name: torch.from_numpy(array) for name, array in arrays.items()},
        "logprobs": logprobs[: len(segment)].clone(),
    }


def require_finite_rewards(groups: Sequence[Group]) -> None:
    """Check that all rewards are finite, because advantages are computed from them.

    Raises:
        EpisodeError: If a reward is not a finite number. The message names the episode.
    """
    for episode in (each for group in groups for each in group):
        require_finite_reward(episode)
