"""Saves the state of the optimizer in shards that any number of processes can read.

::

    optimizer/shard_00000_of_00002.pt    the elements of process 0 of 2

A shard contains, for each parameter, the indices of its elements, their float32 weights, and the
optimizer state of each weight (AdamW: two moments). A process of a resumed run copies the elements
that it holds from all shards. The number of processes and the ZeRO stage may therefore differ from
those that wrote the checkpoint, and all values are copied exactly.

`save_tensors` writes a shard or any other file of tensors, and keeps the error of a full disk.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from sys import intern
from typing import IO, Any, NamedTuple, cast

import torch

from visenv.disk import disk_errors
from visenv.errors import ConfigurationError, RunError
from visenv.files import output_folder


def save_tensors(value: Any, path: Path) -> None:
    """Write a value with `torch.save`, and sync the file to the disk.

    Raises:
        DiskError: If the disk is full or fails. `torch.save` alone would raise a `RuntimeError`
            about the position in the file.
    """
    with disk_errors(path), path.open("wb") as file:
        output = _Output(file)
        try:
            torch.save(value, cast("IO[bytes]", output))
        except Exception as error:
            if output.error is not None:
                raise output.error from error
            raise
        file.flush()
        os.fsync(file.fileno())


class _Output:
    """Passes bytes on to a file, and keeps the first error of the file."""

    def __init__(self, file: IO[bytes]) -> None:
        self.error: OSError | None = None
        self._file = file

    def write(self, content: bytes) -> int:
        try:
            return self._file.write(content)
        except OSError as error:
            self.error = self.error or error
            raise

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError as error:
            self.error = self.error or error
            raise


_WEIGHTS = "weights"
"""The key of the float32 weights among the values of a parameter."""


class Slot(NamedTuple):
    """Describes the elements of one parameter that this process holds.

    Attributes:
        name: The name of the parameter in its module.
        start: The index of the first element in the flattened parameter.
        length: The number of elements, at least 1.
        master: The float32 tensor that contains the elements. It is a key of the optimizer state.
        offset: The index of the first element in the flattened `master`.
    """

    name: str
    start: int
    length: int
    master: torch.Tensor
    offset: int

    def values_in(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the elements in a tensor of the shape of `master`, as a view ``[length]``."""
        flat = tensor.detach().view(-1)  # [elements]
        return flat[self.offset : self.offset + self.length]


def save_shard(
    folder: Path, slots: Sequence[Slot], optimizer: torch.optim.Optimizer, rank: int, count: int
) -> None:
    """Write the shard of this process.

    Args:
        folder: The folder of all shards, which is created if necessary.
        slots: The elements that this process holds.
        optimizer: The optimizer, whose state has the `Slot.master` as keys.
        rank: The number of this shard, from 0.
        count: The number of shards.

    Raises:
        ConfigurationError: If the optimizer state contains a tensor that is neither a number nor
            has one value for each weight.
        DiskError: If the disk is full or fails.
    """
    output_folder(folder)
    parameters = {slot.name: _entry(slot, optimizer.state.get(slot.master, {})) for slot in slots}
    shard = {"step": optimizer.param_groups[0].get("step"), "parameters": parameters}
    save_tensors(shard, folder / f"shard_{rank:05d}_of_{count:05d}.pt")


def load_shards(
    folder: Path,
    slots: Sequence[Slot],
    optimizer: torch.optim.Optimizer,
    sizes: Mapping[str, int],
) -> None:
    """Read the elements of this process from all shards of a checkpoint.

    Args:
        folder: The folder of the shards.
        slots: The elements that this process holds, which are overwritten.
        optimizer: The optimizer, which has not taken a step yet.
        sizes: The number of elements of every trained parameter, by name.

    Raises:
        RunError: If a shard is missing or cannot be read, or the shards contain other parameters.
    """
    shards = _read(folder)
    own = {slot.name: slot for slot in slots}
    found: Counter[str] = Counter()
    for shard in shards:
        for name, entry in shard["parameters"].items():
            found[name] += entry["length"]
            if name in own:
                _copy(entry, own[name], optimizer.state)
    different = [name for name in {*found, *sizes} if found[name] != sizes.get(name, 0)]
    if different:
        name = min(different)
        raise RunError(
            f"{folder} does not fit the trained model: {len(different)} of {len(sizes)} "
            f"parameters differ; {name} has {sizes.get(name, 0)} weights in the model and "
            f"{found[name]} in the checkpoint. Use the model, LoRA and freeze_vision of that run."
        )
    for group in optimizer.param_groups:
        if shards[0]["step"] is not None:  # some optimizers store the step in their groups
            group["step"] = shards[0]["step"]


def _entry(slot: Slot, state: Mapping[str, Any]) -> dict[str, Any]:
    values = {_WEIGHTS: slot.master} | {
        key: value for key, value in state.items() if _is_by_weight(value, slot.master)
    }
    numbers = {key: value for key, value in state.items() if key not in values}
    for key, value in numbers.items():
        if isinstance(value, torch.Tensor) and value.numel() != 1:
            raise ConfigurationError(
                f"The optimizer state {key!r} has the shape {list(value.shape)} for weights of the "
                f"shape {list(slot.master.shape)}. Checkpoints support numbers, and tensors with "
                "one value for each weight: use AdamW."
            )
    return {
        "start": slot.start,
        "length": slot.length,
        # The values are cloned because torch.save writes the whole storage of a view. Keys are
        # interned, so that a resumed run writes the same bytes: pickle refers to an object that
        # occurs again by a number.
        "values": {
            intern(key): slot.values_in(value).to("cpu", copy=True) for key, value in values.items()
        },
        "numbers": {intern(key): value for key, value in numbers.items()},
    }


def _is_by_weight(value: Any, master: torch.Tensor) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() > 0 and value.shape == master.shape


def _copy(entry: Mapping[str, Any], slot: Slot, states: Any) -> None:
    """Copy the elements that a shard and a slot have in common."""
    begin = max(slot.start, entry["start"])
    end = min(slot.start + slot.length, entry["start"] + entry["length"])
    if begin >= end:
        return
    for key, value in entry["values"].items():
        state = states[slot.master]
        if key != _WEIGHTS and key not in state:
            state[key] = torch.zeros_like(slot.master, dtype=value.dtype, requires_grad=False)
        whole = slot.master if key == _WEIGHTS else state[key]
        part = value[begin - entry["start"] : end - entry["start"]]
        slot.values_in(whole)[begin - slot.start : end - slot.start].copy_(part)
    for key, value in entry["numbers"].items():
        own = value.clone() if isinstance(value, torch.Tensor) else value
        states[slot.master].setdefault(key, own)


def _read(folder: Path) -> list[Any]:
    paths = sorted(folder.glob("shard_*_of_*.pt"))
    counts = {int(path.stem.rpartition("_")[2]) for path in paths}
    if counts != {len(paths)}:
        raise RunError(
            f"{folder} must hold every shard of one checkpoint, but holds "
            f"{', '.join(path.name for path in paths) or 'none'}."
        )
    try:
        return [
            torch.load(path, map_location="cpu", weights_only=True, mmap=True) for path in paths
        ]
    except Exception as error:  # damaged files can raise any exception in torch.load
        raise RunError(f"The checkpoint {folder.parent} cannot be read: {error}") from error
