"""One of the processes that a launcher has started: which it is, its GPU, and what engines inherit.

``accelerate launch`` and ``torchrun`` set each process's rank by environment variables. What a
process starts would read them too: vLLM in a child that believes to be a part of the training waits
for partners that never come. So engines and servers do not get to see them.
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
"""vLLM's CPU build sets it for its own children; ours should not get it."""


def rank() -> int:
    """Return the number of this process, from 0."""
    return int(os.environ.get("RANK", "0"))


def count() -> int:
    """Return the number of processes that were started together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def own_gpu() -> int | None:
    """Return the index of this process's GPU among those it sees; None without a GPU.

    A launched process has that of its local rank, or the only one it was left; another the one that
    PyTorch computes on.
    """
    if not torch.cuda.is_available():
        return None
    local = os.environ.get("LOCAL_RANK")
    if local is None:
        return torch.cuda.current_device()
    return int(local) % torch.cuda.device_count()


def narrowed(environment: Mapping[str, str], gpu: int | None) -> dict[str, str]:
    """Return the environment of a child process: nothing of the launcher, and one GPU.

    Args:
        environment: Of this process.
        gpu: Its index among those that this process sees; None leaves all to the child.
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
        gpu: What processes started meanwhile see of the GPUs; None is all of them. This process has
            chosen its own before.
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
