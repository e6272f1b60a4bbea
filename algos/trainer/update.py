"""Takes the optimizer steps of a training step, in the same way for every algorithm."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from visenv.algorithm import Algorithm, Batch
from visenv.errors import ConfigurationError, DivergedError
from visenv.policy import BatchBudget, TokenScores, TrainablePolicy

from .backend import TrainingBackend
from .config import OptimizationConfig
from .credit import StepData, TokenCounts, TrainingSegment
from .diagnostics import DivergenceCheck, LogprobMismatch
from .distributed import DistributedContext
from .micro_batches import MicroBatch, micro_batches, pinned, prefetched

Metrics = dict[str, float]


class _Minibatch(NamedTuple):
    """Holds the segments of this process in one optimizer step, and the size of the whole step."""

    own: list[TrainingSegment]
    size: TokenCounts


class _Ready(NamedTuple):
    """Holds a micro-batch with its collated inputs for the policy and the reference."""

    part: MicroBatch
    collated: Any
    for_reference: Any = None


class Updater:
    """Updates the weights of a policy.

    Args:
        policy: The policy that is trained.
        algorithm: The algorithm that computes the loss.
        optimization: The settings of the optimizer.
        backend: The backend of the policy.
        processes: The processes of the run, which all make the same calls.
        guard: The divergence check, which can refuse steps.
        reference: The frozen policy of the KL term, if the algorithm needs one.

    Attributes:
        latest: The segments of the latest optimizer step, each with its log-probabilities, float32
            ``[length]``, padded on the right.
    """

    def __init__(
        self,
        policy: TrainablePolicy[Any],
        algorithm: Algorithm,
        optimization: OptimizationConfig,
        backend: TrainingBackend,
        processes: DistributedContext,
        guard: DivergenceCheck | None = None,
        reference: TrainablePolicy[Any] | None = None,
    ) -> None:
        self._policy = policy
        self._algorithm = algorithm
        self._optimization = optimization
        self._backend = backend
        self._processes = processes
        self._guard = guard or DivergenceCheck(optimization.max_grad_norm_ratio)
        self._reference = reference
        self._budget = BatchBudget(optimization.tokens_per_batch, optimization.patches_per_batch)
        self.latest: list[tuple[TrainingSegment, torch.Tensor]] = []

    def update(
        self, given: StepData, learning_rate: float, rng: np.random.Generator
    ) -> dict[str, float]:
        """Take all optimizer steps for the segments of one step of the run.

        An optimizer step whose gradient is exactly 0, for example because all rewards are equal,
        does not change the weights and the optimizer.

        Args:
            given: The segments.
            learning_rate: The learning rate of this step of the run.
            rng: The generator that draws the mini-batches, equal on every process.

        Returns:
            ``loss``, ``grad_norm`` (before clipping) and the metrics of the algorithm, as means
            over the optimizer steps; ``skipped``, the share of optimizer steps without a gradient;
            with an importance correction, ``importance_effective``, the effective share of the
            sample, ``importance² / importance_square``; and `LogprobMismatch.measures`.

        Raises:
            DivergedError: If a loss or a gradient is not finite, or the gradient norm jumps. The
                weights keep the values of the previous optimizer step.
            SamplerError: If the sampler has weights that differ from the trainer's; no weight is
                changed.
            ConfigurationError: If tokens without log-probabilities would be used more than once.
        """
        optimization = self._optimization
        own = given.own
        self.latest = []
        self._policy.train_mode(True)
        agreement = LogprobMismatch()
        if optimization.old_logprobs == "trainer":
            own = self._with_old_logprobs(own, agreement)
            agreement.require(self._processes, optimization.max_sampler_distance)
        elif optimization.num_epochs * optimization.num_minibatches > 1:
            _require_logprobs(own)
        taken: list[Metrics] = []
        for minibatch in self._minibatches(own, given.sizes, rng):
            first = not taken and optimization.old_logprobs == "sampler"
            taken.append(self._optimize(minibatch, learning_rate, agreement if first else None))
        means = {name: value / len(taken) for name, value in _added(taken).items()}
        if square := means.get("importance_square"):
            means["importance_effective"] = means["importance"] ** 2 / square
        return means | agreement.measures(self._processes)

    def _minibatches(
        self, own: Sequence[TrainingSegment], sizes: Sequence[TokenCounts], rng: np.random.Generator
    ) -> Iterator[_Minibatch]:
        """Divide the step into mini-batches of whole groups, so that groups can share prefixes."""
        for _ in range(self._optimization.num_epochs):
            for part in np.array_split(
                rng.permutation(len(sizes)), self._optimization.num_minibatches
            ):
                if not len(part):
                    continue
                places = {int(group): place for place, group in enumerate(part)}
                chosen = [each for each in own if each.group in places]
                chosen.sort(key=lambda each: places[each.group])
                size = TokenCounts(
                    *(sum(each) for each in zip(*(sizes[g] for g in places), strict=True))
                )
                yield _Minibatch(chosen, size)

    def _optimize(
        self, minibatch: _Minibatch, learning_rate: float, agreement: LogprobMismatch | None
    ) -> Metrics:
        """Take one optimizer step, and return loss, gradient norm and metrics of all processes."""
        parts = micro_batches(self._policy, minibatch.own, self._budget, self._processes)
        shares: list[Metrics] = [{"loss": 0.0}]
        self.latest = []
        self._backend.begin(learning_rate)
        with closing(prefetched(self._ready, parts)) as made:
            for number, ready in enumerate(made, start=1):
                with self._backend.micro_batch(last=number == len(parts)):
                    loss, metrics = self._loss(ready, minibatch.size, agreement)
                    shares.append({"loss": loss.item(), **metrics})
                    self._backend.backward(loss)
        if agreement is not None:
            agreement.require(self._processes, self._optimization.max_sampler_distance)
        totals = _added(self._processes.gather(_added(shares)))
        loss_value = totals["loss"]
        norm = self._backend.step(
            lambda norm: norm > 0 and self._guard.problem(loss_value, norm) is None
        )
        if problem := self._guard.problem(loss_value, norm):
            raise DivergedError(problem)
        if norm > 0:
            self._guard.taken(norm)
            self._policy.updated()
        return totals | {"grad_norm": norm, "skipped": float(norm == 0)}

    def _ready(self, part: MicroBatch) -> _Ready:
        """Collate a micro-batch for the policy, and for the reference if there is one."""
        ready = self._ready_for_policy(part)
        if self._reference is None:
            return ready
        return ready._replace(for_reference=pinned(part.collated(self._reference)))

    def _ready_for_policy(self, part: MicroBatch) -> _Ready:
        return _Ready(part, pinned(part.collated(self._policy)))

    def _loss(
        self, ready: _Ready, size: TokenCounts, agreement: LogprobMismatch | None
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """Return the loss of a micro-batch and its metrics."""
        part = ready.part
        reference = self._reference_logprobs(ready)
        scores, ballast = self._score(ready)
        if not part.own:
            return ballast, {}
        self.latest += zip(part.own, scores.logprobs.detach().cpu(), strict=True)
        loss = self._algorithm.loss(self._batch(part.own, scores, size, reference))
        if agreement is not None:
            self._compare(part.own, scores, agreement)
        return (loss.value + ballast if part.fillers else loss.value), loss.metrics

    def _score(self, ready: _Ready) -> tuple[TokenScores, torch.Tensor]:
        """Return the scores of the segments, and a 0 that keeps the fillers in the graph."""
        scores = self._backend(ready.collated)
        own = len(ready.part.own)  # of [segments + fillers, length]
        return TokenScores(*(each[:own] for each in scores)), scores.logprobs[own:].sum() * 0.0

    def _batch(
        self,
        part: Sequence[TrainingSegment],
        scores: TokenScores,
        size: TokenCounts,
        reference: torch.Tensor | None,
    ) -> Batch:
        logprobs = scores.logprobs  # [segments, length], as all tensors below
        sampling = _padded([each.segment.logprobs for each in part], logprobs)
        old = sampling
        if self._optimization.old_logprobs == "trainer":
            old = _padded([_known(each.old_logprobs) for each in part], logprobs)
        # Tokens without log-probabilities are used for the first time, so the current weights are
        # those that sampled them.
        old = torch.where(old.isnan(), logprobs.detach(), old)
        return Batch(
            logprobs=logprobs,
            old_logprobs=old,
            sampling_logprobs=torch.where(sampling.isnan(), old, sampling),
            reference_logprobs=reference,
            entropy=scores.entropy,
            advantages=_padded([each.advantages for each in part], logprobs),
            mask=scores.mask,
            episode_tokens=torch.tensor(
                [each.episode_tokens for each in part], device=logprobs.device
            ),
            total_tokens=size.tokens,
            total_episodes=size.episodes,
        )

    def _reference_logprobs(self, ready: _Ready) -> torch.Tensor | None:
        """Return the log-probabilities of the segments of a micro-batch under the reference.

        Fillers are computed too, because all processes must run a sharded reference equally often.
        """
        if self._reference is None:
            return None
        scores = self._backend.refer(self._reference, ready.for_reference)
        return scores.logprobs[: len(ready.part.own)]

    def _with_old_logprobs(
        self, own: Sequence[TrainingSegment], agreement: LogprobMismatch
    ) -> list[TrainingSegment]:
        """Return the segments with their log-probabilities under the current weights."""
        known: dict[int, NDArray[np.float32]] = {}
        parts = micro_batches(self._policy, own, self._budget, self._processes)
        with closing(prefetched(self._ready_for_policy, parts)) as made:
            for ready in made:
                part = ready.part
                with torch.no_grad():
                    scores, _ = self._score(ready)
                for each, row in zip(part.own, scores.logprobs.float().cpu().numpy(), strict=True):
                    known[id(each)] = row[: len(each.segment)]  # [tokens], no padding
                if part.own:
                    self._compare(part.own, scores, agreement)
        return [replace(each, old_logprobs=known[id(each)]) for each in own]

    def _compare(
        self, part: Sequence[TrainingSegment], scores: TokenScores, agreement: LogprobMismatch
    ) -> None:
        version = self._policy.version
        segments = [each.segment for each in part]
        fresh = [each.loss_mask & (each.policy_version == version) for each in segments]
        agreement.add(
            scores.logprobs,
            _padded([each.logprobs for each in segments], scores.logprobs),
            _padded(fresh, scores.logprobs) > 0,
        )


def _added(shares: Sequence[Metrics]) -> Metrics:
    """Return the sums of the values by name."""
    totals: defaultdict[str, float] = defaultdict(float)
    for share in shares:
        for name, value in share.items():
            totals[name] += value
    return dict(totals)


def _require_logprobs(own: Sequence[TrainingSegment]) -> None:
    if any(np.isnan(each.segment.logprobs).any() for each in own):
        raise ConfigurationError(
            "These episodes have no log-probabilities, so the ratio of a second optimizer step "
            "cannot be computed: set num_epochs and num_minibatches to 1, or old_logprobs to "
            "'trainer'."
        )


def _known(logprobs: NDArray[np.float32] | None) -> NDArray[np.float32]:
    assert logprobs is not None
    return logprobs


def _padded(
    rows: Sequence[NDArray[np.float32] | NDArray[np.bool_]], like: torch.Tensor
) -> torch.Tensor:
    """Return the rows as a float32 tensor, with the shape and device of `like`, padded with 0."""
    padded = np.zeros(tuple(like.shape), np.float32)
    for place, row in enumerate(rows):
        padded[place, : len(row)] = row
    return torch.from_numpy(padded).to(like.device)
