"""SFT before RL: what makes a model fit for it that can do nothing yet, done once."""

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
from visenv.types import Episode

from ..trainer import Trainer, TrainerConfig
from .algorithm import SFT
from .demonstrations import play_demonstrations


def fit_once(
    policy: TrainablePolicy[Any],
    config: TrainerConfig,
    folder: Path,
    batch_size: int,
    demonstrations: Callable[[], list[Episode]],
) -> Path:
    """Train by SFT, or load the weights of a run that has ended.

    Args:
        policy: What learns.
        config: Steps and optimisation.
        folder: Where the run goes; one that was stopped goes on.
        batch_size: Demonstrations in a step.
        demonstrations: Makes them, where they are needed; with tokens.

    Returns:
        The folder of the weights.
    """
    weights = folder / "checkpoints" / f"step_{config.steps:06d}" / "policy"
    if weights.is_dir():
        policy.load_weights(weights)
    else:
        episodes = demonstrations()
        trainer = Trainer(policy, SFT(), config, folder=folder, resume=folder.is_dir())
        trainer.fit(episodes, batch_size)
    return weights


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

        def demonstrations() -> list[Episode]:
            drawn = seeds(np.random.SeedSequence(0, spawn_key=(5,)), self.demonstrations)
            oracle = load("policy", "oracle")(care=self.care)
            return play_demonstrations(policy, oracle, make_env, drawn)

        if self.demonstrations:
            fit_once(policy, self.trainer, folder, self.batch_size, demonstrations)
