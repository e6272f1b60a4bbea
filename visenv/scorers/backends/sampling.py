"""Implements seeded sampling for a batch whose rows have separate temperatures and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


class SeededSampling:
    """Adds Gumbel noise, so that the maximum score is a sample (Gumbel-max trick).

    This is a logits processor of transformers.

    argmax(logits / T + Gumbel noise) has the distribution softmax(logits / T). The noise of each
    row comes from a separate generator; PyTorch's global generator, which training uses, is not
    used.

    Args:
        settings: Temperature and seed of each row; a temperature of 0 adds no noise.
    """

    def __init__(self, settings: Sequence[tuple[float, int]]) -> None:
        import torch

        self._temperatures = [temperature for temperature, _ in settings]
        self._generators = [torch.Generator().manual_seed(seed) for _, seed in settings]

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Return the scores with noise, float32 ``[rows, vocabulary]``."""
        import torch

        noisy = scores.float().clone()
        rows = zip(self._temperatures, self._generators, strict=True)
        for row, (temperature, generator) in enumerate(rows):
            if temperature > 0:
                uniform = torch.rand(scores.shape[-1], generator=generator, dtype=torch.float64)
                gumbel = -torch.log(-torch.log(uniform.clamp_min(1e-300)))
                noisy[row] = noisy[row] / temperature + gumbel.to(noisy)
        return noisy  # type: ignore[return-value]
