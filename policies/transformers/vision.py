"""Runs the vision tower once for each image or video.

While it is frozen, its features are cached.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from cachetools import LRUCache
from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.private_names import unknown_result
from visenv.types import VideoSpan

from ..tokens.family import Span
from ..tokens.vision import ImagePatches

BLANK = ""
"""Name of the blank image, which a rank reads if it has no other image."""


class ImageFeatures(NamedTuple):
    """Holds the vision tower's output for one image, one video, or one run of its steps.

    Attributes:
        embedded: ``[placeholders, width]``, in place of the placeholders' embeddings.
        deep: Tensors of the same shape, one for each of the first language layers, which are added
            to the outputs of these layers (DeepStack, only Qwen3-VL).
    """

    embedded: torch.Tensor
    deep: tuple[torch.Tensor, ...]

    @property
    def nbytes(self) -> int:
        """Return the size of all tensors in bytes."""
        return sum(each.nbytes for each in (self.embedded, *self.deep))

    def of(self, span: Span) -> ImageFeatures:
        """Return the features for the placeholders of a span of this image or video."""
        if span.length == len(self.embedded):
            return self
        assert isinstance(span, VideoSpan), "an image is shown whole"
        first = span.first_step * (span.length // span.grid[0])
        rows = slice(first, first + span.length)
        return ImageFeatures(self.embedded[rows], tuple([layer[rows] for layer in self.deep]))

    def none_of_it(self) -> torch.Tensor:
        """Return a scalar 0 whose gradient, which is also 0, reaches every weight of the tower."""
        return 0 * sum((each.sum() for each in self.deep), self.embedded.sum())


class VisionTower:
    """Wraps the vision tower of a model.

    Args:
        model: A model from `AutoModelForImageTextToText`.
        capacity: Maximum number of bytes of cached features while the tower is frozen.

    Attributes:
        frozen: Whether no weight of the tower is trained.
    """

    def __init__(self, model: Any, capacity: int) -> None:
        self._model = model
        self._tower = model.model.visual
        _project_patches_by_matmul(self._tower)
        self.frozen = not any(weight.requires_grad for weight in self._tower.parameters())
        self._known: LRUCache[str, ImageFeatures] = LRUCache(capacity, _nbytes)

    def check(self) -> None:
        """Check that this version of transformers returns features in a form that is known.

        Raises:
            ConfigurationError: If it returns features in another form; the message names the tested
                versions.
        """
        with torch.no_grad():
            self._run({BLANK: self._blank()})

    def look(
        self, images: Mapping[str, ImagePatches], *, in_step: bool = False
    ) -> dict[str, ImageFeatures]:
        """Return features of images and videos, by their names.

        Both architectures process videos like images: attention stays within a step.

        Args:
            images: The images, by a name that identifies their pixels.
            in_step: Whether all ranks of a distributed run call this together. If all of them must
                run the tower, a rank without images reads `BLANK`, which is then in the result.
        """
        known = {name: self._known.get(name) for name in images}
        missing = {name: images[name] for name, features in known.items() if features is None}
        if not missing and in_step and self._together():
            missing = {BLANK: self._blank()}
        seen = self._run(missing)
        if self.frozen:
            for name in seen.keys() - {BLANK}:
                with suppress(ValueError):  # features larger than the cache are not cached
                    self._known[name] = seen[name]
        return seen | {name: one for name, one in known.items() if one is not None}

    def forget(self) -> None:
        """Drop the cached features, because the weights of the tower changed."""
        self._known.clear()

    def _run(self, images: Mapping[str, ImagePatches]) -> dict[str, ImageFeatures]:
        if not images:
            return {}
        device = self._model.device
        # [patches of all images, channels * temporal size * patch size**2] and [images, 3].
        values = torch.cat([each.values.to(device, non_blocking=True) for each in images.values()])
        grids = torch.tensor([image.grid for image in images.values()], device=device)
        with _constant() if self.frozen else nullcontext():
            seen = self._model.model.get_image_features(values, grids, return_dict=True)
        merged = self._tower.spatial_merge_size**2
        sizes = [math.prod(image.grid) // merged for image in images.values()]  # placeholders
        features = _by_image(seen, sizes)
        if self.frozen:  # separate memory, so that dropping one frees it
            features = [
                ImageFeatures(one.embedded.clone(), tuple(layer.clone() for layer in one.deep))
                for one in features
            ]
        return dict(zip(images, features, strict=True))

    def _together(self) -> bool:
        """Return whether every rank must run the tower the same number of times.

        Gradients are summed over ranks for each weight, so that a trained weight needs a gradient
        on each rank. ZeRO-3, whose weights have the attribute ``ds_id``, gathers weights around
        each run.
        """
        if not torch.distributed.is_available() or not torch.distributed.is_initialized():
            return False
        return not self.frozen or hasattr(next(self._tower.parameters()), "ds_id")

    def _blank(self) -> ImagePatches:
        """Return the smallest possible image."""
        side = self._tower.spatial_merge_size
        embed = self._tower.patch_embed
        width = embed.in_channels * embed.temporal_patch_size * embed.patch_size**2
        return ImagePatches(torch.zeros(side * side, width), (1, side, side))


class _PatchProjection(torch.nn.Conv3d):
    """Projects patches by one matrix product.

    The kernel of the convolution covers a whole patch, so that both are the same function. On CPUs,
    the convolution of PyTorch 2.13 takes longer (``benchmarks/vision.py``).
    """

    @override
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return ``[patches, width]`` for patches ``[patches, channels, steps, side, side]``."""
        return F.linear(input.flatten(1), self.weight.flatten(1), self.bias)


def _project_patches_by_matmul(tower: Any) -> None:
    projection = getattr(tower.patch_embed, "proj", None)
    # A subclass keeps names and identity of the weights, also in a copy of the model.
    if type(projection) is torch.nn.Conv3d and projection.stride == projection.kernel_size:
        projection.__class__ = _PatchProjection


def _by_image(seen: Any, sizes: Sequence[int]) -> list[ImageFeatures]:
    """Return the features of each image from a result of `get_image_features`.

    The features for a language layer are one tensor until transformers 5.17, and a tuple with one
    tensor for each image in later versions.
    """
    try:
        deep = [
            torch.split(layer, [*sizes]) if isinstance(layer, torch.Tensor) else layer
            for layer in getattr(seen, "deepstack_features", ())
        ]
        layers = (seen.pooler_output, *deep)  # of each [placeholders, width] for each image
        known = all([each.shape[0] for each in layer] == sizes for layer in layers)
    except (AttributeError, TypeError, RuntimeError) as error:
        raise _unknown() from error
    if not known:
        raise _unknown()
    return [ImageFeatures(one, tuple(more)) for one, *more in zip(*layers, strict=True)]


def _unknown() -> ConfigurationError:
    return unknown_result("transformers", "features of images")


@contextmanager
def _constant() -> Iterator[None]:
    """Make tensors without gradient that training can use, unlike inference tensors."""
    with torch.inference_mode(mode=False), torch.no_grad():
        yield


def _nbytes(features: ImageFeatures) -> int:
    return features.nbytes
