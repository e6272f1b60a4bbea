"""Trains a small convolutional line reader with CTC on lines of undistorted pictures.

The reader takes gray levels as they are, without normalization of contrast, so that it sees a dark
picture as a model does that was trained on ordinary ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from typing_extensions import override

from visenv.types import Pixels

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
HEIGHT = 32
"""Height of a line for the reader, pixels."""


class LineReader(nn.Module):
    """Reads lines of capitals and digits; blanks are not read."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 1
        for width, pool in ((24, (2, 2)), (48, (2, 2)), (64, (2, 1)), (96, (2, 1))):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
            layers.append(nn.MaxPool2d(pool))
            channels = width
        self.features = nn.Sequential(*layers)
        self.letters = nn.Conv1d(2 * channels, len(ALPHABET) + 1, 3, padding=1)

    @override
    def forward(self, lines: torch.Tensor) -> torch.Tensor:
        """Return log-probabilities ``[columns, batch, letters + 1]``; 0 is CTC's blank.

        Args:
            lines: Gray levels from 0 to 1, ``[batch, 1, 32, width]``.
        """
        features = self.features(lines).flatten(1, 2)
        scores: torch.Tensor = self.letters(features)
        return scores.log_softmax(1).permute(2, 0, 1)

    @torch.no_grad()
    def read(self, lines: Sequence[Pixels]) -> list[str]:
        """Return the texts of lines, uint8 ``[height, width, 3]``, of any size."""
        self.eval()
        return [self._text(self(batched([line]))[:, 0]) for line in lines]

    def _text(self, columns: torch.Tensor) -> str:
        best = columns.argmax(1).tolist()
        kept = [
            now for before, now in zip([0, *best], best, strict=False) if now not in (0, before)
        ]
        return "".join(ALPHABET[place - 1] for place in kept)


def batched(lines: Sequence[Pixels]) -> torch.Tensor:
    """Return the gray levels of lines at the reader's height, padded with their last column."""
    from visenv.opencv import cv2

    scaled = []
    for line in lines:
        gray = cv2.cvtColor(line, cv2.COLOR_RGB2GRAY)
        width = max(16, round(gray.shape[1] * HEIGHT / gray.shape[0]))
        scaled.append(cv2.resize(gray, (width, HEIGHT), interpolation=cv2.INTER_LINEAR))
    longest = max(line.shape[1] for line in scaled)
    padded = [np.pad(line, ((0, 0), (0, longest - line.shape[1])), "edge") for line in scaled]
    return torch.from_numpy(np.stack(padded)).float()[:, None] / 255


def train(
    lines: Sequence[Pixels], texts: Sequence[str], epochs: int = 12, seed: int = 0
) -> LineReader:
    """Return a reader that was trained on these lines and their texts without blanks."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    reader = LineReader()
    optimizer = torch.optim.AdamW(reader.parameters(), 2e-3)
    steps = epochs * (len(lines) // 32)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, max(1, steps))
    for _ in range(epochs):
        order = rng.permutation(len(lines))
        for start in range(0, len(order) - 31, 32):
            chosen = order[start : start + 32]
            reader.train()
            columns = reader(batched([lines[place] for place in chosen]))
            wanted = [[ALPHABET.index(letter) + 1 for letter in texts[k]] for k in chosen]
            loss = nn.functional.ctc_loss(
                columns,
                torch.tensor([letter for word in wanted for letter in word]),
                torch.full((len(chosen),), columns.shape[0]),
                torch.tensor([len(word) for word in wanted]),
                zero_infinity=True,
            )
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return reader
