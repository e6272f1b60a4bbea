"""Writes checkpoints atomically, and refuses to load damaged ones and those of another run.

::

    checkpoints/step_000123/
        policy/            the output of `TrainablePolicy.save`, with its checksums
        optimizer/         the state of the optimizer, in shards (`optimizer_shards`)
        logs/              copies of metrics.jsonl and evaluations.jsonl, the sizes of the saved
                           episodes (episodes.json), and the checksums of these files
        state.json         the number of steps, the version of the policy, the settings of the run,
                           and the checksums of all files except logs

No random state is saved, because every step draws from random streams that depend only on the seed
of the run and the number of the step. Nothing depends on the number of processes, so a run can be
resumed with another number of processes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

from visenv.algorithm import Algorithm
from visenv.checksums import (
    SEAL,
    checksums_of,
    files_below,
    first_problem,
    is_damaged,
    sealed,
    write_checksums,
)
from visenv.decoding.json_text import WRONG_VALUES, read_json_at
from visenv.disk import disk_errors, sync, sync_tree
from visenv.errors import DataError, RunError
from visenv.files import empty_folder, output_folder, write_text
from visenv.old_names import with_new_names
from visenv.policy import TrainablePolicy
from visenv.provenance import versions

from .backend import TrainingBackend
from .changes import CHECKPOINT_SETTINGS, MAY_DIFFER, compare
from .config import TrainerConfig
from .diagnostics import DivergenceCheck
from .distributed import DistributedContext
from .episode_sources import EpisodeSource
from .episode_sources.samples import SampleOrder

Identity = Mapping[str, Any]
"""JSON-like settings. A run can be resumed with other settings only as far as `changes` allows."""


def identify(
    config: TrainerConfig, algorithm: Algorithm, episode_source: EpisodeSource
) -> Identity:
    """Return all settings of a run except those of saving and the timeout."""
    told = asdict(config)
    for name in ("saving", "timeout"):
        del told[name]
    for name in ("sleep", "engine_restarts", "episode_retries"):
        del told["rollouts"][name]
    given: Any = algorithm
    options = (
        {each.name: getattr(given, each.name) for each in fields(given)}
        if is_dataclass(given)
        else {}
    )
    return {
        "algorithm": {"name": type(algorithm).__qualname__, **options},
        "config": told,
        "episodes": {"from": type(episode_source).__name__, "in_step": episode_source.size},
        "mixture": None if episode_source.samples is None else episode_source.samples.identity,
    }


STATE = "state.json"
"""The file of a checkpoint that is written last."""

LOGS = "logs"
"""The folder of a checkpoint with the copies of the metrics."""


class LoadedCheckpoint(NamedTuple):
    """Describes a checkpoint from which a run continues.

    Attributes:
        step: The number of steps that were taken.
        notices: A sentence about each setting that has changed and may change.
    """

    step: int
    notices: list[str]


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

    def save(self, step: int, logs: Sequence[Path] = (), episodes: Sequence[Path] = ()) -> Path:
        """Write the checkpoint of a run that has taken `step` steps; return its folder.

        Args:
            step: The number of steps.
            logs: The files of metrics to copy; those that do not exist are left out.
            episodes: The files of episodes whose sizes are saved, so that a report of the run can
                name a missing one.

        Raises:
            DiskError: If the disk is full or fails. The incomplete checkpoint is deleted.
        """
        final = checkpoint_at(self.folder, step)
        # A run has one state after this number of steps. The first process decides whether the
        # checkpoint exists, because others may be late.
        if self._processes.broadcast(final.exists()):
            return final
        partial = self.folder / f".{final.name}"
        try:
            self._write(partial, step, logs, episodes)
            if self._processes.first:
                publish(partial, final)
                for old in sorted(self.folder.glob("step_*"))[: -self._keep]:
                    shutil.rmtree(old)
        except OSError:
            if self._processes.first:
                shutil.rmtree(partial, ignore_errors=True)  # it fills the disk
            raise
        self._processes.wait()
        return final

    def _write(
        self, partial: Path, step: int, logs: Sequence[Path], episodes: Sequence[Path]
    ) -> None:
        if self._processes.first:
            output_folder(self.folder)
            (empty_folder(partial) / "policy").mkdir()
        self._processes.wait()
        self._backend.save(partial / "optimizer")
        with self._backend.reading():
            if self._processes.first:
                save_weights(self._policy, partial / "policy")
        self._processes.wait()
        files = self._in_shares(partial, files_below(partial))
        if self._processes.first:
            copy_logs(logs, episodes, partial / LOGS)  # after the others: they contain times
            write_text(partial / STATE, json.dumps(sealed(self._state(step) | {"files": files})))

    def _in_shares(self, folder: Path, names: Sequence[str]) -> dict[str, str]:
        """Return the checksums of files, of which each process reads a share."""
        own = checksums_of(folder, names[self._processes.rank :: self._processes.count])
        shares = self._processes.gather(own)
        return {name: value for share in shares for name, value in share.items()}

    def load(self, path: Path) -> LoadedCheckpoint:
        """Restore the policy and the optimizer.

        Raises:
            RunError: If the checkpoint belongs to another model or run, cannot be read, or one of
                its files is damaged.
        """
        try:
            state = read_state(path)
            step, version = int(state["step"]), int(state["policy_version"])
            norms = [float(norm) for norm in state["norms"]]
            notices = self._check(path, state)
            if self._samples is not None:
                self._samples.restore(step, state["samples"])
        except WRONG_VALUES as error:
            said = str(error).removesuffix(".")
            raise RunError(
                f"The checkpoint {path} cannot be read: {said}.{self._remedy(path)}"
            ) from error
        self._check_files(path, state["files"])
        self._backend.load(path / "optimizer", path / "policy")
        self._policy.version = version
        self._guard.remember(norms)
        return LoadedCheckpoint(step, notices)

    def _state(self, step: int) -> dict[str, Any]:
        return {
            "step": step,
            "policy_version": self._policy.version,
            "norms": self._guard.norms,
            "samples": None if self._samples is None else self._samples.state(step),
            "identity": self._identity,
            "versions": versions(),
        }

    def _check(self, path: Path, state: Mapping[str, Any]) -> list[str]:
        changes = compare(with_new_names(state["identity"]), self._identity, CHECKPOINT_SETTINGS)
        if changes.refused:
            raise RunError(
                f"{path} is of a run with other settings: {'; '.join(changes.refused)}. "
                "Use the old settings to continue it, or another name to start a new run."
            )
        old, new = dict(state["versions"]), versions()
        others = [
            f"{name} was {old[name]} and is {new[name]}. {MAY_DIFFER}: another version can compute "
            "or round differently."
            for name in old
            if name in new and old[name] != new[name]
        ]
        return [*changes.allowed, *others]

    def _check_files(self, path: Path, files: Mapping[str, str]) -> None:
        """Compare the files of a checkpoint with their checksums; each process reads a share."""
        rank, count = self._processes.rank, self._processes.count
        own = dict(list(files.items())[rank::count])
        problems = [each for each in self._processes.gather(first_problem(path, own)) if each]
        if problems:
            raise RunError(
                f"The checkpoint {path} cannot be read: {problems[0]}{self._remedy(path)}"
            )

    def _remedy(self, path: Path) -> str:
        earlier = max((each for each in self.folder.glob("step_*") if each < path), default=None)
        start = f"step {step_of(earlier)}" if earlier is not None else "the beginning"
        return f" Restore it, or delete the folder {path} to continue from {start}."


def checkpoint_at(folder: Path, step: int) -> Path:
    """Return the path of the checkpoint after `step` steps in a folder of checkpoints."""
    return folder / f"step_{step:06d}"


def step_of(checkpoint: Path) -> int:
    """Return the number of steps after which a checkpoint was written, from its name."""
    return int(checkpoint.name.removeprefix("step_"))


def save_weights(policy: TrainablePolicy[Any], folder: Path) -> None:
    """Save a policy to an empty folder, with checksums of its files."""
    with disk_errors(folder):
        policy.save(folder)
    write_checksums(folder)


def copy_logs(logs: Sequence[Path], episodes: Sequence[Path], folder: Path) -> None:
    """Sync files of metrics, and copy them to a new folder, with their checksums.

    The file ``episodes.json`` contains the size in bytes of each file of episodes.
    """
    folder.mkdir()
    for log in logs:
        if log.exists():
            with disk_errors(log):
                sync(log)
            with disk_errors(folder / log.name):
                (folder / log.name).write_bytes(log.read_bytes())
    sizes = {path.name: path.stat().st_size for path in episodes}
    write_text(folder / "episodes.json", json.dumps(sizes))
    write_checksums(folder)


def read_state(checkpoint: Path) -> dict[str, Any]:
    """Return the content of the file `STATE` of a checkpoint.

    Raises:
        DataError: If it cannot be read, or its fields differ from its checksum. A file with another
            content raises one of `WRONG_VALUES`.
    """
    path = checkpoint / STATE
    state = dict(read_json_at(path))
    if SEAL not in state or "files" not in state:
        raise DataError(f"{path} has no checksums: it is damaged, or an earlier version wrote it")
    if is_damaged(state):
        raise DataError(f"{path} is damaged: its fields differ from its checksum")
    return state


def publish(partial: Path, final: Path) -> None:
    """Rename a finished folder, so that it is complete or missing, also after a power cut."""
    with disk_errors(final):
        sync_tree(partial)
        partial.rename(final)
        for parent in list(final.parents)[:3]:  # the folders of the checkpoints, phase and run
            sync(parent)
