"""Describes this process of a launcher: its rank, its GPU, and the environment of its engines.

``accelerate launch`` and ``torchrun`` set each process's rank by environment variables. Child
processes would inherit them: vLLM in such a child would take itself for a part of the training, and
wait for partners forever. The variables are therefore hidden from engines and servers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch

_OF_LAUNCHERS = (
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
    *("GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_NAME", "ROLE_WORLD_SIZE"),
    *("CROSS_RANK", "CROSS_SIZE"),
)
_PREFIXES = ("TORCHELASTIC_", "ACCELERATE_")
_PRELOADED = "LD_PRELOAD"
"""vLLM's CPU build sets it for its own children; other children must not inherit it."""


def rank() -> int:
    """Return the rank of this process, from 0."""
    return int(os.environ.get("RANK", "0"))


def count() -> int:
    """Return the number of processes that were launched together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def own_gpu() -> int | None:
    """Return the index of this process's GPU among those it sees; None without a GPU.

    A launched process uses the GPU of its local rank, or its only visible one. Another process uses
    the GPU on which PyTorch computes.
    """
    if not torch.cuda.is_available():
        return None
    local = os.environ.get("LOCAL_RANK")
    if local is None:
        return torch.cuda.current_device()
    return int(local) % torch.cuda.device_count()


def narrowed(environment: Mapping[str, str], gpu: int | None) -> dict[str, str]:
    """Return the environment of a child process: without the launcher's variables, with one GPU.

    Args:
        environment: The environment of this process.
        gpu: Index of the GPU among those that this process sees; None makes all visible.
    """
    kept = {name: value for name, value in environment.items() if not _is_launchers(name)}
    if gpu is not None:
        visible = [each for each in kept.get("CUDA_VISIBLE_DEVICES", "").split(",") if each]
        kept["CUDA_VISIBLE_DEVICES"] = visible[gpu] if visible else str(gpu)
    return kept


@contextmanager
def alone(gpu: int | None = None) -> Iterator[None]:
    """Hide the launcher from this process and its children inside the block.

    Args:
        gpu: The GPU that child processes of the block see; None is all of them. This process must
            already have chosen its own.
    """
    before = dict(os.environ)
    for name in [each for each in before if _is_launchers(each)]:
        del os.environ[name]
    os.environ.update(narrowed(before, gpu))
    try:
        yield
    finally:
        touched = {*before, *os.environ}
        for name in touched:
            if not (_is_launchers(name) or name in (_PRELOADED, "CUDA_VISIBLE_DEVICES")):
                continue
            if name in before:
                os.environ[name] = before[name]
            else:
                os.environ.pop(name, None)


def _is_launchers(name: str) -> bool:
    return name in _OF_LAUNCHERS or name.startswith(_PREFIXES)
