"""The environment variables vLLM needs for this policy; what is set already is left as it is.

They are read when vLLM is imported or an engine starts, so `prepare` runs before either.
"""

from __future__ import annotations

import os

ALWAYS = {
    # Below errors, vLLM's log says a screenful at every start.
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    # The second model runner takes another kind of logits processor than `processor.TurnProcessor`.
    "VLLM_USE_V2_MODEL_RUNNER": "0",
    # The trainer's process has threads, and a CUDA context: it must not be forked.
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
}
"""Set everywhere."""

ON_CPU = {
    # Binding would pin the whole process's threads; OMP_NUM_THREADS says how many there are.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}
"""Set where there is no GPU."""

INSIDE = {
    # The engine runs in the trainer's process: weights are then taken over without a copy between
    # processes, by every version of vLLM.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}
"""Set for an engine of this process that needs one device."""

FOR_SERVER = {
    # Offers the endpoints that pause, update weights and reset caches.
    "VLLM_SERVER_DEV_MODE": "1",
}
"""Set for a server of ours."""

FOR_IPC = {
    # Handles of GPU memory go between processes as pickles.
    "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",
}
"""Set where weights are handed over by CUDA IPC."""


def wanted(
    on_cpu: bool, inside: bool = False, server: bool = False, ipc: bool = False
) -> dict[str, str]:
    """Return the environment variables to set, without those that are set already."""
    variables = ALWAYS | (ON_CPU if on_cpu else {}) | (INSIDE if inside else {})
    variables |= (FOR_SERVER if server else {}) | (FOR_IPC if ipc else {})
    return {name: value for name, value in variables.items() if name not in os.environ}


def prepare(on_cpu: bool, inside: bool = False, ipc: bool = False) -> None:
    """Set in this process what is not set yet."""
    os.environ.update(wanted(on_cpu, inside=inside, ipc=ipc))
