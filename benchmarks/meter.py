"""Measures time and memory of one process on a shared machine."""

from __future__ import annotations

import ctypes
import gc
import time
from pathlib import Path

import torch

from benchmarks.memory import memory_mib


def now(device: str) -> float:
    """Return seconds: the processor time of this process for a CPU, the clock for a GPU."""
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def rest(device: str) -> float:
    """Return the current memory in MiB, and reset the high-water mark."""
    gc.collect()
    if device == "cpu":
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # otherwise later allocations use freed memory
        Path("/proc/self/clear_refs").write_text("5", "ascii")
        return memory_mib("VmRSS")
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated() / 2**20


def most(device: str) -> float:
    """Return the memory at the high-water mark in MiB."""
    if device == "cpu":
        return memory_mib("VmHWM")
    return torch.cuda.max_memory_allocated() / 2**20
