"""Checkpoints: written whole or not at all, and refused where they do not fit.

::

    checkpoints/step_000123/
        policy/          what `TrainablePolicy.save` writes
        optimizer.pt     AdamW's moments
        state.json       steps taken, the policy's version, and what the run was told

No random state is kept: every step draws from streams made of the run's seed and its own number.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from visenv.errors import RunError
from visenv.policy import TrainablePolicy

Identity = Mapping[str, Any]
"""What a run was told, JSON-like; a checkpoint continues only a run that was told the same."""


class Checkpoints:
    """The checkpoints of a run.

    Args:
        folder: Where they lie.
        keep: How many of the newest stay.
        identity: What the run was told.
    """

    def __init__(self, folder: Path, keep: int, identity: Identity) -> None:
        self.folder = folder
        self._keep = keep
        self._identity = json.loads(json.dumps(identity))

    @property
    def latest(self) -> Path | None:
        """The newest, or None."""
        return max(self.folder.glob("step_*"), default=None)

    def save(
        self, step: int, policy: TrainablePolicy[Any], optimizer: torch.optim.Optimizer
    ) -> Path:
        """Write the checkpoint of a run that has taken `step` steps; return its folder."""
        final = self.folder / f"step_{step:06d}"
        if final.exists():  # a run is at one place only after so many steps
            return final
        partial = self.folder / f".{final.name}"
        shutil.rmtree(partial, ignore_errors=True)
        (partial / "policy").mkdir(parents=True)
        policy.save(partial / "policy")
        torch.save(optimizer.state_dict(), partial / "optimizer.pt")
        state = {"step": step, "policy_version": policy.version, "identity": self._identity}
        (partial / "state.json").write_text(json.dumps(state, indent=2), encoding="utf-8")
        publish(partial, final)
        for old in sorted(self.folder.glob("step_*"))[: -self._keep]:
            shutil.rmtree(old)
        return final

    def load(
        self, path: Path, policy: TrainablePolicy[Any], optimizer: torch.optim.Optimizer
    ) -> int:
        """Put the policy and the optimiser back to where they were; return the steps taken.

        Raises:
            RunError: If the checkpoint is of another model or another run, or cannot be read.
        """
        try:
            state = json.loads((path / "state.json").read_text(encoding="utf-8"))
            moments = torch.load(path / "optimizer.pt", weights_only=True)
        except Exception as error:  # broken bytes lead torch.load anywhere
            raise RunError(f"The checkpoint {path} cannot be read: {error}") from error
        if changes := differences(state["identity"], self._identity):
            raise RunError(
                f"{path} is of a run with other settings: {'; '.join(changes)}. "
                "Give the old ones to continue it, or another run name to begin anew."
            )
        policy.load_weights(path / "policy")
        policy.version = state["policy_version"]
        optimizer.load_state_dict(moments)
        return int(state["step"])


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


def differences(old: Identity, new: Identity, prefix: str = "") -> list[str]:
    """What differs between two nested mappings, in words."""
    found: list[str] = []
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found += differences(before, after, f"{prefix}{key}.")
        elif before != after:
            found.append(f"{prefix}{key} was {before!r} and is {after!r}")
    return found
