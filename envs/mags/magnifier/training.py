"""Trains the super-resolution networks that are part of visenv."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from rich.console import Console
from torch.nn.functional import l1_loss

from .small import SmallNet, save_small

Batch: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""Low- and high-resolution patches, float32 ``[batch, 3, side, side]`` from 0 to 1; the side of the
high-resolution patches is four times as large."""


@dataclass(frozen=True)
class Training(ABC):
    """Train a super-resolution network of the architecture `SmallNet`.

    Attributes:
        out: The file of weights to write.
        steps: Number of updates.
        batch: Number of patches in an update.
        learning_rate: The highest learning rate; the rate decays to 0 along a cosine.
        threads: Number of threads that PyTorch uses.
        seed: The seed of the data and of the initial weights.
    """

    out: Path
    steps: int
    batch: int = 16
    learning_rate: float = 1e-3
    threads: int = 1
    seed: int = 0

    @abstractmethod
    def batches(self, rng: np.random.Generator) -> Callable[[], Batch]:
        """Make the pictures, and return a function that draws a batch of their patches."""

    def run(self) -> None:
        """Train, print the loss regularly, and write the weights."""
        torch.set_num_threads(self.threads)
        torch.manual_seed(self.seed)
        draw = self.batches(np.random.default_rng(self.seed))
        network, screen = SmallNet(), Console()
        optimizer = torch.optim.Adam(network.parameters(), self.learning_rate)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.steps)
        start, losses = time.monotonic(), []
        for step in range(1, self.steps + 1):
            low, high = draw()
            loss = l1_loss(network(low), high)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            if step % 500 == 0 or step == self.steps:
                seconds = time.monotonic() - start
                screen.print(f"step {step}: loss {np.mean(losses[-500:]):.5f}, {seconds:.0f} s")
        save_small(network, self.out)
