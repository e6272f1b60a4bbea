"""Loads SMFANet weights strictly, without running code, and accepts only finite numbers."""

from __future__ import annotations

import math
import pickle
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from visenv.errors import ConfigurationError

from .smfanet import VARIANTS, SMFANet, SMFANetVariant

_BLOCK = re.compile(r"feats\.(\d+)\.")


def load_smfanet(file: str | Path) -> SMFANet:
    """Return the network of a published file of weights, in evaluation mode.

    The variant and the scale are derived from the shapes of the tensors.

    Args:
        file: A zip pickle of PyTorch that contains ``{"params": {name: tensor}}``.

    Raises:
        ConfigurationError: If the file cannot be read, contains code, is truncated, belongs to
            another network, or contains numbers that are not finite.
    """
    state = _read(Path(file))
    variant, scale = _sizes(state, file)
    network = SMFANet(variant.channels, variant.blocks, scale)
    try:
        network.load_state_dict(state)
    except RuntimeError as error:
        raise _refused(file, f"belongs to another network: {str(error)[:300]}") from error
    for name, tensor in state.items():
        if not torch.isfinite(tensor).all():
            raise _refused(file, f"has a number in {name} that is not finite")
    return network.float().eval()


def _read(file: Path) -> dict[str, Tensor]:
    if file.is_file() and not zipfile.is_zipfile(file):
        raise _refused(file, "is not a zip file as PyTorch writes it, or is truncated")
    try:
        content: Any = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise _refused(file, "contains more than tensors, and is not loaded") from error
    except (OSError, RuntimeError, EOFError, ValueError, KeyError) as error:
        raise _refused(file, f"cannot be read: {str(error)[:200]}") from error
    params = content.get("params") if isinstance(content, Mapping) else None
    if not isinstance(params, Mapping) or not all(
        isinstance(tensor, Tensor) and tensor.is_floating_point() for tensor in params.values()
    ):
        raise _refused(file, 'contains no tensors of real numbers under "params"')
    return {str(name): tensor for name, tensor in params.items()}


def _sizes(state: Mapping[str, Tensor], file: str | Path) -> tuple[SMFANetVariant, int]:
    """Return the variant and the scale that the shapes imply."""
    head, tail = state.get("to_feat.weight"), state.get("to_img.0.weight")
    if head is None or tail is None:
        raise _refused(file, "belongs to another network: it has no to_feat and to_img")
    if head.dim() != 4 or tail.dim() != 4:
        raise _refused(file, "belongs to another network: to_feat or to_img is not a convolution")
    blocks = {int(found[1]) for name in state if (found := _BLOCK.match(name))}
    variant = SMFANetVariant(head.shape[0], len(blocks))
    scale = math.isqrt(tail.shape[0] // 3)
    if variant not in VARIANTS.values() or scale not in (2, 3, 4):
        raise _refused(
            file,
            f"has {variant.channels} channels, {variant.blocks} blocks and scale {scale}, which "
            "no published SMFANet has",
        )
    return variant, scale


def _refused(file: str | Path, why: str) -> ConfigurationError:
    return ConfigurationError(f"The file of SMFANet weights {str(file)!r} {why}.")
