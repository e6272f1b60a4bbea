"""The steps of a run, made by every one of its processes: play, learn, send, save."""

from __future__ import annotations

import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch

from visenv.algorithm import Algorithm
from visenv.episodes import write_episodes
from visenv.errors import DivergedError, EpisodeError, RunError
from visenv.policy import EnginePolicy, TrainablePolicy
from visenv.types import Group

from .backend import make_backend
from .checkpoint import Checkpoints
from .config import TrainerConfig, learning_rate
from .credit import credit
from .display import Display
from .guard import Guard
from .identity import identify
from .inspection import require_finite_rewards, save_step
from .interrupt import uninterrupted
from .journal import Journal
from .metrics import MetricsLog, measure, reduced
from .processes import Processes
from .reference import Reference
from .supply import Share, Supply, Taken, random_stream, usable
from .sync import WeightSync
from .update import Updater

_TORCH, _MINIBATCHES = 3, 4


Revive = Callable[[], Awaitable[None]]
MakeSupply = Callable[[Share, Revive], Supply]
"""Told this process's share, and how to start its engine anew."""


class Loop:
    """One run of `Trainer`, set up where it begins or goes on.

    Args:
        policy: What learns.
        algorithm: What the loss is.
        config: How long, how fast, and what is saved.
        folder: The run's folder.
        engine: What samples, if not the policy itself.
        make_supply: Makes what gives this process's episodes.
        resume: Whether to go on from the newest checkpoint.
        processes: Who takes part.
        stage: Of a curriculum; ``""`` if there is none.

    Attributes:
        step: Steps taken.

    Raises:
        RunError: If a checkpoint does not fit.
    """

    def __init__(
        self,
        *,
        policy: TrainablePolicy[Any],
        algorithm: Algorithm,
        config: TrainerConfig,
        folder: Path,
        engine: EnginePolicy[Any] | None,
        make_supply: MakeSupply,
        resume: bool,
        processes: Processes,
        stage: str,
    ) -> None:
        self.step = 0
        self._stage = stage
        self._policy = policy
        self._algorithm = algorithm
        self._config = config
        self._folder = folder
        self._processes = processes
        self._guard = Guard(config.optimisation.spike)
        self._reference = (
            Reference(folder / "reference", policy, processes)
            if algorithm.needs_reference
            else None
        )
        self._backend = make_backend(policy, config.optimisation, processes)
        self._sync = WeightSync(engine, policy, self._backend, processes, config.rollouts)
        self._supply = make_supply(Share(processes.rank, processes.count), self._sync.revive)
        identity = identify(config, algorithm, self._supply)
        self._checkpoints = Checkpoints(
            folder / "checkpoints",
            config.saving.keep_checkpoints,
            identity,
            policy=policy,
            backend=self._backend,
            guard=self._guard,
            processes=processes,
        )
        self._restore(resume)
        if not isinstance(self._supply, Taken):
            self._supply.journal = Journal(
                folder / "journal",
                identity,
                rank=processes.rank,
                count=processes.count,
                exact=engine is None,
            )
        self._updater = Updater(
            policy,
            algorithm,
            config.optimisation,
            self._backend,
            processes,
            self._guard,
            self._reference.policy if self._reference is not None else None,
        )

    def _restore(self, resume: bool) -> None:
        if not resume and self._processes.first:  # of a run that was killed before its first step
            shutil.rmtree(self._folder / "journal", ignore_errors=True)
        # The first process decides: another may have come when the folder was there already.
        latest = self._processes.broadcast(self._checkpoints.latest if resume else None)
        if latest is not None:
            self.step = self._checkpoints.load(latest)
        if self._reference is None or (resume and self._reference.restore(self.step)):
            return
        if self.step:
            raise RunError(f"{self._folder} holds no reference to go on with; begin another run.")
        self._reference.renew(0, self._backend)

    # -------------------------------------------------------------------------- the steps

    def run(self) -> None:
        """Take the steps that are left.

        Raises:
            RunError: If every episode of a step was aborted, the sampling engine is lost, or
                another process is.
            DivergedError: If a loss or gradient cannot be used; the step is saved.
            EpisodeError: If a reward is not finite; the step is saved.
            KeyboardInterrupt: After Ctrl-C or SIGTERM, with a checkpoint written.
        """
        first, steps = self._processes.first, self._config.steps
        label = type(self._algorithm).__name__
        size = self._supply.size // self._processes.count
        log = MetricsLog(self._folder, self.step, self._stage) if first else None
        with Display(label, steps, self.step, size, shown=first) as display:
            try:
                self._sync.send()
                while self.step < steps:
                    self._take_step(log, display)
            except KeyboardInterrupt:
                done = f"step {self.step} of {steps} with the checkpoint {self._save()}"
                raise KeyboardInterrupt(
                    f"Stopped after {done}; continue with --resume (Trainer(..., resume=True))."
                ) from None
            except RuntimeError as error:
                if self._processes.caused(error):
                    raise self._processes.lost(error) from error
                raise
            finally:
                if log is not None:
                    log.close()
                self._supply.close()
                self._policy.train_mode(False)
        self._backend.close()

    def _take_step(self, log: MetricsLog | None, display: Display) -> None:
        processes = self._processes
        with ExitStack() as held:
            if processes.count > 1:  # all stop after the same step
                held.enter_context(uninterrupted(lambda any_: any(processes.gather(any_))))
            torch.manual_seed(int(self._stream(_TORCH, processes.rank).generate_state(1)[0]))
            start = time.perf_counter()
            with self._backend.playing():
                groups = self._supply.groups(self.step, display.episode)
            played = time.perf_counter()
            if processes.count == 1:
                held.enter_context(uninterrupted())
            metrics = self._learn(groups)
            metrics |= reduced(processes.gather(self._supply.report()))
            metrics["seconds/play"] = played - start
            metrics["seconds/learn"] = time.perf_counter() - played
            self.step += 1
            self._renew_reference()
            if log is not None:
                log.write(self.step, metrics)
                display.step(self.step, metrics)
            self._save_due(groups)

    def _learn(self, groups: Sequence[Group]) -> dict[str, float]:
        """Change the weights by this process's groups and those of the others."""
        step = self.step + 1
        everyones = [group for each in self._processes.gather(groups) for group in each]
        self._sync.sleep()  # not before all have played: they may share an engine
        own = {id(episode) for group in groups for episode in group}
        try:
            require_finite_rewards(everyones)
            given = credit(
                self._algorithm,
                usable(everyones, step, self._config.rollouts.selection.on_exhausted),
                lambda group: id(group[0]) in own,
            )
            rate = learning_rate(self._config.optimisation, self.step, self._config.steps)
            rng = np.random.default_rng(self._stream(_MINIBATCHES))
            with self._sync.changing():
                metrics = self._updater.update(given, rate, rng) | {"learning_rate": rate}
        except (DivergedError, EpisodeError) as error:
            raise self._inspected(error, groups) from error
        self._sync.send()
        return measure(everyones) | metrics

    def _inspected(
        self, error: DivergedError | EpisodeError, groups: Sequence[Group]
    ) -> DivergedError | EpisodeError:
        """The error, with where a person finds the step it happened in."""
        step = self.step + 1
        path = save_step(
            self._folder / "diverged", step, groups, self._updater.latest, self._processes
        )
        advice = (
            " Try a smaller learning_rate or max_grad_norm, or a longer warm-up."
            if isinstance(error, DivergedError)
            else ""
        )
        return type(error)(f"In step {step} {error}. Its episodes are in {path}.{advice}")

    def _renew_reference(self) -> None:
        every = self._config.optimisation.reference_every
        if self._reference is not None and every is not None and self.step % every == 0:
            self._reference.renew(self.step, self._backend)

    # ------------------------------------------------------------------------- saving

    def _save_due(self, groups: Sequence[Group]) -> None:
        """Save what this step has to, the last step everything."""
        saving, last = self._config.saving, self.step == self._config.steps
        if last or self.step % saving.episodes_every == 0:
            everyones = self._processes.collect(groups)
            if self._processes.first:
                episodes = [one for each in everyones for group in each for one in group]
                write_episodes(self._folder / "episodes" / f"step_{self.step:06d}.jsonl", episodes)
        if last or self.step % saving.checkpoint_every == 0:
            self._save()

    def _save(self) -> Path:
        path = self._checkpoints.save(self.step)
        if self._reference is not None:
            self._reference.saved(self.step)
        if self._processes.first:
            self._supply.prune(self.step)
        return path

    def _stream(self, purpose: int, rank: int = 0) -> np.random.SeedSequence:
        keys = (purpose, self.step, rank) if rank else (purpose, self.step)
        return random_stream(self._config.seed, *keys)
