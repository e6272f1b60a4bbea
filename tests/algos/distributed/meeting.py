"""Joins a group of gloo on every process of a launched test, and waits until a file exists.

Arguments: the file. Each process prints a line when it has joined.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
# One write: without a buffer (PYTHONUNBUFFERED), `print` writes text and line end separately, and
# the other process may write between them.
sys.stdout.write("joined\n")
sys.stdout.flush()
end = time.monotonic() + 600
while not Path(sys.argv[1]).exists() and time.monotonic() < end:
    time.sleep(0.05)
dist.destroy_process_group()
