"""Defines the fields of a recipe: environments, model, phases of training, evaluation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from visenv.errors import ConfigurationError, UnknownNameError

from ..trainer import OptimizationConfig, RolloutConfig, TrainerConfig
from ..trainer.config import SavingConfig
from .config import (
    DemonstrationConfig,
    EnvironmentConfig,
    EvaluationConfig,
    ModelConfig,
    SamplerConfig,
)

MODEL = "model"
"""The value of `Phase.reference` for the model before training."""

ExecutorName = Literal["inline", "threads", "processes", "ray"]


def is_folder_name(name: str) -> bool:
    """Return whether a text can be the name of one folder, and is not a path."""
    return name not in ("", ".", "..") and Path(name).name == name


def _check_differ_in_every_case(names: Iterable[str]) -> None:
    """Check that names also differ on a file system that ignores the case of letters."""
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(name.casefold(), name)
        if other != name:
            raise ConfigurationError(
                f"The names {name!r} and {other!r} are the same folder on some file systems: "
                "rename one of them."
            )


@dataclass(frozen=True)
class Phase:
    """Describes one phase of training: SFT on demonstrations, or RL."""

    algorithm: str = "grpo"
    """Name of the algorithm, or module:Class; "sft" trains on demonstrations."""
    algorithm_options: dict[str, Any] = field(default_factory=dict)
    """Arguments of the algorithm."""
    options: dict[str, Any] = field(default_factory=dict)
    """Arguments of every environment that differ in this phase, for example the reward."""
    environment_options: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Arguments of one environment of a mixture that differ in this phase, by its name."""
    demonstrations: DemonstrationConfig = field(default_factory=DemonstrationConfig)
    """Demonstrations of SFT."""
    freeze_vision: bool | None = None
    """Freeze the vision tower in this phase; None uses the setting of the model."""
    begins_with: str = ""
    """Phase with whose weights this phase starts; by default the last one that is not a control."""
    reference: str = ""
    """Reference policy of the KL term: "model", or an earlier phase; by default the initial weights
    of the phase."""
    control: bool = False
    """Whether this phase is a control. Later phases do not start with its weights by default."""
    as_long_as: str = ""
    """Name of a phase of RL, in whose time as many steps are taken as fit, instead of `steps`."""
    steps: int = 200
    """Number of steps of the phase."""
    evaluate_every: int | None = None
    """Number of steps between evaluations during this phase; 0 makes none. By default that of the
    evaluation (`EvaluationConfig.every`), and 0 in a control."""
    rollouts: RolloutConfig = field(default_factory=RolloutConfig)
    """Settings of rollouts."""
    optimization: OptimizationConfig = field(default_factory=OptimizationConfig)
    """Settings of the optimizer."""
    saving: SavingConfig = field(default_factory=SavingConfig)
    """Settings of saving checkpoints and episodes."""
    timeout: float = 1800.0
    """Seconds that one process waits for another."""

    @property
    def is_sft(self) -> bool:
        """Return whether the phase trains on demonstrations."""
        return self.algorithm == "sft"

    def options_of(self, environment: str) -> dict[str, Any]:
        """Return the arguments of an environment that differ in this phase."""
        return {**self.options, **self.environment_options.get(environment, {})}

    @property
    def refers_to(self) -> tuple[str, ...]:
        """Return the names of the earlier phases to which this phase refers."""
        reference = "" if self.reference == MODEL else self.reference
        named = (self.begins_with, self.as_long_as, self.demonstrations.samples_of, reference)
        return tuple(filter(None, named))

    def trainer(self, seed: int, steps: int | None = None) -> TrainerConfig:
        """Return the settings of the trainer of the phase.

        Args:
            seed: The seed of the phase.
            steps: The number of steps; by default that of the phase.
        """
        return TrainerConfig(
            steps=self.steps if steps is None else steps,
            seed=seed,
            rollouts=self.rollouts,
            optimization=self.optimization,
            saving=self.saving,
            timeout=self.timeout,
        )

    def __post_init__(self) -> None:
        if self.is_sft != bool(self.demonstrations):
            raise ConfigurationError(
                "A phase has demonstrations if and only if its algorithm is 'sft', got "
                f"{self.algorithm!r} and {self.demonstrations}."
            )
        if self.evaluate_every is not None and self.evaluate_every < 0:
            raise ConfigurationError(
                f"evaluate_every must be at least 0, got {self.evaluate_every}."
            )
        if self.reference and self.is_sft:
            raise ConfigurationError(
                "A phase of SFT has no reference policy, got reference="
                f"{self.reference!r}: omit it."
            )
        self.trainer(seed=0)  # checks steps and timeout


@dataclass(frozen=True)
class Recipe:
    """Train a model in phases, evaluate it after each phase, and compare it with controls.

    The folder of the run, runs/<name>/, contains recipe.json, results.json, curves.png,
    report.html, model/ (of a tiny model), and a folder for each phase with its checkpoints, metrics
    and episodes.
    """

    name: str = "run"
    """Name of the run, a folder under `runs`."""
    runs: Path = Path("runs")
    """Folder of all runs."""
    resume: bool = False
    """Continue the run of that name from its last checkpoint."""
    seed: int = 0
    """Seed of the weights of a tiny model, the demonstrations, the samples and the sampling."""
    environments: dict[str, EnvironmentConfig] = field(default_factory=dict)
    """Environments, by names that you choose; several form a mixture."""
    mixture: Literal["weight", "pass_rate"] = "weight"
    """Whether environments are drawn by their weights, or by their weights and pass rates
    (`visenv.rollout.Mixture`)."""
    model: ModelConfig = field(default_factory=ModelConfig)
    """The model that is trained."""
    sampler: SamplerConfig = field(default_factory=SamplerConfig)
    """Sampler of the episodes in RL."""
    num_processes: int = 1
    """Number of processes on this machine that train together: each plays its share of the episodes
    and computes its share of the gradient. `visenv train` starts them, unless `accelerate launch`
    or `torchrun` has started it."""
    executor: ExecutorName = "inline"
    """Executor, which determines where environments run."""
    phases: dict[str, Phase] = field(default_factory=dict)
    """Phases in order, by name."""
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    """Settings of evaluations."""
    controls: bool = True
    """Also run the controls."""
    trackers: tuple[str, ...] = ("tensorboard",)
    """Trackers of metrics and example episodes: "tensorboard", "wandb", "trackio", "mlflow"."""
    callbacks: tuple[str, ...] = ()
    """Classes of callbacks (`visenv.algos.trainer.Callback`), each as module:Class."""

    def __post_init__(self) -> None:
        if not self.environments:
            raise ConfigurationError(
                "A recipe needs at least one environment, got none: add a table "
                "[environments.NAME]."
            )
        if not self.phases:
            raise ConfigurationError(
                "A recipe needs at least one phase, got none: add a table [phases.NAME]."
            )
        if self.num_processes < 1:
            raise ConfigurationError(f"num_processes must be at least 1, got {self.num_processes}.")
        for name in (self.name, *self.environments, *self.phases):
            if not is_folder_name(name):
                raise ConfigurationError(f"A name must be a plain folder name, got {name!r}.")
        for names in (self.environments, self.phases):
            _check_differ_in_every_case(names)
        self._check_environments()
        self._check_phases()

    @property
    def folder(self) -> Path:
        """Return the folder of the run."""
        return self.runs / self.name

    @property
    def last_phase(self) -> str:
        """Return the last phase that is not a control; its weights are the result of the recipe."""
        return [name for name, phase in self.phases.items() if not phase.control][-1]

    def begins_with(self, phase: str) -> str | None:
        """Return the phase with whose weights a phase starts, or None for those of the model."""
        named = self.phases[phase].begins_with
        if named:
            return named
        names = list(self.phases)
        before = names[: names.index(phase)]
        return next((each for each in reversed(before) if not self.phases[each].control), None)

    def _check_environments(self) -> None:
        same = Counter(
            repr(
                (
                    each.id.removeprefix("visenv/"),
                    sorted(each.options.items()),
                    each.data,
                    each.rows,
                )
            )
            for each in self.environments.values()
        )
        if max(same.values()) > 1:
            raise ConfigurationError(
                "Two environments of the recipe are the same: give one of them the sum of their "
                "weights."
            )

    def _check_phases(self) -> None:
        names = list(self.phases)
        if all(phase.control for phase in self.phases.values()):
            raise ConfigurationError(
                f"At least one phase must not be a control, got only controls: {', '.join(names)}."
            )
        if reserved := {"evaluation", MODEL, "samples"} & self.phases.keys():
            raise ConfigurationError(f"A phase cannot be called {reserved.pop()!r}.")
        for place, (name, phase) in enumerate(self.phases.items()):
            for referred in phase.refers_to:
                if referred not in names[:place]:
                    raise UnknownNameError(f"phase before {name}", referred, names[:place])
            if self._is_sft(phase.demonstrations.samples_of):
                raise ConfigurationError(f"{name}: samples_of must name a phase of RL.")
            if phase.demonstrations.samples_of and self.mixture == "pass_rate":
                raise ConfigurationError(
                    f"{name}: samples_of needs samples that do not depend on pass rates; use "
                    'mixture = "weight".'
                )
            for environment in phase.environment_options:
                if environment not in self.environments:
                    raise UnknownNameError(f"environment of {name}", environment, self.environments)
            self._check_control(name, phase)
            if phase.as_long_as and not (phase.is_sft and self._is_sft(phase.begins_with)):
                raise ConfigurationError(
                    f"{name}: as_long_as needs a phase of SFT whose begins_with is a phase of SFT, "
                    "from which the time of a step is taken."
                )

    def _check_control(self, name: str, phase: Phase) -> None:
        """Check that a phase that is not a control does not start with, or refer to, a control."""
        for referred in phase.refers_to:
            if self.phases[referred].control and not phase.control:
                raise ConfigurationError(
                    f"{name} is no control but refers to the control {referred}."
                )

    def _is_sft(self, name: str) -> bool:
        return name in self.phases and self.phases[name].is_sft
