"""Sets the environment variables that vLLM needs for this policy, unless they are already set.

vLLM reads them when it is imported or an engine starts, so that `prepare` must run before both.
"""

from __future__ import annotations

import atexit
import os
import shutil

from visenv.socket_folder import socket_folder

QUEUES_VARIABLE = "VLLM_RPC_BASE_PATH"
"""Folder of the sockets at which vLLM's processes exchange pickles; vLLM's default is ``/tmp``."""

NAME_BYTES = 36
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
"""Always set."""

ON_CPU = {
    # Binding would pin the threads of the whole process; OMP_NUM_THREADS sets their number.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}
"""Set if there is no GPU."""

INSIDE = {
    # The engine runs in the trainer's process, so that every version of vLLM can load weights
    # without a copy between processes.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}
"""Set for an engine in this process that needs one device."""

FOR_SERVER = {
    # Enables the endpoints that pause, update weights and reset caches.
    "VLLM_SERVER_DEV_MODE": "1",
}
"""Set for a server that visenv starts."""

ON_ONE_MACHINE = {
    # Gloo would otherwise listen at the address of the machine's name.
    "GLOO_SOCKET_IFNAME": "lo",
}
"""Set for a server that visenv starts, unless its options spread it over machines."""

FOR_IPC = {
    # The workers unpickle handles of GPU memory.
    "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",
}
"""Set for an engine or a server that receives weights by CUDA IPC, and for no other."""


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
        folder = socket_folder("visenv-vllm-", NAME_BYTES)
        os.environ[QUEUES_VARIABLE] = str(folder)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
