"""Implements the request to a super-resolution network, and the scorer backend that runs one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from typing_extensions import override

from visenv.decoding.files import read_regular
from visenv.errors import ConfigurationError
from visenv.packages import install_command, require_version
from visenv.scorers import InProcessBackend, ScoreRequest, ServiceLimits
from visenv.types import Image, Pixels

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Magnify(ScoreRequest):
    """Requests an enlarged crop.

    The result is uint8 ``[scale * height, scale * width, 3]``, at the scale of the network.

    Attributes:
        crop: The crop at native size.
    """

    kind: ClassVar[str] = "magnify"
    crop: Image


PACKAGED = {
    "small": Path(__file__).with_name("small.npz"),
    "small-deblur": Path(__file__).with_name("small_deblur.npz"),
}
"""Files of the weights that are part of the package."""

_PIXELS = 1 << 17
"""Maximum number of pixels of the crops in a batch; a larger crop is computed alone."""


class MagnifierBackend(InProcessBackend):
    """Computes `Magnify` requests; crops of equal size are computed together.

    Batches are limited by their pixels as well as by their number, so that memory does not grow
    with the product of size and number of crops.

    In float32, the last bits of a crop depend on the batch and on the number of threads. In
    deterministic mode each crop is therefore computed alone: on a CPU in float32 with one thread,
    on other devices in float64.

    Args:
        weights: A key of `PACKAGED`, or a file of SMFANet weights.
        device: PyTorch device.
    """

    requests = (Magnify,)
    main_option = "weights"
    limits = ServiceLimits(max_batch_size=32, max_delay=0.002, timeout=600.0)
    batch_invariant = True

    def __init__(self, weights: str = "small", device: str = "cpu") -> None:
        super().__init__()
        self._weights = weights
        self._device = device
        self._network: nn.Module | None = None

    @property
    @override
    def model(self) -> str:
        """Return the name of the weights."""
        return Path(self._weights).name

    @property
    @override
    def version(self) -> str:
        """Return the hash of the weights, and the version of PyTorch."""
        file = PACKAGED.get(self._weights, Path(self._weights))
        try:
            digest = hashlib.sha256(read_regular(file)).hexdigest()
        except OSError as error:
            raise ConfigurationError(f"The weights {str(file)!r} cannot be read.") from error
        return f"{digest} torch {require_version('The magnifier', 'torch', 'train')}"

    @override
    def load(self) -> None:
        """Load the network.

        Raises:
            ConfigurationError: If PyTorch is missing, or the file cannot be used.
        """
        check_weights(self._weights)
        import torch

        network: nn.Module
        if self._weights in PACKAGED:
            from .small import load_small

            network = load_small(PACKAGED[self._weights])
        else:
            from .weights import load_smfanet

            network = load_smfanet(self._weights)
        exact = self.deterministic and torch.device(self._device).type != "cpu"
        self._network = network.to(self._device, torch.float64 if exact else torch.float32)

    @override
    def compute(self, requests: Sequence[Magnify]) -> Sequence[Any]:
        """Enlarge the crops, in batches of equal size with at most `_PIXELS` pixels."""
        crops = [request.crop.pixels for request in requests]
        places: dict[tuple[int, ...], list[int]] = {}
        for place, crop in enumerate(crops):
            places.setdefault(crop.shape, []).append(place)
        enlarged: list[Any] = [None] * len(crops)
        for (height, width, *_), group in places.items():
            most = 1 if self.deterministic else max(1, _PIXELS // (height * width))
            for start in range(0, len(group), most):
                batch = group[start : start + most]
                results = self._enlarge([crops[place] for place in batch])
                for place, pixels in zip(batch, results, strict=True):
                    enlarged[place] = pixels
        return enlarged

    def _enlarge(self, crops: Sequence[Pixels]) -> list[Pixels]:
        import torch

        assert self._network is not None, "load() comes first"
        dtype = next(self._network.parameters()).dtype
        stacked = torch.from_numpy(np.stack(crops)).to(self._device)  # [crops, height, width, 3]
        images = stacked.permute(0, 3, 1, 2).to(dtype) / 255  # [crops, 3, height, width]
        with torch.inference_mode(), _one_thread() if self.deterministic else nullcontext():
            output = self._network(images)
        levels = (output.clamp(0, 1) * 255).round().to(torch.uint8)
        # Each crop is [4 * height, 4 * width, 3].
        return list(levels.permute(0, 2, 3, 1).contiguous().cpu().numpy())


def check_weights(weights: str) -> None:
    """Check that a network can be loaded.

    Args:
        weights: A key of `PACKAGED`, or a file of SMFANet weights.

    Raises:
        ConfigurationError: If PyTorch is missing, or the file cannot be used.
    """
    if find_spec("torch") is None:
        raise ConfigurationError(
            f"The magnifier {Path(weights).name!r} needs PyTorch: {install_command('torch')}, or "
            'use magnifier="lanczos".'
        )
    if weights in PACKAGED:
        return
    file = Path(weights)
    if not file.is_file():
        raise ConfigurationError(f"There is no file of SMFANet weights {weights!r}.")
    _check_file(weights, file.stat().st_mtime_ns)


@lru_cache(maxsize=32)
def _check_file(file: str, modified: int) -> None:
    """Load a file, once for each time of its last change: many environments use the same file."""
    from .weights import load_smfanet

    load_smfanet(file)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let PyTorch compute with one thread inside the block."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
