"""Takes the steps of a run in every process: play, update, send weights, save."""

from __future__ import annotations

import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch

from visenv.algorithm import Algorithm
from visenv.episodes import write_episodes
from visenv.errors import DivergedError, EpisodeError, RunError
from visenv.files import output_folder
from visenv.policy import EnginePolicy, TrainablePolicy
from visenv.seeding import random_stream
from visenv.types import Group

from .checkpoint import Checkpoints, identify
from .config import TrainerConfig, learning_rate
from .credit import credit, with_advantages
from .ddp import make_backend
from .diagnostics import DivergenceCheck, require_finite_rewards, save_step
from .distributed import DistributedContext
from .episode_sources import EpisodeSource, OfflineSource, Shard, trainable_groups
from .evaluation import Evaluator, HeldOut
from .interrupt import collected_interrupts, uninterrupted
from .journal import EpisodeJournal
from .metrics import measure, measure_by_env_and_kind, reduced
from .observers import Callback, Observers, TrainerState
from .phase_folder import episodes_of, logs_of, prepare_folder, require_folder
from .reference import ReferencePolicy
from .sync import WeightSync
from .update import Updater

_TORCH, _MINIBATCHES = 3, 4


Revive = Callable[[], Awaitable[None]]
MakeEpisodeSource = Callable[[Shard, Revive], EpisodeSource]
"""Creates the source from the share of this process and a function that restarts its engine."""


class TrainingLoop:
    """Runs a `Trainer` once, from the start of the run or from its latest checkpoint.

    Args:
        policy: The policy that is trained.
        algorithm: The algorithm.
        config: The settings of the run.
        folder: The folder of the run.
        engine: The engine that samples; None if the policy itself samples.
        make_episode_source: A function that creates the episode source of this process.
        resume: Whether to continue from the latest checkpoint.
        processes: The processes of the run.
        stage: The name of the phase, which is written to ``metrics.jsonl``; ``""`` writes none.
        reference: The reference of the KL term; by default a frozen copy of the policy.
        held_out: The settings of evaluations during training; None makes no evaluations.
        callbacks: The callbacks, which are called in this order.
        trackers: The names of trackers.

    Attributes:
        step: The number of steps that were taken.

    Raises:
        RunError: If a checkpoint does not belong to the run.
    """

    def __init__(
        self,
        *,
        policy: TrainablePolicy[Any],
        algorithm: Algorithm,
        config: TrainerConfig,
        folder: Path,
        engine: EnginePolicy[Any] | None,
        make_episode_source: MakeEpisodeSource,
        resume: bool,
        processes: DistributedContext,
        stage: str,
        reference: TrainablePolicy[Any] | None = None,
        held_out: HeldOut | None = None,
        callbacks: Sequence[Callback] = (),
        trackers: Sequence[str] = (),
    ) -> None:
        self.step = 0
        self._notices: list[str] = []
        self._stage = stage
        self._policy = policy
        self._player = engine or policy
        self._algorithm = algorithm
        self._config = config
        self._folder = folder
        self._processes = processes
        self._guard = DivergenceCheck(config.optimization.max_grad_norm_ratio)
        if engine is not None and config.rollouts.sleep:
            engine.sleep()  # frees memory for reference and optimizer; the first `send` wakes it
        self._reference = (
            ReferencePolicy(folder / "reference", policy, reference, processes)
            if algorithm.needs_reference
            else None
        )
        self._backend = make_backend(policy, config.optimization, processes)
        if self._reference is not None:
            self._backend.hold(self._reference.policy)
        self._sync = WeightSync(engine, policy, self._backend, processes, config.rollouts)
        self._episode_source = make_episode_source(
            Shard(processes.rank, processes.count), self._sync.revive
        )
        identity = identify(config, algorithm, self._episode_source)
        self._checkpoints = Checkpoints(
            folder / "checkpoints",
            config.saving.keep_checkpoints,
            identity,
            policy=policy,
            backend=self._backend,
            guard=self._guard,
            samples=self._episode_source.samples,
            processes=processes,
        )
        self._restore(resume)
        if not isinstance(self._episode_source, OfflineSource):
            self._episode_source.journal = EpisodeJournal(
                folder / "journal",
                identity,
                rank=processes.rank,
                count=processes.count,
                exact=engine is None,
            )
        self._updater = Updater(
            policy,
            algorithm,
            config.optimization,
            self._backend,
            processes,
            self._guard,
            self._reference.policy if self._reference is not None else None,
        )

        self._state = TrainerState(policy, folder, config.steps, self.step, processes.first)
        self._callbacks = callbacks
        self._trackers = trackers
        self._evaluator = None
        if held_out is not None:
            self._evaluator = Evaluator(
                held_out,
                folder,
                self.step,
                config.steps,
                policy=policy,
                player=self._player,
                backend=self._backend,
                processes=processes,
            )

    def _restore(self, resume: bool) -> None:
        if not resume and self._processes.first:  # left by a run that was killed in its first step
            shutil.rmtree(self._folder / "journal", ignore_errors=True)
        # The first process decides, because it may have written to the folder before others look.
        latest = self._processes.broadcast(self._checkpoints.latest if resume else None)
        if latest is not None:
            self.step, self._notices = self._checkpoints.load(latest)
        self._notices += self._processes.in_first(
            lambda: prepare_folder(self._folder, latest, self.step, self._config, self._policy)
        )
        if self._reference is None or (resume and self._reference.restore(self.step)):
            return
        if self.step:
            raise RunError(f"{self._folder} has no reference to resume from; start a new run.")
        self._reference.begin(self._backend)

    # -------------------------------------------------------------------------- the steps

    def run(self) -> None:
        """Take the remaining steps.

        Raises:
            RunError: If every episode of a step was aborted, or the sampling engine or another
                process was lost.
            DivergedError: If a loss or gradient cannot be used; the step is saved.
            SamplerError: If the sampler has weights that differ from the trainer's; the step is
                saved.
            EpisodeError: If a reward is not finite; the step is saved.
            DiskError: If a file cannot be written.
            KeyboardInterrupt: After Ctrl-C or a stop signal, with a checkpoint written.
        """
        steps = self._config.steps
        try:
            with self._observing() as observers, self._interrupts() as received:
                self._sync.send()
                observers.begin(self._notices)
                self._evaluate_due(observers)  # the run may have been killed before an evaluation
                self._stop_together(received)
                should_stop = False
                while self.step < steps and not should_stop:
                    self._take_step(observers)
                    self._evaluate_due(observers)
                    should_stop = observers.should_stop
                    self._stop_together(received)
                if self.step < steps:  # a callback stopped the run
                    self._save()
                observers.end()
        except KeyboardInterrupt:
            # A terminal that is closed sends SIGHUP twice, and a limit of CPU time a signal each
            # second. They must not interrupt the checkpoint; Ctrl-C can.
            with collected_interrupts(ctrl_c=False):
                path = self._save()
            done = f"step {self.step} of {steps} with the checkpoint {path}"
            raise KeyboardInterrupt(
                f"Stopped after {done}; continue with --resume (Trainer(..., resume=True))."
            ) from None
        except RuntimeError as error:
            if self._processes.caused(error):
                raise self._processes.lost(error) from error
            raise
        finally:
            self._episode_source.close()
            self._policy.train_mode(False)
            if self._evaluator is not None:
                self._evaluator.close()
        self._backend.close()

    def _observing(self) -> Observers:
        return Observers(
            type(self._algorithm).__name__,
            self._episode_source.size // self._processes.count,
            self._stage,
            trackers=self._trackers,
            state=self._state,
            callbacks=self._callbacks,
            processes=self._processes,
        )

    def _take_step(self, observers: Observers) -> None:
        processes = self._processes
        with ExitStack() as held:
            torch.manual_seed(int(self._stream(_TORCH, processes.rank).generate_state(1)[0]))
            start, processor_start = time.perf_counter(), time.process_time()
            with self._backend.playing(self._player):
                groups = self._episode_source.groups(self.step, observers.episode)
            played = time.perf_counter()
            if processes.count == 1:
                held.enter_context(uninterrupted())
            metrics = self._learn(groups)
            metrics |= reduced(processes.gather(self._episode_source.report()))
            replayed = self._episode_source.replayed_seconds
            metrics["seconds/play"] = played - start + replayed
            metrics["seconds/learn"] = time.perf_counter() - played
            metrics["seconds/processor"] = time.process_time() - processor_start + replayed
            self.step += 1
            self._state.step = self.step
            if replayed:
                observers.say(f"The episodes of step {self.step} were read from the journal.")
            self._renew_reference()
            observers.step(metrics, groups)
            self._save_due(groups, observers)

    def _evaluate_due(self, observers: Observers) -> None:
        """Evaluate the policy if an evaluation is due after the current step."""
        if self._evaluator is not None and self._evaluator.due(self.step):
            observers.evaluated(self._evaluator.evaluate(self.step))

    def _interrupts(self) -> AbstractContextManager[list[int]]:
        """Return a context that collects interrupts if several processes must stop together."""
        return nullcontext([]) if self._processes.count == 1 else collected_interrupts()

    def _stop_together(self, received: Sequence[int]) -> None:
        """Stop all processes at this point if any process has received an interrupt."""
        if any(self._processes.gather(bool(received))):
            raise KeyboardInterrupt

    def _learn(self, groups: Sequence[Group]) -> dict[str, float]:
        """Update the weights with the groups of all processes."""
        step = self.step + 1
        everyones = [group for each in self._processes.gather(groups) for group in each]
        self._sync.sleep()  # after all processes have played: they may share an engine
        own = {id(episode) for group in groups for episode in group}
        try:
            require_finite_rewards(everyones)
            given = credit(
                self._algorithm,
                trainable_groups(everyones, step, self._config.rollouts.selection.on_exhausted),
                lambda group: id(group[0]) in own,
            )
            rate = learning_rate(self._config.optimization, self.step, self._config.steps)
            rng = np.random.default_rng(self._stream(_MINIBATCHES))
            with self._sync.changing():
                metrics = self._updater.update(given, rate, rng) | {"learning_rate": rate}
        except (DivergedError, EpisodeError) as error:  # includes `SamplerError`
            raise self._inspected(error, groups) from error
        self._sync.send()
        parts = measure_by_env_and_kind(
            everyones, lambda group: self._episode_source.env_of(self.step, group)
        )
        if self._episode_source.samples is not None:
            self._episode_source.samples.observe(self.step, everyones)
        return measure(everyones) | dict(given.metrics) | metrics | parts

    def _inspected(
        self, error: DivergedError | EpisodeError, groups: Sequence[Group]
    ) -> DivergedError | EpisodeError:
        """Save the step, and return the error with the path of the saved episodes."""
        step = self.step + 1
        path = save_step(
            self._folder / "diverged", step, groups, self._updater.latest, self._processes
        )
        if type(error) is EpisodeError and self._processes.first:
            # The reward came from an environment, which may be corrected before the run is resumed.
            self._episode_source.forget(self.step)
        advice = (
            " Try a smaller learning_rate or max_grad_norm, or a longer warm-up."
            if type(error) is DivergedError
            else ""
        )
        return type(error)(f"In step {step} {error}. Its episodes are in {path}.{advice}")

    def _renew_reference(self) -> None:
        every = self._config.optimization.ref_sync_steps
        if self._reference is not None and every is not None and self.step % every == 0:
            self._reference.renew(self.step, self._backend)

    # ------------------------------------------------------------------------- saving

    def _save_due(self, groups: Sequence[Group], observers: Observers) -> None:
        """Save the episodes and the checkpoint if they are due; both are after the last step."""
        saving, last = self._config.saving, self.step == self._config.steps
        if self._processes.first:
            require_folder(self._folder)
        if last or self.step % saving.episodes_every == 0:
            everyones = self._processes.collect(groups)
            if self._processes.first:
                together = [group for each in everyones for group in each]
                on_exhausted = self._config.rollouts.selection.on_exhausted
                learned = trainable_groups(together, self.step, on_exhausted)
                episodes = with_advantages(self._algorithm, together, learned)
                folder = output_folder(self._folder / "episodes")
                write_episodes(folder / f"step_{self.step:06d}.jsonl", episodes)
                observers.example("train", episodes[0])
        if last or self.step % saving.checkpoint_every == 0:
            self._save()

    def _save(self) -> Path:
        if self._processes.first:
            require_folder(self._folder)
        logs, episodes = logs_of(self._folder), episodes_of(self._folder, self.step)
        path = self._checkpoints.save(self.step, logs, episodes)
        if self._reference is not None:
            self._reference.saved(self.step)
        if self._processes.first:
            self._episode_source.prune(self.step)
        for callback in self._callbacks:
            callback.on_save(self._state, path)
        return path

    def _stream(self, purpose: int, rank: int = 0) -> np.random.SeedSequence:
        keys = (purpose, self.step, rank) if rank else (purpose, self.step)
        return random_stream(self._config.seed, *keys)
