"""Settings of the parts of a recipe: environments, model, sampler, demonstrations, evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from visenv.errors import ConfigurationError


@dataclass(frozen=True)
class EnvironmentConfig:
    """Names one environment to train on, and how its held-out samples are made."""

    id: str = "visenv/ZoomVQA-v0"
    """Environment id."""
    options: dict[str, Any] = field(default_factory=dict)
    """Arguments of the environment."""
    data: str = ""
    """Data set to train on, for example textvqa:<folder>; by default that of the environment."""
    weight: float = 1.0
    """Share of the samples of a step, relative to the other environments."""
    evaluation_options: dict[str, Any] = field(default_factory=dict)
    """Arguments of the environment that differ in evaluation."""
    rows: Path | None = None
    """Rows of `data` to train on, as `visenv data difficulty` writes them; by default all rows."""
    evaluation_data: str = ""
    """Data set to evaluate on; by default the held-out split of `data`."""

    def __post_init__(self) -> None:
        if not 0 < self.weight < float("inf"):
            raise ConfigurationError(f"weight must be a number above 0, got {self.weight}.")
        if self.rows is not None and not self.data:
            raise ConfigurationError("rows are rows of a data set: name it with data.")


@dataclass(frozen=True)
class ModelConfig:
    """The model that is trained."""

    name: str = "tiny"
    """A checkpoint folder, a hub name, or a tiny model that is built: "tiny" or
    "tiny-<family>"."""
    device: str = "cpu"
    """Device of the policy; under accelerate launch each process has its own GPU."""
    dtype: str = "float32"
    """Type of the weights."""
    freeze_vision: bool = False
    """Leave the vision tower as it is; a phase may decide otherwise."""
    lora_rank: int = 0
    """Rank of the adapters that are trained instead of the language model; 0 trains all of it."""
    options: dict[str, Any] = field(default_factory=dict)
    """Further arguments of the policy (`visenv.policies.transformers.TransformersPolicy`)."""

    def __post_init__(self) -> None:
        if self.lora_rank < 0:
            raise ConfigurationError(f"lora_rank must be 0 or more, got {self.lora_rank}.")


@dataclass(frozen=True)
class SamplerConfig:
    """Selects what samples the episodes in RL."""

    name: str = "transformers"
    """"transformers", the model that is trained, or an engine that is sent its weights: "vllm".
    Only the first is repeatable to the bit."""
    options: dict[str, Any] = field(default_factory=dict)
    """Arguments of the engine."""


@dataclass(frozen=True)
class DemonstrationConfig:
    """Describes the episodes that SFT learns from."""

    episodes: int = 0
    """Episodes that the oracle plays."""
    expert_rate: float = 1.0
    """Share of them in which the oracle uses the tools; in the others it does not look."""
    guess: bool = False
    """Whether an oracle that does not look guesses an answer, in place of giving up."""
    files: tuple[Path, ...] = ()
    """Files of saved episodes, used beside those of the oracle."""
    samples_of: str = ""
    """A phase of RL: the policy, as this phase finds it, plays all samples of that phase, as often
    as RL does. With `min_reward` this is rejection sampling."""
    min_reward: float | None = None
    """Episodes with a lower reward are left out; None keeps all."""
    batch_size: int = 64
    """Demonstrations in a step."""

    def __post_init__(self) -> None:
        if not 0 <= self.expert_rate <= 1:
            raise ConfigurationError(
                f"expert_rate must lie between 0 and 1, got {self.expert_rate!r}."
            )
        if self.episodes < 0 or self.batch_size < 1:
            raise ConfigurationError(
                "episodes must be 0 or more and batch_size 1 or more, got "
                f"{self.episodes} and {self.batch_size}."
            )

    def __bool__(self) -> bool:
        return bool(self.episodes or self.files or self.samples_of)


@dataclass(frozen=True)
class EvaluationConfig:
    """Sets how the model is evaluated before and after each phase."""

    episodes: int = 256
    """Held-out episodes of each environment."""
    max_tokens: int = 512
    """Most tokens in a turn."""
    temperature: float = 1.0
    """Temperature of the sampled episodes; those played greedily have 0."""
    every: int = 0
    """Steps between evaluations during each phase that is no control; 0: none. The weights with the
    best headline metric are kept in the phase's folder."""
    metrics: tuple[str, ...] = ()
    """Metrics of the table, beside the reward; by default the headline metrics of the tasks."""
    baselines: tuple[str, ...] = ()
    """Baselines of the model before the first phase of RL: "direct", "cot" or "rag", which answer
    without the tools (`visenv.policies.baselines`)."""
    baseline_options: dict[str, Any] = field(default_factory=dict)
    """Arguments of every baseline."""
    controls: tuple[str, ...] = ()
    """Controls under which the trained model is evaluated too (`visenv.evaluation.controls`)."""

    def __post_init__(self) -> None:
        for name, least in (("episodes", 1), ("max_tokens", 1), ("every", 0)):
            if getattr(self, name) < least:
                given = getattr(self, name)
                raise ConfigurationError(f"{name} must be at least {least}, got {given}.")
        if not 0 < self.temperature < float("inf"):
            raise ConfigurationError(f"temperature must be above 0, got {self.temperature}.")
