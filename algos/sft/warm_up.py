"""WarmUp: what makes a model fit for RL that can do nothing yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from visenv.policy import TrainablePolicy
from visenv.registration import load
from visenv.rollout import Env
from visenv.seeding import seeds

from ..trainer import Trainer, TrainerConfig
from .algorithm import SFT
from .demonstrations import play_demonstrations


@dataclass(frozen=True)
class WarmUp:
    """SFT on an oracle's episodes, for a model that can do nothing yet."""

    demonstrations: int = 0
    """Episodes of the oracle; 0 warms nothing up, as in the papers that train with RL alone."""
    care: float = 0.45
    """Share of them that it plays with care; in the others it gives up at once."""
    batch_size: int = 64
    """Demonstrations in a step."""
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    """Steps and optimisation."""

    def apply(
        self, policy: TrainablePolicy[Any], make_env: Callable[[], Env], folder: Path
    ) -> None:
        """Train, or load what came of it before.

        Args:
            policy: What learns.
            make_env: Makes what the oracle plays.
            folder: Where the run goes; one that was stopped goes on.
        """
        weights = folder / "checkpoints" / f"step_{self.trainer.steps:06d}" / "policy"
        if not self.demonstrations:
            return
        if weights.is_dir():
            policy.load_weights(weights)
            return
        drawn = seeds(np.random.SeedSequence(0, spawn_key=(5,)), self.demonstrations)
        oracle = load("policy", "oracle")(care=self.care)
        episodes = play_demonstrations(policy, oracle, make_env, drawn)
        trainer = Trainer(policy, SFT(), self.trainer, folder=folder, resume=folder.is_dir())
        trainer.fit(episodes, self.batch_size)
