"""Defines `Trainer`, the entry point for training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from visenv.algorithm import Algorithm
from visenv.errors import ConfigurationError, DiskError, RunError
from visenv.lasting_output import lasting_output
from visenv.launcher import is_first
from visenv.policy import EnginePolicy, TrainablePolicy
from visenv.rollout import Collector, Env, Executor, Mixture
from visenv.types import Episode, Sampling

from .config import TrainerConfig
from .distributed import DistributedContext
from .episode_sources import AsyncRolloutSource, EpisodeSource, OfflineSource, RolloutSource, Shard
from .evaluation import HeldOut
from .interrupt import stop_signals_interrupt
from .loop import MakeEpisodeSource, Revive, TrainingLoop
from .observers import Callback
from .phase_folder import locked, with_advice
from .trackers import check_trackers


class Trainer:
    """Trains a policy with an algorithm, and writes the results to a folder.

    ::

        Trainer(policy, GRPO(), config, folder="runs/first").train(make_env)

    The folder contains ``metrics.jsonl``, ``tensorboard/``, ``episodes/step_000123.jsonl`` and
    ``checkpoints/step_000123/``, and with `held_out` also ``evaluations.jsonl`` and ``best/``. A
    run that was stopped by Ctrl-C, a signal or a kill continues from its last checkpoint with
    ``resume=True``. On the same CPU with the same number of threads, the results are bitwise
    the same as without the interruption.

    With ``accelerate launch --config_file configs/…`` the same program trains in several processes.
    Each process plays its share of the groups, and all processes update one set of weights, which
    each process holds completely or DeepSpeed shards. The first process writes the files. The
    number of processes does not change which episodes are played. Each process creates the policy
    on its own device.

    The global random state of torch is seeded again for every step.

    Args:
        policy: The policy that is trained.
        algorithm: The algorithm: one of visenv, or your own class with two methods.
        config: The settings of the run.
        folder: The folder of the run, which is created if necessary; all processes must see it.
        resume: Whether to continue the run in the folder.
        sampler: An engine that samples instead of the policy, and receives the weights after each
            step. Every process has its own.
        executor: Determines where environments run; by default in this process, on the event loop.
        stage: The name of the phase, which is written to ``metrics.jsonl``.
        reference: The frozen reference of the KL term (`TrainablePolicy.copy_frozen`); by default a
            copy of `policy` at the start of the run. A resumed run reads it from its folder.
        held_out: The settings of evaluations during training. Scores are written to
            ``evaluations.jsonl`` and the trackers, and the best weights to ``best/``.
        callbacks: The callbacks, which every process calls in this order.
        trackers: The trackers that receive metrics and example episodes: "tensorboard", "wandb",
            "trackio", "mlflow".

    Attributes:
        step: The number of steps that were taken.

    Raises:
        ConfigurationError: If a tracker is unknown or not installed, or a reference is given to an
            algorithm that has no KL term.
        RunError: If the folder contains a run and `resume` is False, or is missing and `resume` is
            True.
    """

    def __init__(
        self,
        policy: TrainablePolicy[Any],
        algorithm: Algorithm,
        config: TrainerConfig | None = None,
        *,
        folder: str | Path,
        resume: bool = False,
        sampler: EnginePolicy[Any] | None = None,
        executor: Executor | None = None,
        stage: str = "",
        reference: TrainablePolicy[Any] | None = None,
        held_out: HeldOut | None = None,
        callbacks: Sequence[Callback] = (),
        trackers: Sequence[str] = ("tensorboard",),
    ) -> None:
        self.policy = policy
        self.algorithm = algorithm
        self.config = config or TrainerConfig()
        self.folder = Path(folder)
        self.sampler = sampler
        self.executor = executor
        self.step = 0
        self._stage = stage
        self._resume = resume
        self._held_out = held_out
        self._callbacks = tuple(callbacks)
        self._trackers = tuple(trackers)
        self._reference = reference
        check_trackers(self._trackers)
        if reference is not None and not algorithm.needs_reference:
            raise ConfigurationError(
                f"A reference was given, but {type(algorithm).__name__} has no KL term: set its "
                "kl_coef above 0, or omit the reference."
            )
        if is_first():  # other processes may check after the first one has started to write
            _check_folder(self.folder, resume)

    def train(self, make_env: Callable[[], Env] | Mixture) -> None:
        """Train until `TrainerConfig.steps` steps are taken.

        Args:
            make_env: A function that creates an environment, for example
                ``lambda: gym.make("visenv/…")``, or a mixture of several environments.

        Raises:
            RunError: If a checkpoint belongs to another run, every episode of a step was aborted,
                the sampler failed too often, another process was lost, or another run uses the
                folder.
            DivergedError: If a loss or gradient is not finite, or the gradient norm jumps; the step
                is saved.
            EpisodeError: If a reward is not finite; the step is saved.
            DiskError: If a file cannot be written. The message names the file and, if the disk is
                full, the free space and the size of a checkpoint.
            KeyboardInterrupt: After Ctrl-C or a stop signal, with a checkpoint written.
        """
        rollouts = self.config.rollouts
        collectors: list[Collector] = []

        def make_episode_source(share: Shard, revive: Revive) -> EpisodeSource:
            collector = Collector(
                make_env,
                self.sampler or self.policy,
                Sampling(rollouts.temperature, rollouts.max_tokens),
                rollouts.concurrency,
                executor=self.executor,
                retries=rollouts.episode_retries,
                revive=revive,
                # A run with a separate engine is not bitwise reproducible.
                deterministic=self.sampler is None,
            )
            collectors.append(collector)
            return self._episode_source(collector, share)

        try:
            self._run(make_episode_source)
        finally:
            for collector in collectors:
                collector.close()

    def _episode_source(self, collector: Collector, share: Shard) -> EpisodeSource:
        rollouts, optimization = self.config.rollouts, self.config.optimization
        sizes = (rollouts.prompts_per_step, rollouts.num_generations, self.config.seed)
        told = (collector, self.policy, *sizes, share, rollouts.selection)
        if not rollouts.max_staleness:
            return RolloutSource(*told)
        return AsyncRolloutSource(
            *told,
            max_staleness=rollouts.max_staleness,
            updates=optimization.num_epochs * optimization.num_minibatches,
            steps=self.config.steps,
        )

    def fit(self, episodes: Sequence[Episode], batch_size: int) -> None:
        """Train on given episodes until `TrainerConfig.steps` steps are taken.

        Args:
            episodes: The episodes, with segments (`TrainablePolicy.encode`), equal on every
                process. Each epoch has a new random order.
            batch_size: The number of episodes in a step.

        Raises:
            ConfigurationError: If there are no episodes, or an episode has no segments.
            RunError: If a checkpoint belongs to another run, another process was lost, or another
                run uses the folder.
            DivergedError: If a loss or gradient is not finite, or the gradient norm jumps; the step
                is saved.
            DiskError: If a file cannot be written. The message names the file and, if the disk is
                full, the free space and the size of a checkpoint.
            KeyboardInterrupt: After Ctrl-C or a stop signal, with a checkpoint written.
        """
        self._run(lambda share, _: OfflineSource(episodes, batch_size, self.config.seed, share))

    def _run(self, make_episode_source: MakeEpisodeSource) -> None:
        with ExitStack() as held:
            held.enter_context(lasting_output())
            held.enter_context(stop_signals_interrupt())
            if is_first():
                held.enter_context(locked(self.folder))
                # Another process may have trained in the folder after this trainer was created.
                _check_folder(self.folder, self._resume)
            try:
                self._run_loop(make_episode_source)
            except DiskError as error:
                raise with_advice(error, self.policy) from error

    def _run_loop(self, make_episode_source: MakeEpisodeSource) -> None:
        processes = DistributedContext(self.config.timeout)
        try:
            loop = TrainingLoop(
                policy=self.policy,
                algorithm=self.algorithm,
                config=self.config,
                folder=self.folder,
                engine=self.sampler,
                make_episode_source=make_episode_source,
                resume=processes.broadcast(self._resume),
                processes=processes,
                stage=self._stage,
                reference=self._reference,
                held_out=self._held_out,
                callbacks=self._callbacks,
                trackers=self._trackers,
            )
        except BaseException:
            if self.sampler is not None and self.config.rollouts.sleep:
                self.sampler.wake()  # the loop put the engine to sleep, and `send` is not called
            raise
        try:
            loop.run()
        finally:
            self.step = loop.step


def _check_folder(folder: Path, resume: bool) -> None:
    if resume and not folder.is_dir():
        raise RunError(f"There is no run {folder} to resume: start it without --resume.")
    if not resume and (folder / "metrics.jsonl").exists():
        raise RunError(
            f"{folder} holds a run already. Continue it with --resume, or use another name."
        )
