"""Defines the family of all other models, by the public interface of their processors alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from cachetools import LRUCache
from numpy.typing import NDArray

from visenv.errors import ConfigurationError, ImageError, PolicyError
from visenv.types import Image, ImageSpan, PlaceholderRun, Visual

from .family import Checkpoint, MediaSpan, Span, VideoMode
from .fingerprint import fingerprint_of
from .vision import ImageEncoder

_NO_INPUTS = {"input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids"}
"""Results of a processor that describe its text, which is here only one placeholder."""


class ProcessedImage(NamedTuple):
    """Holds the results of a processor for one image.

    Attributes:
        token_ids: The tokens of the image.
        inputs: Arguments of the model, whose first dimension counts images, tiles or patches.
    """

    token_ids: tuple[int, ...]
    inputs: Mapping[str, torch.Tensor]

    @property
    def nbytes(self) -> int:
        """Return the size of all tensors in bytes."""
        return sum(tensor.nbytes for tensor in self.inputs.values())


class GenericFamily:
    """Asks the processor for the tokens and inputs of each image. The class is a `ModelFamily`.

    The processor is called once for each distinct image, with one placeholder as text. Some
    processors tile an image only if it is the only one (LLaVA-OneVision), so the tokens of an image
    would otherwise depend on images that are shown later. The results are concatenated along their
    first dimension, and smaller ones are padded with zeros, as processors pad a batch themselves.

    Args:
        checkpoint: The checkpoint.
        capacity: Maximum number of bytes of cached results; the least recently used are dropped
            first.

    Raises:
        PolicyError: If the configuration names no token that is replaced by features.
    """

    packs = False
    takes_videos = False

    def __init__(self, checkpoint: Checkpoint, capacity: int = 2**30) -> None:
        self.name: str = checkpoint.config.model_type
        self._processor = checkpoint.processor
        self._template_id = checkpoint.template.image_id
        self._text = str(self._processor.tokenizer.convert_ids_to_tokens(self._template_id))
        self._placeholder_id = _placeholder_of(checkpoint)
        self._patch = _patch_size(checkpoint.config)
        self._known: LRUCache[str, ProcessedImage] = LRUCache(capacity, _nbytes)

    @property
    def template_ids(self) -> tuple[int, ...]:
        """Return the token that the chat template writes for an image."""
        return (self._template_id,)

    @property
    def placeholder_ids(self) -> tuple[int, ...]:
        """Return the token that is replaced by features of images."""
        return (self._placeholder_id,)

    def fingerprint(self, with_videos: bool) -> str:
        """Return the fingerprint of the image processor; videos are shown as frames."""
        del with_videos
        return fingerprint_of(self._processor.image_processor)

    def check(self, items: Iterable[Visual]) -> None:
        """Process images, so that one that the processor refuses fails its own episode.

        Raises:
            ImageError: If the processor refuses an image.
        """
        for item in items:
            self._process(item)

    def prepare(self, items: Sequence[Visual]) -> None:
        """Process images, one after another."""
        for item in items:
            self._process(item)

    def show(self, item: Visual, start: int) -> tuple[list[int], MediaSpan]:
        """Return the tokens of an image whose first token has the index `start`."""
        made = self._process(item)
        runs = []
        place = start
        for token, group in groupby(made.token_ids):
            length = len(list(group))
            if token == self._placeholder_id:
                runs.append(PlaceholderRun(place, length))
            place += length
        span = ImageSpan(item.sha256, tuple(runs), self._placeholder_id, self._patches(made))
        return [*made.token_ids], MediaSpan(item, start, place, (span,), self._template_id)

    def inputs(self, items: Sequence[Visual]) -> dict[str, torch.Tensor]:
        """Return the arguments of the model for the images of a batch, row by row."""
        made = [self._process(item).inputs for item in items]
        names = dict.fromkeys(name for inputs in made for name in inputs)
        return {name: _stacked([inputs[name] for inputs in made]) for name in names}

    def token_types(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return 1 for placeholders, and 0 for other tokens."""
        types: NDArray[np.int64] = (token_ids == self._placeholder_id).astype(np.int64)
        return types

    def positions(self, length: int, spans: Sequence[Span], items: Mapping[str, Visual]) -> None:
        """Return None: the model computes positions from its other arguments."""

    def vision(self, model: Any) -> list[torch.nn.Parameter]:
        """Return all parameters but those of the language model and of its embeddings."""
        language = (
            model.get_decoder(),
            model.get_input_embeddings(),
            model.get_output_embeddings(),
        )
        own = {id(weight) for part in language for weight in part.parameters()}
        return [weight for weight in model.parameters() if id(weight) not in own]

    def _process(self, item: Visual) -> ProcessedImage:
        assert isinstance(item, Image), "sessions without video tokens show frames"
        known = self._known.get(item.sha256)
        if known is not None:
            return known
        # Results from sampling are used in training later, so they must not be inference tensors.
        with torch.inference_mode(mode=False):
            made = self._call(item)
        token_ids = tuple(made["input_ids"][0].tolist())
        if self._placeholder_id not in token_ids:
            raise PolicyError(
                f"The processor of the {self.name} model writes no placeholder "
                f"{self._placeholder_id} for an image, but {token_ids[:20]}."
            )
        inputs = {
            name: value.float() if value.is_floating_point() else value
            for name, value in made.items()
            if name not in _NO_INPUTS and isinstance(value, torch.Tensor)
        }
        result = ProcessedImage(token_ids, inputs)
        with suppress(ValueError):  # an image larger than the cache is not cached
            self._known[item.sha256] = result
        return result

    def _call(self, image: Image) -> dict[str, Any]:
        pixels = image.pixels.copy()  # torch requires writable memory
        try:
            made = self._processor(
                text=[self._text], images=[pixels], add_special_tokens=False, return_tensors="pt"
            )
        except (ValueError, TypeError, IndexError, ZeroDivisionError, RuntimeError) as error:
            raise ImageError(
                f"{image.name} is refused by the processor of the {self.name} model: {error}"
            ) from error
        return dict(made)

    def _patches(self, made: ProcessedImage) -> int:
        pixels = made.inputs.get("pixel_values")
        if pixels is None:
            return made.token_ids.count(self._placeholder_id)
        return max(1, math.ceil(pixels.numel() / self._patch))


def generic(
    checkpoint: Checkpoint,
    *,
    min_pixels: int | None = None,
    max_pixels: int | None = None,
    video: VideoMode | None = None,
    image_encoder: Callable[[Any, int], ImageEncoder] = ImageEncoder,
    capacity: int = 2**30,
) -> GenericFamily:
    """Return the generic family of a checkpoint; the arguments are those of `qwen_vl`.

    Raises:
        ConfigurationError: If `min_pixels` or `max_pixels` is given.
        PolicyError: If videos are to be shown natively, or the configuration names no token that is
            replaced by features.
    """
    del image_encoder
    name = checkpoint.config.model_type
    if min_pixels is not None or max_pixels is not None:
        raise ConfigurationError(
            f"min_pixels and max_pixels are options of Qwen2.5-VL and Qwen3-VL, and {name!r} is "
            "another type of model: set its limits in the preprocessor configuration of the "
            "checkpoint."
        )
    if video == "native":
        raise PolicyError(f"Models of type {name!r} are shown videos as frames (video='frames').")
    return GenericFamily(checkpoint, capacity)


def _placeholder_of(checkpoint: Checkpoint) -> int:
    for name in ("image_token_id", "image_token_index"):
        token = getattr(checkpoint.config, name, None)
        if isinstance(token, int):
            return token
    raise PolicyError(
        f"The configuration of {checkpoint.name} has no image_token_id: a model of type "
        f"{checkpoint.config.model_type!r} whose images replace no tokens is not supported."
    )


def _patch_size(config: Any) -> int:
    """Return the number of values of a patch: channels times height times width."""
    size = getattr(config.vision_config, "patch_size", None)
    sides = (size, size) if isinstance(size, int) else tuple(size or (14, 14))
    values: int = 3 * math.prod(sides)
    return values


def _stacked(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return tensors concatenated along dimension 0; other dimensions are padded with zeros."""
    largest = [max(sizes) for sizes in zip(*(tensor.shape[1:] for tensor in tensors), strict=True)]
    padded = []
    for tensor in tensors:
        missing = [most - size for most, size in zip(largest, tensor.shape[1:], strict=True)]
        padding = [value for most in reversed(missing) for value in (0, most)]
        padded.append(F.pad(tensor, padding) if any(missing) else tensor)  # pad always copies
    return torch.cat(padded)


def _nbytes(made: ProcessedImage) -> int:
    return made.nbytes
