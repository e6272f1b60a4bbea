"""The update: credited segments in, optimiser steps taken, the same for every algorithm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from visenv.algorithm import Algorithm, Batch
from visenv.errors import ConfigurationError, DivergedError
from visenv.policy import Scores, TrainablePolicy

from .config import Optimisation
from .credit import Credited


def make_optimizer(policy: TrainablePolicy[Any], optimisation: Optimisation) -> torch.optim.AdamW:
    """AdamW over the policy's parameters; only matrices decay."""
    parameters = [each for each in policy.parameters() if each.requires_grad]
    matrices = [each for each in parameters if each.ndim >= 2]
    vectors = [each for each in parameters if each.ndim < 2]
    return torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": optimisation.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ],
        lr=optimisation.learning_rate,
        betas=(optimisation.beta1, optimisation.beta2),
    )


class Updater:
    """Changes a policy's weights.

    Args:
        policy: Whose weights change.
        algorithm: What the loss is.
        optimisation: How the weights change.
        optimizer: Made by `make_optimizer` for this policy.
        reference: The frozen policy of a KL term, where the algorithm needs one.
    """

    def __init__(
        self,
        policy: TrainablePolicy[Any],
        algorithm: Algorithm,
        optimisation: Optimisation,
        optimizer: torch.optim.Optimizer,
        reference: TrainablePolicy[Any] | None = None,
    ) -> None:
        self._policy = policy
        self._algorithm = algorithm
        self._optimisation = optimisation
        self._optimizer = optimizer
        self._reference = reference

    def update(
        self, credited: Sequence[Credited], learning_rate: float, rng: np.random.Generator
    ) -> dict[str, float]:
        """All optimiser steps for the segments of one step of the run.

        Args:
            credited: The segments.
            learning_rate: Of this step of the run.
            rng: Draws the minibatches.

        Returns:
            ``loss``, ``grad_norm`` (before clipping) and the algorithm's metrics, each the mean
            over the optimiser steps.

        Raises:
            DivergedError: If a loss or a gradient is not finite; the weights keep their last good
                values.
            ConfigurationError: If tokens without log-probabilities are to be used more than once.
        """
        steps = self._optimisation.passes * self._optimisation.minibatches
        if steps > 1 and any(np.isnan(each.segment.logprobs).any() for each in credited):
            raise ConfigurationError(
                "These episodes hold no log-probabilities, so a second optimiser step could not "
                "tell how far the policy has moved: set passes and minibatches to 1."
            )
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        self._policy.train_mode(True)
        totals: Counter[str] = Counter()
        for minibatch in self._minibatches(credited, rng):
            totals.update(self._optimise(minibatch))
        return {name: value / steps for name, value in totals.items()}

    def _minibatches(
        self, credited: Sequence[Credited], rng: np.random.Generator
    ) -> Iterator[list[Credited]]:
        for _ in range(self._optimisation.passes):
            order = rng.permutation(len(credited))
            for part in np.array_split(order, self._optimisation.minibatches):
                yield [credited[index] for index in part]

    def _optimise(self, minibatch: Sequence[Credited]) -> Counter[str]:
        """One optimiser step; its loss, gradient norm and metrics."""
        tokens = sum(int(each.segment.loss_mask.sum()) for each in minibatch)
        totals: Counter[str] = Counter()
        self._optimizer.zero_grad()
        for part in cut(minibatch, self._optimisation.tokens_per_batch):
            loss = self._algorithm.loss(self._batch(part, tokens, len(minibatch)))
            _require_finite("loss", loss.value)
            loss.value.backward()
            totals.update({"loss": loss.value.item(), **loss.metrics})
        parameters = [each for group in self._optimizer.param_groups for each in group["params"]]
        norm = torch.nn.utils.clip_grad_norm_(parameters, self._optimisation.max_grad_norm)
        _require_finite("gradient", norm)
        self._optimizer.step()
        self._policy.updated()
        totals["grad_norm"] = norm.item()  # type: ignore[assignment]
        return totals

    def _batch(self, part: Sequence[Credited], tokens: int, segments: int) -> Batch:
        scores = _score(self._policy, part)
        logprobs = scores.logprobs
        old = _padded([each.segment.logprobs for each in part], logprobs)
        reference = None
        if self._reference is not None:
            with torch.no_grad():
                reference = _score(self._reference, part).logprobs
        return Batch(
            logprobs=logprobs,
            # Where the engine gave none: this is the first use, so the weights are those.
            old_logprobs=torch.where(old.isnan(), logprobs.detach(), old),
            reference_logprobs=reference,
            entropy=scores.entropy,
            advantages=_padded([each.advantages for each in part], logprobs),
            mask=scores.mask,
            total_tokens=tokens,
            total_segments=segments,
        )


def cut(credited: Sequence[Credited], tokens: int) -> Iterator[list[Credited]]:
    """Micro-batches of like lengths, each of at most `tokens` tokens with its padding."""
    part: list[Credited] = []
    for each in sorted(credited, key=lambda each: -len(each.segment)):
        if part and len(part[0].segment) * (len(part) + 1) > tokens:
            yield part
            part = []
        part.append(each)
    if part:
        yield part


def _score(policy: TrainablePolicy[Any], part: Sequence[Credited]) -> Scores:
    images = {sha256: image for each in part for sha256, image in each.images.items()}
    return policy.score([each.segment for each in part], images)


def _padded(rows: Sequence[NDArray[np.float32]], like: torch.Tensor) -> torch.Tensor:
    """The rows as one tensor of the shape and on the device of `like`, padded right with 0."""
    padded = np.zeros(tuple(like.shape), np.float32)
    for place, row in enumerate(rows):
        padded[place, : len(row)] = row
    return torch.from_numpy(padded).to(like.device)


def _require_finite(what: str, value: torch.Tensor) -> None:
    if not torch.isfinite(value):
        raise DivergedError(f"the {what} is {value.item()}")
