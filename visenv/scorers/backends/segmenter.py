"""Defines `SegmenterBackend`, which computes masks from boxes or points with SAM."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray
from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.images import channels_first
from visenv.pretrained import load_pretrained
from visenv.scorers.backend import ServiceLimits
from visenv.scorers.backends.local_model import LocalModelBackend
from visenv.scorers.request import HitMasks
from visenv.types import Image

_CLASSES = {
    "sam": ("SamModel", "SamProcessor"),
    "sam2": ("Sam2Model", "Sam2Processor"),
    "sam2_video": ("Sam2Model", "Sam2Processor"),
    "sam3_tracker": ("Sam3TrackerModel", "Sam3TrackerProcessor"),
    "sam3": ("Sam3TrackerModel", "Sam3TrackerProcessor"),
    "sam3_video": ("Sam3TrackerModel", "Sam3TrackerProcessor"),
}
"""The class of model and processor by the checkpoint's ``model_type``; each supports boxes and
points.
"""

_PROMPTS_AT_ONCE = 32


class SegmenterBackend(LocalModelBackend):
    """Answers `HitMasks` with SAM, SAM 2 or SAM 3.

    Each prompt gives one mask, and a point is tested against the union of the masks. An image is
    embedded once for all its requests, and unions of masks are kept for further points.

    Args:
        model: A folder, or a name on the Hugging Face hub.
        device: PyTorch device.
        images: The number of images whose embeddings are kept.
        masks: The number of unions of masks that are kept.
    """

    requests = (HitMasks,)
    title = "segmenter"
    limits = ServiceLimits(max_batch_size=16, max_delay=0.005, timeout=600.0)

    def __init__(self, model: str, device: str = "cpu", images: int = 32, masks: int = 256) -> None:
        super().__init__(model, device)
        # Whether the processor scales prompts without the image. If so, the image is not resized
        # again.
        self._scales_alone = False
        self._embeddings: LRUCache[str, Any] = LRUCache(images)
        self._masks: LRUCache[tuple[str, tuple[tuple[float, ...], ...]], NDArray[np.bool_]]
        self._masks = LRUCache(masks)

    @override
    def _load(self) -> None:
        import transformers

        kind = load_pretrained(transformers.AutoConfig, self._name).model_type
        if kind not in _CLASSES:
            raise ConfigurationError(
                f"The segmenter {self._name!r} is a {kind!r}; known: {', '.join(_CLASSES)}."
            )
        model, processor = (getattr(transformers, name) for name in _CLASSES[kind])
        self._processor = load_pretrained(processor, self._name)
        self._model = load_pretrained(model, self._name).to(self._device).eval()
        signature = inspect.signature(self._processor.__call__)
        self._scales_alone = "original_sizes" in signature.parameters

    @override
    def compute(self, requests: Sequence[HitMasks]) -> Sequence[Any]:
        """Look up the points of each request in the union of its masks."""
        return [self._hits(request) for request in requests]

    def _hits(self, request: HitMasks) -> list[bool]:
        if not request.prompts:
            return [False] * len(request.points)
        mask = self._union(request.image, request.prompts)
        return [bool(mask[math.floor(y), math.floor(x)]) for x, y in request.points]

    def _union(self, image: Image, prompts: tuple[tuple[float, ...], ...]) -> NDArray[np.bool_]:
        key = image.sha256, prompts
        known = self._masks.get(key)
        if known is None:
            width, height = image.size
            known = np.zeros((height, width), np.bool_)
            for start in range(0, len(prompts), _PROMPTS_AT_ONCE):
                known |= self._segment(image, prompts[start : start + _PROMPTS_AT_ONCE])
            self._masks[key] = known
        return known

    def _segment(self, image: Image, prompts: tuple[tuple[float, ...], ...]) -> NDArray[np.bool_]:
        """Return the union of the masks of some prompts, bool ``[height, width]``."""
        import torch

        asked: dict[str, Any]
        if len(prompts[0]) == 4:
            asked = {"input_boxes": [[list(prompt) for prompt in prompts]]}
        else:
            asked = {
                "input_points": [[[list(prompt)] for prompt in prompts]],
                "input_labels": [[[1] for _ in prompts]],
            }
        width, height = image.size
        if image.sha256 in self._embeddings and self._scales_alone:
            asked["original_sizes"] = [[height, width]]
        else:
            asked["images"] = channels_first(image)
        with torch.inference_mode():
            inputs = self._processor(return_tensors="pt", **asked).to(self._device)
            sizes = inputs.pop("original_sizes")
            reshaped = inputs.pop("reshaped_input_sizes", None)
            embeddings = self._embed(image, inputs.pop("pixel_values", None))
            outputs = self._model(image_embeddings=embeddings, multimask_output=False, **inputs)
            more = {} if reshaped is None else {"reshaped_input_sizes": reshaped}
            masks = self._processor.post_process_masks(outputs.pred_masks.cpu(), sizes, **more)[0]
        # [..., height, width], one mask for each prompt; their union is [height, width].
        return np.asarray(masks.bool().reshape(-1, height, width).any(dim=0).numpy(), np.bool_)

    def _embed(self, image: Image, pixel_values: Any) -> Any:
        known = self._embeddings.get(image.sha256)
        if known is None:
            known = self._model.get_image_embeddings(pixel_values)
            self._embeddings[image.sha256] = known
        return known
