"""Checkpoints: written whole or not at all, and refused where they do not fit.

::

    checkpoints/step_000123/
        policy/          what `TrainablePolicy.save` writes: a checkpoint of its own
        optimizer/       the state of the optimizer, in shards (`optimizer_shards`)
        state.json       steps taken, the policy's version, the run's settings

No random state is kept: every step draws from streams made of the run's seed and its own number.
Nothing depends on the number of processes, so a run may go on with another number of them.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from visenv.errors import RunError
from visenv.old_names import with_new_names
from visenv.policy import TrainablePolicy

from .backend import TrainingBackend
from .distributed import DistributedContext
from .divergence import DivergenceCheck
from .episode_sources.samples import SampleOrder
from .identity import Identity, differences


class Checkpoints:
    """The checkpoints of a run; every process makes the same calls.

    Args:
        folder: Where they lie; all processes see it.
        keep: How many of the newest stay.
        identity: The settings of the run.
        policy: Whose weights are kept.
        backend: Of this policy.
        guard: Its norms are kept too.
        samples: Which samples the run plays; its pass rates are kept too. None plays nothing.
        processes: Who takes part.
    """

    def __init__(
        self,
        folder: Path,
        keep: int,
        identity: Identity,
        *,
        policy: TrainablePolicy[Any],
        backend: TrainingBackend,
        guard: DivergenceCheck,
        samples: SampleOrder | None,
        processes: DistributedContext,
    ) -> None:
        self.folder = folder
        self._keep = keep
        self._identity = json.loads(json.dumps(identity))
        self._policy = policy
        self._backend = backend
        self._guard = guard
        self._samples = samples
        self._processes = processes

    @property
    def latest(self) -> Path | None:
        """Return the newest checkpoint, or None."""
        return max(self.folder.glob("step_*"), default=None)

    def save(self, step: int) -> Path:
        """Write the checkpoint of a run that has taken `step` steps; return its folder."""
        final = self.folder / f"step_{step:06d}"
        # A run is at one place only after so many steps. One process decides: others may be late.
        if self._processes.broadcast(final.exists()):
            return final
        partial = self.folder / f".{final.name}"
        if self._processes.first:
            shutil.rmtree(partial, ignore_errors=True)
            (partial / "policy").mkdir(parents=True)
        self._processes.wait()
        self._backend.save(partial / "optimizer")
        with self._backend.reading():
            if self._processes.first:
                self._policy.save(partial / "policy")
        self._processes.wait()
        if self._processes.first:
            (partial / "state.json").write_text(json.dumps(self._state(step)), encoding="utf-8")
            publish(partial, final)
            for old in sorted(self.folder.glob("step_*"))[: -self._keep]:
                shutil.rmtree(old)
        self._processes.wait()
        return final

    def load(self, path: Path) -> int:
        """Put the policy and the optimizer back to where they were; return the steps taken.

        Raises:
            RunError: If the checkpoint is of another model or another run, or cannot be read.
        """
        try:
            state = json.loads((path / "state.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RunError(f"The checkpoint {path} cannot be read: {error}") from error
        self._check(path, state)
        self._backend.load(path / "optimizer", path / "policy")
        self._policy.version = state["policy_version"]
        self._guard.remember(state["norms"])
        if self._samples is not None:
            self._samples.restore(state["step"], state["samples"])
        return int(state["step"])

    def _state(self, step: int) -> dict[str, Any]:
        return {
            "step": step,
            "policy_version": self._policy.version,
            "norms": self._guard.norms,
            "samples": None if self._samples is None else self._samples.state(step),
            "identity": self._identity,
        }

    def _check(self, path: Path, state: Mapping[str, Any]) -> None:
        if changes := differences(with_new_names(state["identity"]), self._identity):
            raise RunError(
                f"{path} is of a run with other settings: {'; '.join(changes)}. "
                "Give the old ones to continue it, or another run name to start a new run."
            )


def publish(partial: Path, final: Path) -> None:
    """Give a finished folder its name, so that it is there whole or not at all, power cuts too."""
    for path in (*partial.rglob("*"), partial):
        _sync(path)
    partial.rename(final)
    _sync(final.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
