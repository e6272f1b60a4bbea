"""Holds the reference of a KL term: a frozen policy that is saved for resumed runs.

::

    reference/step_000000/     the weights after this step, as written by `TrainablePolicy.save`
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from visenv.checksums import check_checksums
from visenv.files import empty_folder, output_folder
from visenv.policy import TrainablePolicy

from .backend import TrainingBackend
from .checkpoint import publish, save_weights, step_of
from .distributed import DistributedContext


class ReferencePolicy:
    """Holds the frozen reference policy. Every process makes the same calls.

    Create it before the backend of the trained policy, which may shard the weights.

    Args:
        folder: The folder of the references of a run.
        policy: The policy that is trained.
        start: The reference at the start of a run, whose weights `renew` changes. By default it is
            a frozen copy of `policy`.
        processes: The processes of the run.

    Attributes:
        policy: The frozen policy.
    """

    def __init__(
        self,
        folder: Path,
        policy: TrainablePolicy[Any],
        start: TrainablePolicy[Any] | None,
        processes: DistributedContext,
    ) -> None:
        self.policy = policy.copy_frozen() if start is None else start
        self._given = start is not None
        self._folder = folder
        self._trained = policy
        self._processes = processes

    def begin(self, backend: TrainingBackend) -> None:
        """Write the reference at the start of a run."""
        if self._given:
            with backend.reading(self.policy):
                self._write(0, self.policy)
        else:
            self.renew(0, backend)

    def restore(self, step: int) -> bool:
        """Load the reference of a run that is resumed after `step` steps.

        References that the stopped run wrote later are deleted, because the run will write them
        again.

        Returns:
            Whether the folder contains such a reference.

        Raises:
            RunError: If a file of the reference is damaged.
        """
        kept = [path for path in sorted(self._folder.glob("step_*")) if step_of(path) <= step]
        if not kept:
            return False
        self._processes.in_first(lambda: check_checksums(kept[-1], required=True))
        self._keep_only(kept[-1])
        self.policy.load_weights(kept[-1])
        return True

    def renew(self, step: int, backend: TrainingBackend) -> None:
        """Copy the weights of the trained policy after `step` steps to the reference."""
        with backend.reading():
            written = self._write(step, self._trained)
        self.policy.load_weights(written)

    def _write(self, step: int, policy: TrainablePolicy[Any]) -> Path:
        final = self._folder / f"step_{step:06d}"
        if self._processes.first:
            partial = self._folder / f".{final.name}"
            output_folder(self._folder)
            shutil.rmtree(final, ignore_errors=True)
            save_weights(policy, empty_folder(partial))
            publish(partial, final)
        self._processes.wait()
        return final

    def saved(self, step: int) -> None:
        """Delete the references that are not needed after the checkpoint of step `step`."""
        kept = [path for path in sorted(self._folder.glob("step_*")) if step_of(path) <= step]
        self._keep_only(kept[-1])

    def _keep_only(self, keep: Path) -> None:
        self._processes.wait()
        if self._processes.first:
            for path in self._folder.glob("step_*"):
                if path != keep:
                    shutil.rmtree(path)
        self._processes.wait()
