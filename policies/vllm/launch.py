"""Prepares the environment variables and the GPU of engines, also in a process of a launcher.

``accelerate launch`` and ``torchrun`` set each process's rank by environment variables. Child
processes would inherit them: vLLM in such a child would take itself for a part of the training, and
wait for partners forever. The variables are therefore hidden from engines and servers.

vLLM reads its own variables when it is imported or an engine starts, so that `prepare` must run
before both.
"""

from __future__ import annotations

import atexit
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch

from visenv.launcher import local_rank
from visenv.socket_folder import socket_folder

_OF_LAUNCHERS = (
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
    *("GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_NAME", "ROLE_WORLD_SIZE"),
    *("CROSS_RANK", "CROSS_SIZE"),
)
_PREFIXES = ("TORCHELASTIC_", "ACCELERATE_")
_PRELOADED = "LD_PRELOAD"
"""vLLM's CPU build sets it for its own children; other children must not inherit it."""

QUEUES_VARIABLE = "VLLM_RPC_BASE_PATH"
"""Folder of the sockets at which vLLM's processes exchange pickles; vLLM's default is ``/tmp``."""

SOCKET_NAME_BYTES = 36
"""Bytes in the name of a socket in that folder, a UUID."""

ALWAYS = {
    # With a lower level, vLLM prints a screen of log lines at every start.
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    # The second model runner needs another kind of logits processor than `processor.TurnProcessor`.
    "VLLM_USE_V2_MODEL_RUNNER": "0",
    # The trainer's process has threads, and a CUDA context, so that it must not be forked.
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
}
"""Environment variables that are always set."""

ON_CPU = {
    # Binding would pin the threads of the whole process; OMP_NUM_THREADS sets their number.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}
"""Environment variables that are set if there is no GPU."""

INSIDE = {
    # The engine runs in the trainer's process, so that every version of vLLM can load weights
    # without a copy between processes.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}
"""Environment variables that are set for an engine in this process that needs one device."""

FOR_SERVER = {
    # Enables the endpoints that pause, update weights and reset caches.
    "VLLM_SERVER_DEV_MODE": "1",
}
"""Environment variables that are set for a server that visenv starts."""

ON_ONE_MACHINE = {
    # Gloo would otherwise listen at the address of the machine's name.
    "GLOO_SOCKET_IFNAME": "lo",
}
"""Environment variables that are set for a server that visenv starts, unless its options spread it
over machines."""

FOR_IPC = {
    # The workers unpickle handles of GPU memory.
    "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",
}
"""Environment variables that are set for an engine or a server that receives weights by CUDA IPC,
and for no other."""


def own_gpu() -> int | None:
    """Return the index of this process's GPU among those it sees; None without a GPU.

    A launched process uses the GPU of its local rank, or its only visible one. Another process uses
    the GPU on which PyTorch computes.
    """
    if not torch.cuda.is_available():
        return None
    local = local_rank()
    if local is None:
        return torch.cuda.current_device()
    return local % torch.cuda.device_count()


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


def wanted(
    on_cpu: bool, inside: bool = False, server: bool = False, ipc: bool = False
) -> dict[str, str]:
    """Return the environment variables to set, without those that are already set."""
    variables = ALWAYS | (ON_CPU if on_cpu else {}) | (INSIDE if inside else {})
    variables |= (FOR_SERVER if server else {}) | (FOR_IPC if ipc else {})
    return {name: value for name, value in variables.items() if name not in os.environ}


def prepare(on_cpu: bool, inside: bool = False, ipc: bool = False) -> None:
    """Set the variables in this process that are not yet set."""
    os.environ.update(wanted(on_cpu, inside=inside, ipc=ipc))


def prepare_queues() -> None:
    """Set a private folder for the sockets of engines outside this process, if none is set yet."""
    if QUEUES_VARIABLE not in os.environ:
        folder = socket_folder("visenv-vllm-", SOCKET_NAME_BYTES)
        os.environ[QUEUES_VARIABLE] = str(folder)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
