"""Defines the settings of a training run; every field is validated."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, get_args

from visenv.errors import ConfigurationError

from .episode_sources.selection import SelectionConfig

Schedule = Literal["constant", "linear", "cosine"]
OldLogprobs = Literal["sampler", "trainer"]


def _at_least(config: object, limit: float, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        if not limit <= value < math.inf:
            raise ConfigurationError(f"{name} must be a number of at least {limit}, got {value}.")


def _within(config: object, low: float, high: float, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        if not low <= value < high:
            raise ConfigurationError(f"{name} must be at least {low}, below {high}; got {value}.")


@dataclass(frozen=True)
class RolloutConfig:
    """Holds the settings of rollouts."""

    prompts_per_step: int = 8
    """Number of samples in a step."""
    num_generations: int = 8
    """Number of episodes of each sample."""
    temperature: float = 1.0
    """Sampling temperature."""
    max_tokens: int = 512
    """Maximum number of sampled tokens in a turn; the environment may set a lower limit."""
    concurrency: int = 128
    """Maximum number of episodes that are played concurrently."""
    episode_retries: int = 2
    """Number of times that an aborted episode is played again."""
    selection: SelectionConfig = field(default_factory=SelectionConfig)
    """Selection of the groups that a step trains on."""
    max_staleness: int = 0
    """Maximum number of steps by which a sampling engine may start episodes early, and by which its
    weights may be old."""
    sleep: bool = False
    """Whether a colocated sampling engine releases its memory during the update."""
    engine_restarts: int = 3
    """Number of times in a run that a sampling engine is restarted after it died."""

    def __post_init__(self) -> None:
        _at_least(self, 1, "prompts_per_step", "num_generations", "max_tokens", "concurrency")
        _at_least(self, 0, "episode_retries", "max_staleness", "engine_restarts")
        if self.sleep and self.max_staleness:
            raise ConfigurationError(
                "An engine that sleeps during the update cannot sample during it: set sleep to "
                f"False, or max_staleness to 0; got max_staleness={self.max_staleness}."
            )
        if not 0 < self.temperature < math.inf:
            raise ConfigurationError(
                "temperature must be above 0, because at 0 all episodes of a group are equal; "
                f"got {self.temperature}."
            )


@dataclass(frozen=True)
class OptimizationConfig:
    """Holds the settings of the optimizer."""

    learning_rate: float = 1e-6
    """Maximum learning rate of AdamW."""
    schedule: Schedule = "constant"
    """Schedule of the learning rate after the warm-up; linear and cosine end at 0."""
    warmup_steps: int = 0
    """Number of steps in which the learning rate increases linearly from 0."""
    beta1: float = 0.9
    """Decay of AdamW's mean of gradients."""
    beta2: float = 0.98
    """Decay of AdamW's mean of squared gradients (Groundlight: 0.98)."""
    weight_decay: float = 0.0
    """Weight decay of matrices; vectors (norms, biases) have none."""
    max_grad_norm: float = 1.0
    """Euclidean norm to which larger gradients are clipped."""
    num_epochs: int = 1
    """Number of passes over the episodes of a step."""
    num_minibatches: int = 1
    """Number of optimizer steps in a pass."""
    tokens_per_batch: int = 16384
    """Maximum number of tokens in one forward pass; a longer segment is computed alone."""
    patches_per_batch: int | None = None
    """Maximum number of image patches in one forward pass; None sets no limit."""
    old_logprobs: OldLogprobs = "sampler"
    """Source of the log-probabilities before the step: the sampler, or an additional forward pass
    of the trainer, which rounds in the same way as the update if the sampler is another engine."""
    max_sampler_distance: float | None = 0.25
    """Maximum mean of ``|log p_trainer - log p_sampler|``, in nats, over tokens that were sampled
    with the current weights. If it is exceeded, the run stops before weights change. It is not
    checked if fewer than 64 such tokens can be compared. None turns the check off."""
    max_grad_norm_ratio: float | None = None
    """The run stops if the gradient norm exceeds the median of the latest 50 norms by this factor;
    None turns the check off."""
    ref_sync_steps: int | None = None
    """Number of steps after which the weights of the policy are copied to the reference; None never
    copies them."""

    def __post_init__(self) -> None:
        for name, choices in (("schedule", Schedule), ("old_logprobs", OldLogprobs)):
            if getattr(self, name) not in get_args(choices):
                raise ConfigurationError(
                    f"{name} is one of {get_args(choices)}, got {getattr(self, name)!r}."
                )
        _at_least(self, 0.0, "learning_rate", "warmup_steps", "weight_decay")
        _at_least(self, 1, "num_epochs", "num_minibatches", "tokens_per_batch")
        if self.max_sampler_distance is not None and not self.max_sampler_distance > 0:
            raise ConfigurationError(
                f"max_sampler_distance must be above 0, got {self.max_sampler_distance}."
            )
        for name in ("patches_per_batch", "ref_sync_steps", "max_grad_norm_ratio"):
            if getattr(self, name) is not None:
                _at_least(self, 1, name)
        _within(self, 0.0, 1.0, "beta1", "beta2")
        if not self.max_grad_norm > 0:
            raise ConfigurationError(f"max_grad_norm must be above 0, got {self.max_grad_norm}.")


@dataclass(frozen=True)
class SavingConfig:
    """Holds the settings of saving checkpoints and episodes."""

    checkpoint_every: int = 50
    """Number of steps between checkpoints; the last step and Ctrl-C always save one."""
    keep_checkpoints: int = 2
    """Number of checkpoints that are kept; older ones are deleted."""
    episodes_every: int = 25
    """Number of steps between saved sets of episodes; those of the last step are saved too."""

    def __post_init__(self) -> None:
        _at_least(self, 1, "checkpoint_every", "keep_checkpoints", "episodes_every")


@dataclass(frozen=True)
class TrainerConfig:
    """Holds all settings of a training run except the policy, the environment and the algorithm."""

    steps: int = 200
    """Number of steps of the run. A step plays or reads a batch of episodes and trains on it."""
    seed: int = 0
    """Seed of the scenes, of the sampling and of all random orders."""
    rollouts: RolloutConfig = field(default_factory=RolloutConfig)
    """Settings of rollouts."""
    optimization: OptimizationConfig = field(default_factory=OptimizationConfig)
    """Settings of the optimizer."""
    saving: SavingConfig = field(default_factory=SavingConfig)
    """Settings of saving checkpoints and episodes."""
    timeout: float = 1800.0
    """Seconds that one process waits for another before the run stops with an error. Sampling may
    take longer in one process than in another."""

    def __post_init__(self) -> None:
        _at_least(self, 1, "steps", "timeout")
        _at_least(self, 0, "seed")


def learning_rate(optimization: OptimizationConfig, step: int, steps: int) -> float:
    """Return the learning rate of step `step` (from 0) of `steps`.

    The learning rate increases to its maximum in the last warm-up step and then follows the
    schedule, which reaches 0 at step `steps`, the first step that is not taken.
    """
    peak, warmup = optimization.learning_rate, optimization.warmup_steps
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = (step - warmup) / max(steps - warmup, 1)
    factors = {
        "constant": 1.0,
        "linear": 1 - progress,
        "cosine": (1 + math.cos(math.pi * progress)) / 2,
    }
    return peak * factors[optimization.schedule]
