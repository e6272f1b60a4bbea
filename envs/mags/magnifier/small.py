"""Defines visenv's small ×4 super-resolution network, of which two weights are in the package.

``python -m visenv.envs.mags.magnifier.train_small`` trains ``small`` (`train_small`), and
``python -m visenv.envs.mags.magnifier.train_deblur`` trains ``small-deblur`` (`train_deblur`).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import override

SCALE = 4

_WIDTH = 48
_BLOCKS = 3


class SmallNet(nn.Module):
    """Implements a residual network at input resolution, added to bicubic interpolation.

    It has 146,832 parameters. The weights are stored in float16.
    """

    scale = SCALE

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Conv2d(3, _WIDTH, 3, padding=1)
        self.blocks = nn.ModuleList([_Block() for _ in range(_BLOCKS)])
        self.tail = nn.Conv2d(_WIDTH, 3 * SCALE**2, 3, padding=1)
        nn.init.zeros_(self.tail.weight)
        assert self.tail.bias is not None
        nn.init.zeros_(self.tail.bias)

    @override
    def forward(self, image: Tensor) -> Tensor:
        """Enlarge ``[batch, 3, height, width]``, values 0 to 1, by 4 in each dimension."""
        features = self.head(image)
        for block in self.blocks:
            features = block(features)
        # [batch, 3 * 16, height, width] becomes [batch, 3, 4 * height, 4 * width].
        detail = F.pixel_shuffle(self.tail(features), SCALE)
        return detail + F.interpolate(image, scale_factor=SCALE, mode="bicubic")


class _Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(_WIDTH, _WIDTH, 3, padding=1)
        self.second = nn.Conv2d(_WIDTH, _WIDTH, 3, padding=1)

    @override
    def forward(self, features: Tensor) -> Tensor:
        changed: Tensor = features + self.second(F.relu(self.first(features)))
        return changed


def load_small(file: Path) -> SmallNet:
    """Return the network with the weights of a file that was written by `save_small`."""
    network = SmallNet()
    with np.load(file, allow_pickle=False) as arrays:
        state = {name: torch.from_numpy(arrays[name].astype(np.float32)) for name in arrays.files}
    network.load_state_dict(state)
    return network.eval()


def save_small(network: SmallNet, file: Path) -> None:
    """Write the weights in float16."""
    arrays = {
        name: value.detach().numpy().astype(np.float16)
        for name, value in network.state_dict().items()
    }
    np.savez_compressed(file, **arrays)
