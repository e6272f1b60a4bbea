"""The settings of a training run; every field is checked when it is given."""

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
            raise ConfigurationError(f"{name} must be a number from {limit} up, got {value}.")


def _within(config: object, low: float, high: float, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        if not low <= value < high:
            raise ConfigurationError(f"{name} must be at least {low}, below {high}; got {value}.")


@dataclass(frozen=True)
class RolloutConfig:
    """Sets how episodes are played."""

    prompts_per_step: int = 8
    """Samples in a step."""
    num_generations: int = 8
    """Episodes played on each sample."""
    temperature: float = 1.0
    """Sampling temperature."""
    max_tokens: int = 512
    """Most tokens in a turn; the environment may ask for fewer."""
    concurrency: int = 128
    """Most episodes in flight."""
    episode_retries: int = 2
    """How often an episode that was aborted is played again."""
    selection: SelectionConfig = field(default_factory=SelectionConfig)
    """Which of the groups that are played a step learns from."""
    max_staleness: int = 0
    """Most steps that a sampling engine plays ahead, with weights so many steps old."""
    sleep: bool = False
    """Whether a sampling engine gives its memory back while weights are changed (colocated)."""
    engine_restarts: int = 3
    """How often in a run a sampling engine that died is started again."""

    def __post_init__(self) -> None:
        _at_least(self, 1, "prompts_per_step", "num_generations", "max_tokens", "concurrency")
        _at_least(self, 0, "episode_retries", "max_staleness", "engine_restarts")
        if self.sleep and self.max_staleness:
            raise ConfigurationError(
                "An engine that sleeps during the update cannot play ahead meanwhile: leave sleep "
                f"off, or max_staleness at 0; got {self.max_staleness}."
            )
        if not 0 < self.temperature < math.inf:
            raise ConfigurationError(
                "temperature must be above 0, as episodes of a group would all be the same at 0; "
                f"got {self.temperature}."
            )


@dataclass(frozen=True)
class OptimizationConfig:
    """Sets how weights are changed."""

    learning_rate: float = 1e-6
    """Largest learning rate of AdamW."""
    schedule: Schedule = "constant"
    """What the learning rate does after the warm-up; linear and cosine end at 0."""
    warmup_steps: int = 0
    """Steps in which it rises linearly from 0."""
    beta1: float = 0.9
    """Decay of AdamW's mean of gradients."""
    beta2: float = 0.98
    """Decay of AdamW's mean of squared gradients (Groundlight: 0.98)."""
    weight_decay: float = 0.0
    """Decay of matrices; vectors (norms, biases) never decay."""
    max_grad_norm: float = 1.0
    """Larger gradients are scaled down to this Euclidean norm."""
    num_epochs: int = 1
    """How often the episodes of a step are used."""
    num_minibatches: int = 1
    """Optimizer steps in an epoch."""
    tokens_per_batch: int = 16384
    """Most tokens that one forward pass reads; a longer segment goes alone."""
    patches_per_batch: int | None = None
    """Most image patches that one forward pass reads; None is no limit."""
    old_logprobs: OldLogprobs = "sampler"
    """Source of the log-probabilities before the step: the sampler, or the trainer with another
    pass, which rounds as the update does where the sampler is another engine."""
    max_sampler_distance: float | None = 0.25
    """Largest mean of ``|log p_trainer - log p_sampler|``, in nats, over tokens sampled with the
    present weights; a larger one stops the run before weights change. Where fewer than 64 such
    tokens can be compared, the run goes on. None: never."""
    max_grad_norm_ratio: float | None = None
    """A gradient norm that many times the median of the latest 50 stops the run; None: never."""
    ref_sync_steps: int | None = None
    """Steps after which the reference becomes the present policy; None: never."""

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
    """Sets what is written into the run's folder, and how often."""

    checkpoint_every: int = 50
    """Steps between checkpoints; the last step and Ctrl-C always make one."""
    keep_checkpoints: int = 2
    """How many of the newest stay."""
    episodes_every: int = 25
    """Steps between saved sets of episodes; the last step's are saved too."""

    def __post_init__(self) -> None:
        _at_least(self, 1, "checkpoint_every", "keep_checkpoints", "episodes_every")


@dataclass(frozen=True)
class TrainerConfig:
    """Holds all settings of a training run but the policy, the environment and the algorithm."""

    steps: int = 200
    """Steps of the run: each plays, or takes, a batch of episodes and learns from it."""
    seed: int = 0
    """Decides the scenes, the sampling and the order of everything."""
    rollouts: RolloutConfig = field(default_factory=RolloutConfig)
    """How episodes are played."""
    optimization: OptimizationConfig = field(default_factory=OptimizationConfig)
    """How weights are changed."""
    saving: SavingConfig = field(default_factory=SavingConfig)
    """What is written, and how often."""
    timeout: float = 1800.0
    """Seconds that one process waits for another before the run stops with an error; sampling may
    take one longer than another."""

    def __post_init__(self) -> None:
        _at_least(self, 1, "steps", "timeout")
        _at_least(self, 0, "seed")


def learning_rate(optimization: OptimizationConfig, step: int, steps: int) -> float:
    """Return the learning rate of step `step` (from 0) of `steps`.

    It rises to its largest value in the last warm-up step, then follows the schedule, which would
    reach 0 at step `steps`, the first that is not taken.
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
