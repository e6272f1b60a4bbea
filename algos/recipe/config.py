"""What the main job can be told: the options of `visenv train`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from visenv.errors import ConfigurationError

from ..policy_gradient import DAPO
from ..trainer import Optimisation, Rollouts, TrainerConfig


def _warm_up() -> TrainerConfig:
    optimisation = Optimisation(
        learning_rate=2e-3, schedule="cosine", warmup_steps=30, beta2=0.95, weight_decay=0.01
    )
    return TrainerConfig(steps=220, optimisation=optimisation)


def _rl() -> TrainerConfig:
    # A decay of 0.99 averages over some hundred noisy steps; with 0.95, or at 3e-4, it drifts down.
    optimisation = Optimisation(learning_rate=2e-4, schedule="linear", warmup_steps=5, beta2=0.99)
    rollouts = Rollouts(groups=16, group_size=8, max_tokens=28)
    return TrainerConfig(steps=50, optimisation=optimisation, rollouts=rollouts)


@dataclass(frozen=True)
class Train:
    """Warm a model up on oracle episodes, train it with GRPO, and show what each step was worth.

    Without options: a tiny model built from its config learns, on a CPU, to zoom into an image
    before it answers. It writes runs/<name>/: config.json, results.json, curves.png, report.html,
    model/, and one folder for each phase with its checkpoints, metrics and episodes.
    """

    name: str = "zoom-tiny"
    """Name of the run, a folder under `runs`."""
    runs: Path = Path("runs")
    """Where runs are kept."""
    resume: bool = False
    """Continue the run of that name from where it stopped."""
    seed: int = 0
    """Decides the weights, the demonstrations, the scenes and the sampling."""
    env: str = "visenv/ZoomVQA-v0"
    """Environment id."""
    option: tuple[str, ...] = ("preset=tiny",)
    """Arguments of the environment, key=value."""
    data: str | None = None
    """Data set to train on, for example textvqa:<folder>; procedural scenes by default."""
    evaluation_data: str | None = None
    """Data set to evaluate on; by default the ?split=val of `data`."""
    model: str = "tiny"
    """"tiny", "tiny-arm" or "tiny-arft" builds one from its config; otherwise a checkpoint folder
    or a hub name."""
    sampler: Literal["transformers", "vllm"] = "transformers"
    """Who samples in RL: the model that is trained, or vLLM, which is sent its weights. Only the
    first repeats itself to the bit."""
    device: str = "cpu"
    """Device of the policy."""
    threads: int = 2
    """CPU threads of PyTorch."""
    demonstrations: int = 320
    """Oracle episodes of the warm-up: few, as demonstrations are scarce, and often repeated."""
    care: float = 0.45
    """Share of demonstrations played with care; in the others the oracle gives up without looking.
    What RL has to find out is that looking is worth it."""
    batch_size: int = 64
    """Demonstrations in a step of the warm-up."""
    warm_up: TrainerConfig = field(default_factory=_warm_up)
    """The warm-up by SFT."""
    rl: TrainerConfig = field(default_factory=_rl)
    """Training by RL."""
    grpo: DAPO = field(default_factory=DAPO)
    """The algorithm of RL: GRPO with DAPO's clip-higher and mean over tokens."""
    episodes: int = 256
    """Held-out episodes of each evaluation."""
    controls: bool = True
    """Run the two controls: equal compute on more SFT, and crops at random points."""

    def __post_init__(self) -> None:
        if not 0 <= self.care <= 1:
            raise ConfigurationError(f"care must lie between 0 and 1, got {self.care!r}.")
        for name in ("demonstrations", "batch_size", "episodes", "threads"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"{name} must be at least 1, got {getattr(self, name)}.")
        if not self.name or Path(self.name).name != self.name:
            raise ConfigurationError(f"name must be a plain folder name, got {self.name!r}.")

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.runs / self.name

    def run(self) -> None:
        """Do the job."""
        from .job import Job

        Job(self).run()
