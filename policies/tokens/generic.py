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
from visenv.images import channels_first
from visenv.types import Image, ImageSpan, PlaceholderRun, Video, VideoSpan, Visual

from .family import Checkpoint, MediaSpan, Span, VideoMode
from .fingerprint import fingerprint_of
from .video import facts_of, pixels_of
from .vision import ImageEncoder

_NO_INPUTS = {"input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids"}
"""Results of a processor that describe its text, which is here only one placeholder."""

_SIDE = 64
"""Width and height in pixels of the video that tests a processor."""


class Processed(NamedTuple):
    """Holds the results of a processor for one image or video.

    Attributes:
        token_ids: The tokens of the image or video.
        inputs: Arguments of the model, whose first dimension counts images, videos, tiles or
            patches.
    """

    token_ids: tuple[int, ...]
    inputs: Mapping[str, torch.Tensor]

    @property
    def nbytes(self) -> int:
        """Return the size of all tensors in bytes."""
        return sum(tensor.nbytes for tensor in self.inputs.values())


class GenericFamily:
    """Asks the processor for the tokens and inputs of each image. The class is a `ModelFamily`.

    The processor is called once for each distinct image or video, with one placeholder as text.
    Some processors tile an image only if it is the only one (LLaVA-OneVision), so the tokens of an
    image would otherwise depend on images that are shown later. The results are concatenated along
    their first dimension, and smaller ones are padded with zeros, as processors pad a batch
    themselves.

    Args:
        checkpoint: The checkpoint.
        capacity: Maximum number of bytes of cached results; the least recently used are dropped
            first.
        videos: Whether videos are shown by the video tokens of the model, and not as frames.

    Raises:
        PolicyError: If the configuration names no token that is replaced by features, or videos
            have no such token.
    """

    packs = False

    def __init__(
        self, checkpoint: Checkpoint, capacity: int = 2**30, *, videos: bool = False
    ) -> None:
        self.name: str = checkpoint.config.model_type
        self._processor = checkpoint.processor
        self._tokenizer = checkpoint.processor.tokenizer
        self._template_id = checkpoint.template.image_id
        self._placeholder_id = _placeholder_of(checkpoint, "image")
        self._video_ids = (_placeholder_of(checkpoint, "video"),) if videos else ()
        self._patch = _patch_size(checkpoint.config)
        self._known: LRUCache[str, Processed] = LRUCache(capacity, _nbytes)

    @property
    def template_ids(self) -> tuple[int, ...]:
        """Return the tokens that the chat template writes for an image and for a video."""
        return (self._template_id, *self._video_ids)

    @property
    def placeholder_ids(self) -> tuple[int, ...]:
        """Return the tokens that are replaced by features of images and of videos."""
        return (self._placeholder_id, *self._video_ids)

    @property
    def takes_videos(self) -> bool:
        """Return whether videos are shown natively."""
        return bool(self._video_ids)

    def fingerprint(self, with_videos: bool) -> str:
        """Return a fingerprint of the processors and their settings, for images or for both."""
        images = fingerprint_of(self._processor.image_processor)
        if not with_videos or not self._video_ids:
            return images
        return f"{images}+{fingerprint_of(self._processor.video_processor)}"

    def check(self, items: Iterable[Visual]) -> None:
        """Process images and videos, so that one that is refused fails its own episode.

        Raises:
            ImageError: If the processor refuses an image or a video.
        """
        for item in items:
            self._process(item)

    def prepare(self, items: Sequence[Visual]) -> None:
        """Process images and videos, one after another."""
        for item in items:
            self._process(item)

    def show(self, item: Visual, start: int) -> tuple[list[int], MediaSpan]:
        """Return the tokens of an image or a video whose first token has the index `start`."""
        made = self._process(item)
        template_id, placeholder = self._tokens_for(item)
        runs = []
        place = start
        for token, group in groupby(made.token_ids):
            length = len(list(group))
            if token == placeholder:
                runs.append(PlaceholderRun(place, length))
            place += length
        patches = self._patches(made)
        spans: tuple[Span, ...]
        if isinstance(item, Video):
            each = max(1, round(patches / made.token_ids.count(placeholder)))
            spans = tuple([
                VideoSpan(*run, item.sha256, (1, 1, run.length * each), placeholder, 0.0, number)
                for number, run in enumerate(runs)
            ])  # fmt: skip
        else:
            spans = (ImageSpan(item.sha256, tuple(runs), placeholder, patches),)
        return [*made.token_ids], MediaSpan(item, start, place, spans, template_id)

    def inputs(self, items: Sequence[Visual]) -> dict[str, torch.Tensor]:
        """Return the arguments of the model for the images and videos of a batch, row by row."""
        made = [self._process(item).inputs for item in items]
        names = dict.fromkeys(name for inputs in made for name in inputs)
        return {
            name: _stacked([inputs[name] for inputs in made if name in inputs]) for name in names
        }

    def token_types(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return 1 for placeholders of images, 2 for those of videos, and 0 for other tokens."""
        types = np.zeros_like(token_ids)
        for kind, placeholder in enumerate(self.placeholder_ids, 1):
            types[token_ids == placeholder] = kind
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

    def _tokens_for(self, item: Visual) -> tuple[int, int]:
        """Return the token that the template writes for an item, and that of its features."""
        if isinstance(item, Image):
            return self._template_id, self._placeholder_id
        assert self._video_ids, "sessions without video tokens show frames"
        (video_id,) = self._video_ids
        return video_id, video_id

    def _process(self, item: Visual) -> Processed:
        known = self._known.get(item.sha256)
        if known is not None:
            return known
        # Results from sampling are used in training later, so they must not be inference tensors.
        with torch.inference_mode(mode=False):
            made = self._call(item)
        token_ids = tuple(made["input_ids"][0].tolist())
        _, placeholder = self._tokens_for(item)
        if placeholder not in token_ids:
            kind = "an image" if isinstance(item, Image) else "a video"
            raise PolicyError(
                f"The processor of the {self.name} model writes no placeholder {placeholder} for "
                f"{kind}, but {token_ids[:20]}."
            )
        inputs = {
            name: value.float() if value.is_floating_point() else value
            for name, value in made.items()
            if name not in _NO_INPUTS and isinstance(value, torch.Tensor)
        }
        if isinstance(item, Video):
            inputs = {name: _frames_apart(value) for name, value in inputs.items()}
        result = Processed(token_ids, inputs)
        with suppress(ValueError):  # a result larger than the cache is not cached
            self._known[item.sha256] = result
        return result

    def _call(self, item: Visual) -> dict[str, Any]:
        token, _ = self._tokens_for(item)
        text = str(self._tokenizer.convert_ids_to_tokens(token))
        given: dict[str, Any]
        try:
            if isinstance(item, Image):
                given = {"images": [channels_first(item)]}
            else:
                given = {
                    "videos": [torch.from_numpy(pixels_of(item))],
                    "video_metadata": [facts_of(item)],
                    "do_sample_frames": False,
                }
            made = self._processor(
                text=[text], **given, add_special_tokens=False, return_tensors="pt"
            )
        except (ValueError, TypeError, IndexError, ZeroDivisionError, RuntimeError) as error:
            name = item.name if isinstance(item, Image) else "A video"
            raise ImageError(
                f"{name} is refused by the processor of the {self.name} model: {error}"
            ) from error
        return dict(made)

    def _patches(self, made: Processed) -> int:
        pixels = made.inputs.get("pixel_values", made.inputs.get("pixel_values_videos"))
        if pixels is None:
            return sum(map(made.token_ids.count, self.placeholder_ids))
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
    if video != "frames":
        try:
            return _with_videos(checkpoint, capacity)
        except (PolicyError, ImageError) as error:
            if video == "native":
                raise PolicyError(
                    f"{checkpoint.name} cannot show videos natively, only as frames "
                    f"(video='frames'): {error}"
                ) from error
    return GenericFamily(checkpoint, capacity)


def _with_videos(checkpoint: Checkpoint, capacity: int) -> GenericFamily:
    """Return the family with native videos, after showing it a black one.

    Raises:
        PolicyError: If the checkpoint has no video processor, or no token for videos alone (some
            families write the placeholders of images for the frames of a video), or its inputs
            cannot hold videos of several lengths (`_frames_apart`).
        ImageError: If the processor refuses the video.
    """
    checkpoint.template.require_video()
    if getattr(checkpoint.processor, "video_processor", None) is None:
        raise PolicyError(f"{type(checkpoint.processor).__name__} has no video processor.")
    family = GenericFamily(checkpoint, capacity, videos=True)
    black = Image.from_pixels(np.zeros((_SIDE, _SIDE, 3), np.uint8))
    video = Video((black, black), (0.0, 1.0))
    _, shown = family.show(video, 0)
    made = family.inputs([video]).values()
    counts = {len(tensor) for tensor in made if tensor.dim() > 2}
    if counts and counts | {len(shown.spans)} != {len(video.frames)}:
        raise PolicyError(
            f"The processor of the {family.name} model stacks the frames of videos, which must then"
            " have one length: it does not describe each frame by inputs and placeholders of its"
            " own."
        )
    return family


def _placeholder_of(checkpoint: Checkpoint, kind: str) -> int:
    """Return the token that is replaced by features of images or of videos."""
    for name in (f"{kind}_token_id", f"{kind}_token_index"):
        token = getattr(checkpoint.config, name, None)
        if isinstance(token, int):
            return token
    raise PolicyError(
        f"The configuration of {checkpoint.name} has no {kind}_token_id: a model of type "
        f"{checkpoint.config.model_type!r} whose {kind}s replace no tokens is not supported."
    )


def _patch_size(config: Any) -> int:
    """Return the number of values of a patch: channels times frames times height times width."""
    size = getattr(config.vision_config, "patch_size", None)
    sides = (size, size) if isinstance(size, int) else tuple(size or (14, 14))
    frames = getattr(config.vision_config, "temporal_patch_size", 1)  # an image is repeated
    values: int = 3 * math.prod(sides) * (frames if isinstance(frames, int) else 1)
    return values


def _frames_apart(tensor: torch.Tensor) -> torch.Tensor:
    """Return the inputs of a video as those of one video for each frame.

    Some processors stack the frames of videos, ``[videos, frames, ...]``, so that videos of a batch
    must have one length. Where each frame has its own run of placeholders, `_with_videos` lets
    models read each frame as a video of its own.
    """
    return tensor.flatten(0, 1)[:, None] if tensor.dim() > 2 else tensor


def _stacked(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return tensors concatenated along dimension 0; other dimensions are padded with zeros."""
    largest = [max(sizes) for sizes in zip(*(tensor.shape[1:] for tensor in tensors), strict=True)]
    padded = []
    for tensor in tensors:
        missing = [most - size for most, size in zip(largest, tensor.shape[1:], strict=True)]
        padding = [value for most in reversed(missing) for value in (0, most)]
        padded.append(F.pad(tensor, padding) if any(missing) else tensor)  # pad always copies
    return torch.cat(padded)


def _nbytes(made: Processed) -> int:
    return made.nbytes
