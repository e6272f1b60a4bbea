"""Writes checkpoints atomically, and refuses to load those of another run.

::

    checkpoints/step_000123/
        policy/          the output of `TrainablePolicy.save`, itself a complete checkpoint
        optimizer/       the state of the optimizer, in shards (`optimizer_shards`)
        state.json       the number of steps, the version of the policy, the settings of the run

No random state is saved, because every step draws from random streams that depend only on the seed
of the run and the number of the step. Nothing depends on the number of processes, so a run can be
resumed with another number of processes.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from visenv.decoding.json_text import WRONG_VALUES, read_json_at
from visenv.errors import RunError
from visenv.files import empty_folder, output_folder, write_text
from visenv.old_names import with_new_names
from visenv.policy import TrainablePolicy

from .backend import TrainingBackend
from .distributed import DistributedContext
from .divergence import DivergenceCheck
from .episode_sources.samples import SampleOrder
from .identity import Identity, differences


class Checkpoints:
    """Saves and loads the checkpoints of a run. Every process makes the same calls.

    Args:
        folder: The folder of the checkpoints, which all processes can read.
        keep: The number of checkpoints to keep; older ones are deleted.
        identity: The settings of the run.
        policy: The policy whose weights are saved.
        backend: The backend of this policy.
        guard: The divergence check, whose gradient norms are saved too.
        samples: The order of the samples, whose pass rates are saved too; None if the run plays no
            episodes.
        processes: The processes of the run.
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
        # A run has one state after this number of steps. The first process decides whether the
        # checkpoint exists, because others may be late.
        if self._processes.broadcast(final.exists()):
            return final
        partial = self.folder / f".{final.name}"
        if self._processes.first:
            output_folder(self.folder)
            (empty_folder(partial) / "policy").mkdir()
        self._processes.wait()
        self._backend.save(partial / "optimizer")
        with self._backend.reading():
            if self._processes.first:
                self._policy.save(partial / "policy")
        self._processes.wait()
        if self._processes.first:
            write_text(partial / "state.json", json.dumps(self._state(step)))
            publish(partial, final)
            for old in sorted(self.folder.glob("step_*"))[: -self._keep]:
                shutil.rmtree(old)
        self._processes.wait()
        return final

    def load(self, path: Path) -> int:
        """Restore the policy and the optimizer, and return the number of steps that were taken.

        Raises:
            RunError: If the checkpoint belongs to another model or run, or cannot be read.
        """
        try:
            state = read_json_at(path / "state.json")
            step, version = int(state["step"]), int(state["policy_version"])
            norms = [float(norm) for norm in state["norms"]]
            self._check(path, state)
            if self._samples is not None:
                self._samples.restore(step, state["samples"])
        except WRONG_VALUES as error:
            raise RunError(f"The checkpoint {path} cannot be read: {error}") from error
        self._backend.load(path / "optimizer", path / "policy")
        self._policy.version = version
        self._guard.remember(norms)
        return step

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
                "Use the old settings to continue it, or another name to start a new run."
            )


def publish(partial: Path, final: Path) -> None:
    """Rename a finished folder, so that it is complete or missing, also after a power cut."""
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
