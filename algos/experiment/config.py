"""Defines the settings of the parts of a recipe: environments, model, sampler and others."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from visenv.errors import ConfigurationError


@dataclass(frozen=True)
class EnvironmentConfig:
    """Describes one environment to train on, and its held-out samples."""

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
    """File of the rows of `data` to train on, written by `visenv data difficulty`; by default all
    rows are used."""
    evaluation_data: str = ""
    """Data set to evaluate on; by default the held-out split of `data`."""

    def __post_init__(self) -> None:
        if not 0 < self.weight < float("inf"):
            raise ConfigurationError(f"weight must be a number above 0, got {self.weight}.")
        if self.rows is not None and not self.data:
            raise ConfigurationError(
                f"rows selects rows of a data set, got rows={str(self.rows)!r} without data: set "
                "data, or omit rows."
            )


@dataclass(frozen=True)
class ModelConfig:
    """Describes the model that is trained."""

    name: str = "tiny"
    """Checkpoint folder, hub name, or "tiny": a model with random weights, which visenv builds."""
    tokenizer_episodes: int = 128
    """Number of episodes of each player (oracle, teacher and random policy) on whose texts the
    tokenizer of a tiny model is trained."""
    device: str = "cpu"
    """Device of the policy; with accelerate launch, each process has its own GPU."""
    dtype: str = "float32"
    """Data type of the weights."""
    freeze_vision: bool = False
    """Freeze the vision tower; a phase can override this."""
    lora_rank: int = 0
    """Rank of LoRA adapters that are trained instead of the language model; 0 trains the whole
    language model. Other settings of LoRA are in `options`, as `lora`."""
    options: dict[str, Any] = field(default_factory=dict)
    """Further arguments of the policy (`visenv.policies.transformers.TransformersPolicy`)."""

    def __post_init__(self) -> None:
        for name, least in (("lora_rank", 0), ("tokenizer_episodes", 1)):
            if getattr(self, name) < least:
                given = getattr(self, name)
                raise ConfigurationError(f"{name} must be {least} or more, got {given}.")


@dataclass(frozen=True)
class SamplerConfig:
    """Selects the sampler of the episodes in RL."""

    name: str = "transformers"
    """Sampler: "transformers" samples with the trained model itself, "vllm" with an engine that
    receives its weights. Only "transformers" is bitwise reproducible."""
    options: dict[str, Any] = field(default_factory=dict)
    """Arguments of the engine."""


@dataclass(frozen=True)
class DemonstrationConfig:
    """Describes the episodes of SFT."""

    episodes: int = 0
    """Number of episodes that the player plays."""
    player: Literal["oracle", "random"] = "oracle"
    """Policy that plays these episodes unless a `teacher` does. With "random", set `top_share`."""
    teacher: str = ""
    """Name of a teacher (`VisEnv.teachers`), a player with a documented flaw, that plays these
    episodes instead of the oracle; "default" is the first teacher of each task."""
    strength: float = 1.0
    """Strength of the teacher's flaw; at 0 the teacher plays like the oracle."""
    teacher_options: dict[str, Any] = field(default_factory=dict)
    """Further options of the teacher."""
    expert_rate: float = 1.0
    """Share of these episodes in which the oracle uses the tools and answers correctly; in the
    others it answers without looking."""
    guess: bool = False
    """Whether the answer in those other episodes is a guess; by default the oracle gives up."""
    files: tuple[Path, ...] = ()
    """Files of saved episodes, in addition to those of the oracle."""
    samples_of: str = ""
    """Name of a phase of RL. The policy at the start of this phase plays all samples of that phase,
    as often as RL does. With `min_reward`, this is rejection sampling."""
    min_reward: float | None = None
    """Minimum reward; episodes with a lower reward are left out. None keeps all."""
    top_share: float = 1.0
    """Share of the episodes that is kept, 0 to 1: those with the highest rewards, without those
    that have the lowest reward of all. 1 keeps all."""
    batch_size: int = 64
    """Number of demonstrations in a step."""

    def __post_init__(self) -> None:
        if not 0 <= self.expert_rate <= 1:
            raise ConfigurationError(
                f"expert_rate must lie between 0 and 1, got {self.expert_rate!r}."
            )
        if self.teacher and self.player != "oracle":
            raise ConfigurationError(
                f"These demonstrations have two players: the teacher {self.teacher!r} and the "
                f"{self.player} policy."
            )
        player = "a teacher" if self.teacher else f"the {self.player} policy"
        if player != "the oracle policy" and (self.expert_rate != 1.0 or self.guess):
            raise ConfigurationError(
                "expert_rate and guess belong to the oracle, and these demonstrations are played "
                f"by {player}."
            )
        if not self.teacher and (self.strength != 1.0 or self.teacher_options):
            raise ConfigurationError(
                "strength and teacher_options belong to a teacher, and these demonstrations are "
                f"played by {player}."
            )
        if not 0 < self.top_share <= 1:
            raise ConfigurationError(
                f"top_share must be above 0 and at most 1, got {self.top_share!r}."
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
    """Holds the settings of evaluations before and after each phase."""

    episodes: int = 256
    """Number of held-out episodes of each environment."""
    max_tokens: int = 512
    """Maximum number of sampled tokens in a turn."""
    temperature: float = 1.0
    """Temperature of the sampled episodes; the greedy episodes have temperature 0."""
    every: int = 0
    """Number of steps between evaluations during each phase that is not a control; 0 makes none.
    The weights with the best headline metric are kept in the folder of the phase."""
    every_episodes: int = 0
    """Number of held-out episodes of each environment in the evaluations during a phase, at most
    those of the others; 0 plays as many as the others."""
    metrics: tuple[str, ...] = ()
    """Metrics of the table in addition to the reward; by default the headline metrics of the
    tasks."""
    baselines: tuple[str, ...] = ()
    """Baselines with the model before the first phase of RL: "direct", "cot" or "rag", which answer
    without the tools (`visenv.policies.baselines`)."""
    baseline_options: dict[str, Any] = field(default_factory=dict)
    """Arguments of every baseline."""
    controls: tuple[str, ...] = ()
    """Controls under which the trained model is also evaluated (`visenv.evaluation.controls`)."""

    def __post_init__(self) -> None:
        for name, least in (
            ("episodes", 1),
            ("max_tokens", 1),
            ("every", 0),
            ("every_episodes", 0),
        ):
            if getattr(self, name) < least:
                given = getattr(self, name)
                raise ConfigurationError(f"{name} must be at least {least}, got {given}.")
        if not 0 < self.temperature < float("inf"):
            raise ConfigurationError(f"temperature must be above 0, got {self.temperature}.")
