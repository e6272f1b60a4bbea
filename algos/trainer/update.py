"""The update: credited segments in, optimizer steps taken, the same for every algorithm."""

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
from .distributed import DistributedContext
from .divergence import DivergenceCheck
from .logprob_mismatch import LogprobMismatch
from .micro import MicroBatch, micro_batches
from .prefetch import pinned, prefetched

Metrics = dict[str, float]


class _Minibatch(NamedTuple):
    """The segments of one optimizer step that are this process's, and the size of all of it."""

    own: list[TrainingSegment]
    size: TokenCounts


class _Ready(NamedTuple):
    """A micro-batch with what its forward passes read: of the policy, and of the reference."""

    part: MicroBatch
    collated: Any
    for_reference: Any = None


class Updater:
    """Changes a policy's weights.

    Args:
        policy: Whose weights change.
        algorithm: What the loss is.
        optimization: How the weights change.
        backend: Of this policy.
        processes: Who takes part; all of them make the same calls.
        guard: Refuses steps.
        reference: The frozen policy of a KL term, where the algorithm needs one.

    Attributes:
        latest: What the latest optimizer step read: segments, each with its log-probabilities
            float32 ``[length]``, padded right.
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

        A step whose gradient is exactly 0, for example because no episode was better than another,
        leaves weights and optimizer alone.

        Args:
            given: The segments.
            learning_rate: Of this step of the run.
            rng: Draws the minibatches, the same on every process.

        Returns:
            ``loss``, ``grad_norm`` (before clipping) and the algorithm's metrics, each the mean
            over the optimizer steps; ``skipped``, the share of them that had no gradient; where
            there is an importance correction, ``importance_effective``, the share of the sample
            that counts: ``importance² / importance_square``; and `LogprobMismatch.measures`.

        Raises:
            DivergedError: If a loss or a gradient is not finite, or the norm leaps; the weights
                keep their last good values.
            SamplerError: If the sampler holds other weights than the trainer; nothing has changed.
            ConfigurationError: If tokens without log-probabilities are to be used more than once.
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
        """Split the step into mini-batches of whole groups, whose shared prefixes are read once."""
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
        """Take one optimizer step; return loss, gradient norm and metrics over all processes."""
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
        """Make a micro-batch ready for the policy, and for the reference if there is one."""
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
        return (loss.value if part.filler is None else loss.value + ballast), loss.metrics

    def _score(self, ready: _Ready) -> tuple[TokenScores, torch.Tensor]:
        """Return the scores of the segments, and a 0 from the filler, for the graph."""
        scores = self._backend(ready.collated)
        if ready.part.filler is None:
            return scores, scores.logprobs.new_zeros(())
        # [segments + 1, length]: the filler is the last row.
        return TokenScores(*(each[:-1] for each in scores)), scores.logprobs[-1].sum() * 0.0

    def _batch(
        self,
        part: Sequence[TrainingSegment],
        scores: TokenScores,
        size: TokenCounts,
        reference: torch.Tensor | None,
    ) -> Batch:
        logprobs = scores.logprobs  # [segments, length], as all that follow
        sampling = _padded([each.segment.logprobs for each in part], logprobs)
        old = sampling
        if self._optimization.old_logprobs == "trainer":
            old = _padded([_known(each.old_logprobs) for each in part], logprobs)
        # Where the engine gave none: this is the first use, so the weights are those.
        old = torch.where(old.isnan(), logprobs.detach(), old)
        return Batch(
            logprobs=logprobs,
            old_logprobs=old,
            sampling_logprobs=torch.where(sampling.isnan(), old, sampling),
            reference_logprobs=reference,
            entropy=scores.entropy,
            advantages=_padded([each.advantages for each in part], logprobs),
            mask=scores.mask,
            total_tokens=size.tokens,
            total_segments=size.segments,
        )

    def _reference_logprobs(self, ready: _Ready) -> torch.Tensor | None:
        """Return what the reference says of a micro-batch's own segments.

        A filler is read too: where the reference is in parts, all processes must run it as often.
        """
        if self._reference is None:
            return None
        scores = self._backend.refer(self._reference, ready.for_reference)
        return scores.logprobs if ready.part.filler is None else scores.logprobs[:-1]

    def _with_old_logprobs(
        self, own: Sequence[TrainingSegment], agreement: LogprobMismatch
    ) -> list[TrainingSegment]:
        """Return the segments with their log-probabilities under the present weights."""
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
            "These episodes hold no log-probabilities, so a second optimizer step could not tell "
            "how far the policy has moved: set num_epochs and num_minibatches to 1, or "
            "old_logprobs to 'trainer'."
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
