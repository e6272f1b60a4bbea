"""The reference of a KL term: the policy as it was, kept on disk so that a resumed run has it too.

::

    reference/step_000000/     the weights after so many steps, as `TrainablePolicy.save` writes
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from visenv.policy import TrainablePolicy

from .backend import Backend
from .checkpoint import publish
from .processes import Processes


class Reference:
    """A frozen copy of a policy; every process makes the same calls.

    Make it before the backend of the policy, whose weights may be in parts afterwards.

    Args:
        folder: Of the references of a run.
        policy: What is copied.
        processes: Who takes part.

    Attributes:
        policy: The frozen copy.
    """

    def __init__(self, folder: Path, policy: TrainablePolicy[Any], processes: Processes) -> None:
        self.policy = policy.copy_frozen()
        self._folder = folder
        self._source = policy
        self._processes = processes

    def restore(self, step: int) -> bool:
        """Be what it was in a run that goes on after `step` steps; whether there is such a one.

        What a run that was stopped made later is dropped: it will be made again.
        """
        kept = [path for path in sorted(self._folder.glob("step_*")) if _step(path) <= step]
        if not kept:
            return False
        self._keep_only(kept[-1])
        self.policy.load_weights(kept[-1])
        return True

    def renew(self, step: int, backend: Backend) -> None:
        """Become the present policy, after `step` steps."""
        final = self._folder / f"step_{step:06d}"
        with backend.reading():
            if self._processes.first:
                partial = self._folder / f".{final.name}"
                for old in (partial, final):
                    shutil.rmtree(old, ignore_errors=True)
                partial.mkdir(parents=True)
                self._source.save(partial)
                publish(partial, final)
        self._processes.wait()
        self.policy.load_weights(final)

    def saved(self, step: int) -> None:
        """A checkpoint was written after `step` steps: forget what no run can go back to."""
        kept = [path for path in sorted(self._folder.glob("step_*")) if _step(path) <= step]
        self._keep_only(kept[-1])

    def _keep_only(self, keep: Path) -> None:
        self._processes.wait()
        if self._processes.first:
            for path in self._folder.glob("step_*"):
                if path != keep:
                    shutil.rmtree(path)
        self._processes.wait()


def _step(path: Path) -> int:
    return int(path.name.removeprefix("step_"))
