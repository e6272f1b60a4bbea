"""Runs the only worker of an engine in this process, on this process's GPU.

vLLM's own executor uses the first GPU, and in 0.26 connects to a TCP store, which under a launcher
of torch it confuses with the launcher's store.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from uuid import uuid4

import torch
from typing_extensions import override
from vllm.v1.executor.uniproc_executor import UniProcExecutor


class InProcessExecutor(UniProcExecutor):
    """Extends vLLM's in-process executor such that the device can be chosen."""

    @override
    def _distributed_args(self) -> tuple[str, int, int]:
        gpu = torch.cuda.current_device() if torch.cuda.is_available() else 0
        place = Path(tempfile.gettempdir()) / f"visenv-vllm-{uuid4().hex}"
        return f"file://{place}", 0, gpu
