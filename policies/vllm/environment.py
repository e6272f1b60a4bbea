"""Sets the environment variables that vLLM needs for this policy, unless they are already set.

vLLM reads them when it is imported or an engine starts, so that `prepare` must run before both.
"""

from __future__ import annotations

import os

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

FOR_IPC = {
    # Processes exchange handles of GPU memory as pickles.
    "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",
}
"""Set if weights are sent by CUDA IPC."""


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
