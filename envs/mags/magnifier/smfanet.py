"""Implements SMFANet (Zheng et al., ECCV 2024), a small super-resolution network.

The parameters have the names of the published weights, so that these files load strictly.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import override

POOL = 8
"""Pooling factor of the non-local branch; smaller inputs are padded to this size."""


class SMFANetVariant(NamedTuple):
    """Holds the sizes of a variant.

    Attributes:
        channels: Width.
        blocks: Depth.
    """

    channels: int
    blocks: int


VARIANTS = {"SMFANet": SMFANetVariant(36, 8), "SMFANet+": SMFANetVariant(48, 12)}


class SMFANet(nn.Module):
    """Implements the network: a head, feature modulation blocks with a residual, and a tail.

    Args:
        channels: Width.
        blocks: Depth.
        scale: The factor by which each dimension is enlarged.
    """

    def __init__(self, channels: int, blocks: int, scale: int) -> None:
        super().__init__()
        self.scale = scale
        self.to_feat = nn.Conv2d(3, channels, 3, padding=1)
        self.feats = nn.Sequential(*(_Modulation(channels) for _ in range(blocks)))
        self.to_img = nn.Sequential(
            nn.Conv2d(channels, 3 * scale**2, 3, padding=1), nn.PixelShuffle(scale)
        )

    @override
    def forward(self, image: Tensor) -> Tensor:
        """Enlarge ``[batch, 3, height, width]``, values 0 to 1; the output is not clamped.

        Sides below 8 px, for which pooling would give an empty tensor, are padded by edge
        replication; the result is cropped.
        """
        height, width = image.shape[-2:]
        down, across = max(0, POOL - height), max(0, POOL - width)
        if down or across:
            image = F.pad(image, (0, across, 0, down), mode="replicate")
        head = self.to_feat(image)
        enlarged: Tensor = self.to_img(self.feats(head) + head)
        return enlarged[..., : height * self.scale, : width * self.scale]


class _Modulation(nn.Module):
    """Implements feature modulation: self-modulation, then a partial-convolution feed-forward."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.smfa = _SelfModulation(channels)
        self.pcfn = _PartialFeedForward(channels)

    @override
    def forward(self, features: Tensor) -> Tensor:
        features = features + self.smfa(F.normalize(features))
        modulated: Tensor = features + self.pcfn(F.normalize(features))
        return modulated


class _SelfModulation(nn.Module):
    """Adds a non-local branch, which modulates features by pooled ones, and a local branch."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.linear_0 = nn.Conv2d(channels, 2 * channels, 1)
        self.linear_1 = nn.Conv2d(channels, channels, 1)
        self.linear_2 = nn.Conv2d(channels, channels, 1)
        self.lde = _LocalDetail(channels)
        self.dw_conv = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        self.alpha = nn.Parameter(torch.ones(1, channels, 1, 1))
        self.belt = nn.Parameter(torch.zeros(1, channels, 1, 1))

    @override
    def forward(self, features: Tensor) -> Tensor:
        local, other = self.linear_0(features).chunk(2, dim=1)  # [batch, channels, height, width]
        height, width = features.shape[-2:]
        pooled = F.adaptive_max_pool2d(other, (height // POOL, width // POOL))
        variance = other.var(dim=(-2, -1), keepdim=True)  # [batch, channels, 1, 1]
        mixed = self.dw_conv(pooled) * self.alpha + variance * self.belt
        factor = F.interpolate(F.gelu(self.linear_1(mixed)), size=(height, width), mode="nearest")
        modulated: Tensor = self.linear_2(other * factor + self.lde(local))
        return modulated


class _LocalDetail(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = 2 * channels
        self.conv_0 = nn.Sequential(
            nn.Conv2d(channels, inner, 3, padding=1, groups=channels), nn.Conv2d(inner, inner, 1)
        )
        self.conv_1 = nn.Conv2d(inner, channels, 1)

    @override
    def forward(self, features: Tensor) -> Tensor:
        detail: Tensor = self.conv_1(F.gelu(self.conv_0(features)))
        return detail


class _PartialFeedForward(nn.Module):
    """Implements a feed-forward network whose 3×3 convolution sees a quarter of the channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = 2 * channels
        self.part = inner // 4
        self.conv_0 = nn.Conv2d(channels, inner, 1)
        self.conv_1 = nn.Conv2d(self.part, self.part, 3, padding=1)
        self.conv_2 = nn.Conv2d(inner, channels, 1)

    @override
    def forward(self, features: Tensor) -> Tensor:
        inner = F.gelu(self.conv_0(features))
        first, rest = inner[:, : self.part], inner[:, self.part :]
        # Features are [batch, inner, height, width].
        mixed = torch.cat([F.gelu(self.conv_1(first)), rest], dim=1)
        result: Tensor = self.conv_2(mixed)
        return result
