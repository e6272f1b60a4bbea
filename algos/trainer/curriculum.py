"""A curriculum: stages of training, each with its own task, reward, settings and reference."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from visenv.algorithm import Algorithm
from visenv.errors import ConfigurationError, RunError
from visenv.policy import EnginePolicy, TrainablePolicy
from visenv.rollout import Env, Executor
from visenv.seeding import seeds

from .config import TrainerConfig
from .processes import is_first
from .trainer import Trainer

_STAGES = 6
"""Key of the stages' own streams of random numbers, beside those of `Trainer`."""


@dataclass(frozen=True)
class Stage:
    """One stage: a run of the trainer that begins with the weights of the stage before.

    The optimiser and the schedule of the learning rate begin anew. Where the algorithm needs a
    reference, that is the policy as this stage began (Mags-RL: "updating the reference to the
    weights obtained from stage 1").

    Attributes:
        name: Of its folder.
        make_env: Makes one environment: the task with its preset, options and reward.
        algorithm: What the loss is, for example with another weight of the reference.
        config: Steps, temperature, learning rate, sizes.
    """

    name: str
    make_env: Callable[[], Env]
    algorithm: Algorithm
    config: TrainerConfig


class Curriculum:
    """Trains a policy through stages, in a folder with one run of `Trainer` for each.

    ::

        first = Stage("first", partial(gym.make, env_id, reward="stage1"), GRPO(), config)
        then = replace(first, name="then", make_env=partial(gym.make, env_id, reward="stage2"))
        Curriculum(policy, [first, then], folder="runs/two").train()

    A curriculum that was stopped goes on with ``resume=True`` inside the stage where it was, as
    `Trainer` does: what a stage ends with is read back from its last checkpoint, which refuses
    other settings than it was made with. More stages may be added to the end of one.

    Stages draw from unrelated streams, so that none plays the scenes of another; the first draws
    what the same run of `Trainer` would.

    Args:
        policy: What learns.
        stages: In their order.
        folder: The curriculum's folder; each stage gets ``folder/<name>``.
        resume: Whether to continue what the folder holds.
        sampler: An engine that samples in the policy's place, in every stage; see `Trainer`.
        executor: Where environments run, in every stage; see `Trainer`.

    Raises:
        ConfigurationError: If there is no stage, or names are not different plain folder names.
        RunError: If the folder holds a run and `resume` is off, is missing and `resume` is on, or
            holds other stages.
    """

    def __init__(
        self,
        policy: TrainablePolicy[Any],
        stages: Sequence[Stage],
        *,
        folder: str | Path,
        resume: bool = False,
        sampler: EnginePolicy[Any] | None = None,
        executor: Executor | None = None,
    ) -> None:
        _check_names([stage.name for stage in stages])
        self.policy = policy
        self.folder = Path(folder)
        self.stages = [_reseeded(stage, index) for index, stage in enumerate(stages)]
        self._sampler = sampler
        self._executor = executor
        # Looked at before any stage begins, and checked by the process that will write: another
        # may come when the first has begun to.
        self._begun = [(self.folder / stage.name).is_dir() for stage in self.stages]
        if is_first():
            self._check_folder(resume)

    def train(self, on_stage: Callable[[Stage], None] | None = None) -> None:
        """Train every stage to its end.

        Args:
            on_stage: Called when the policy is as a stage has left it, also for stages that ended
                before this process began.

        Raises:
            RunError, DivergedError, KeyboardInterrupt: As `Trainer.train` does.
        """
        for stage, begun in zip(self.stages, self._begun, strict=True):
            # One that has ended takes no step: its trainer reads its last checkpoint back.
            trainer = Trainer(
                self.policy,
                stage.algorithm,
                stage.config,
                folder=self.folder / stage.name,
                resume=begun,
                sampler=self._sampler,
                executor=self._executor,
                stage=stage.name,
            )
            trainer.train(stage.make_env)
            if on_stage is not None:
                on_stage(stage)

    def metrics(self) -> list[dict[str, Any]]:
        """What every stage logged so far.

        Returns:
            The rows of their ``metrics.jsonl`` in order, each with its ``stage``, and ``step``
            counted through all stages.
        """
        rows: list[dict[str, Any]] = []
        before = 0
        for stage in self.stages:
            path = self.folder / stage.name / "metrics.jsonl"
            for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
                row = json.loads(line)
                rows.append({"stage": stage.name, **row, "step": before + row["step"]})
            before += stage.config.steps
        return rows

    def _check_folder(self, resume: bool) -> None:
        if resume and not self.folder.is_dir():
            raise RunError(f"There is no curriculum {self.folder} to resume.")
        if any(self._begun) and not resume:
            raise RunError(
                f"{self.folder} holds a curriculum already. Continue it with --resume "
                "(Curriculum(..., resume=True)), or give another name."
            )
        names = [stage.name for stage in self.stages]
        held = sorted(path.parent.name for path in self.folder.glob("*/metrics.jsonl"))
        in_order = sorted(self._begun, reverse=True) == self._begun
        if not in_order or not {*held} <= {*names}:
            raise RunError(
                f"{self.folder} holds the stages {held}, which do not begin these: {names}. Stages "
                "may be added to the end; for others begin another run."
            )


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise ConfigurationError("A curriculum has at least one stage, got none.")
    for name, count in Counter(names).items():
        if not name or Path(name).name != name:
            raise ConfigurationError(f"A stage's name is a plain folder name, got {name!r}.")
        if count > 1:
            raise ConfigurationError(f"Stages have different names, got {name!r} {count} times.")


def _reseeded(stage: Stage, index: int) -> Stage:
    """The stage with a seed of its own, the first with the one it was given."""
    if index == 0:
        return stage
    stream = np.random.SeedSequence(stage.config.seed, spawn_key=(_STAGES, index))
    return replace(stage, config=replace(stage.config, seed=seeds(stream, 1)[0]))
