"""The training loop."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from visenv.algorithm import Algorithm
from visenv.episodes import write_episodes
from visenv.errors import DivergedError, RunError
from visenv.policy import TrainablePolicy
from visenv.rollout import Collector, Env
from visenv.types import Episode, Group, Sampling

from .checkpoint import Checkpoints, Identity, publish
from .config import TrainerConfig, learning_rate
from .credit import credit
from .display import Display
from .interrupt import uninterrupted
from .metrics import MetricsLog, measure
from .supply import Played, Supply, Taken, random_stream, usable
from .update import Updater, make_optimizer

_TORCH, _MINIBATCHES = 3, 4


class Trainer:
    """Trains a policy with an algorithm, in a folder of its own.

    ::

        Trainer(policy, GRPO(), config, folder="runs/first").train(make_env)

    The folder gets ``metrics.jsonl``, ``tensorboard/``, ``episodes/step_000123.jsonl`` and
    ``checkpoints/step_000123/``. A run that was stopped, by Ctrl-C or by a kill, goes on with
    ``resume=True`` from its last checkpoint as if nothing had happened: on a CPU to the bit.

    The global random state of torch is seeded anew for every step.

    Args:
        policy: What learns.
        algorithm: What the loss is: ours, or your own class with two methods.
        config: How long, how fast, and what is saved.
        folder: The run's folder, made if it is not there.
        resume: Whether to continue what the folder holds.

    Attributes:
        step: Steps taken.

    Raises:
        RunError: If the folder holds a run and `resume` is off, or is missing and `resume` is on.
    """

    def __init__(
        self,
        policy: TrainablePolicy[Any],
        algorithm: Algorithm,
        config: TrainerConfig | None = None,
        *,
        folder: str | Path,
        resume: bool = False,
    ) -> None:
        self.policy = policy
        self.algorithm = algorithm
        self.config = config or TrainerConfig()
        self.folder = Path(folder)
        self.step = 0
        self._resume = resume
        _check_folder(self.folder, resume)

    def train(self, make_env: Callable[[], Env]) -> None:
        """Play and learn until `TrainerConfig.steps` steps are taken.

        Args:
            make_env: Makes one environment, for example ``lambda: gym.make("visenv/…")``.

        Raises:
            RunError: If a checkpoint does not fit, or every episode of a step was aborted.
            DivergedError: If a loss or gradient is not finite; the step's episodes are saved.
            KeyboardInterrupt: After Ctrl-C, with a checkpoint written.
        """
        rollouts = self.config.rollouts
        sampling = Sampling(rollouts.temperature, rollouts.max_tokens)
        collector = Collector(make_env, self.policy, sampling, rollouts.concurrency)
        try:
            counts = (rollouts.groups, rollouts.group_size)
            self._run(Played(collector, self.policy, *counts, self.config.seed))
        finally:
            collector.close()

    def fit(self, episodes: Sequence[Episode], batch_size: int) -> None:
        """Learn from given episodes until `TrainerConfig.steps` steps are taken.

        Args:
            episodes: With segments (`TrainablePolicy.encode`); each pass takes them in a new order.
            batch_size: Episodes in a step.

        Raises:
            ConfigurationError: If there are none, or they have no segments.
            RunError: If a checkpoint does not fit.
            DivergedError: If a loss or gradient is not finite; the step's episodes are saved.
            KeyboardInterrupt: After Ctrl-C, with a checkpoint written.
        """
        self._run(Taken(episodes, batch_size, self.config.seed))

    # --------------------------------------------------------------------------- the loop

    def _run(self, supply: Supply) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        optimizer = make_optimizer(self.policy, self.config.optimisation)
        reference = self._reference()
        checkpoints = Checkpoints(
            self.folder / "checkpoints", self.config.saving.keep_checkpoints, self._identity(supply)
        )
        if self._resume and checkpoints.latest is not None:
            self.step = checkpoints.load(checkpoints.latest, self.policy, optimizer)
        updater = Updater(
            self.policy, self.algorithm, self.config.optimisation, optimizer, reference
        )

        def save() -> Path:
            return checkpoints.save(self.step, self.policy, optimizer)

        log = MetricsLog(self.folder, self.step)
        label = type(self.algorithm).__name__
        with Display(label, self.config.steps, self.step, supply.size) as display:
            try:
                while self.step < self.config.steps:
                    self._take_step(supply, updater, log, display, save)
            except KeyboardInterrupt:
                display.say(
                    f"Stopped after step {self.step} of {self.config.steps}. All of it is in "
                    f"{save()}; continue with --resume (Trainer(..., resume=True))."
                )
                raise
            finally:
                log.close()
                self.policy.train_mode(False)

    def _take_step(
        self,
        supply: Supply,
        updater: Updater,
        log: MetricsLog,
        display: Display,
        save: Callable[[], Path],
    ) -> None:
        torch.manual_seed(int(self._stream(_TORCH).generate_state(1)[0]))
        start = time.perf_counter()
        groups = supply.groups(self.step, display.episode)
        played = time.perf_counter()
        with uninterrupted():
            metrics = measure(groups) | self._learn(updater, groups)
            metrics["seconds/play"] = played - start
            metrics["seconds/learn"] = time.perf_counter() - played
            self.step += 1
            log.write(self.step, metrics)
            display.step(self.step, metrics)
            self._save_due(groups, save)

    def _learn(self, updater: Updater, groups: Sequence[Group]) -> dict[str, float]:
        rate = learning_rate(self.config.optimisation, self.step, self.config.steps)
        rng = np.random.default_rng(self._stream(_MINIBATCHES))
        credited = credit(self.algorithm, usable(groups, self.step + 1))
        try:
            return updater.update(credited, rate, rng) | {"learning_rate": rate}
        except DivergedError as error:
            path = self.folder / "diverged" / f"step_{self.step + 1:06d}.jsonl"
            write_episodes(path, [episode for group in groups for episode in group])
            raise DivergedError(
                f"In step {self.step + 1} {error}. Its episodes are in {path}. Try a smaller "
                "learning_rate or max_grad_norm, or a longer warm-up."
            ) from error

    def _save_due(self, groups: Sequence[Group], save: Callable[[], Path]) -> None:
        """Save what this step has to, the last step everything."""
        saving, last = self.config.saving, self.step == self.config.steps
        if last or self.step % saving.episodes_every == 0:
            episodes = [episode for group in groups for episode in group]
            write_episodes(self.folder / "episodes" / f"step_{self.step:06d}.jsonl", episodes)
        if last or self.step % saving.checkpoint_every == 0:
            save()

    def _stream(self, purpose: int) -> np.random.SeedSequence:
        return random_stream(self.config.seed, purpose, self.step)

    # ------------------------------------------------------------------------ its identity

    def _identity(self, supply: Supply) -> Identity:
        """What decides every number of the run: all it was told but how often to save."""
        config = asdict(self.config)
        del config["saving"]
        if self.config.optimisation.schedule == "constant":
            del config["steps"]  # then a longer run begins like a shorter one
        algorithm: Any = self.algorithm
        told = (
            {each.name: getattr(algorithm, each.name) for each in fields(algorithm)}
            if is_dataclass(algorithm)
            else {}
        )
        return {
            "algorithm": {"name": type(algorithm).__qualname__, **told},
            "config": config,
            "episodes": {"from": type(supply).__name__, "in_step": supply.size},
        }

    def _reference(self) -> TrainablePolicy[Any] | None:
        """The policy as the run began, kept in the folder so that a resumed run has it too."""
        if not self.algorithm.needs_reference:
            return None
        folder = self.folder / "reference"
        reference = self.policy.copy_frozen()
        if self._resume and folder.exists():
            reference.load_weights(folder)
            return reference
        partial = self.folder / ".reference"
        for old in (partial, folder):
            shutil.rmtree(old, ignore_errors=True)
        partial.mkdir()
        reference.save(partial)
        publish(partial, folder)
        return reference


def _check_folder(folder: Path, resume: bool) -> None:
    if resume and not folder.is_dir():
        raise RunError(f"There is no run {folder} to resume.")
    if not resume and (folder / "metrics.jsonl").exists():
        raise RunError(
            f"{folder} holds a run already. Continue it with --resume, or give another name."
        )
