"""Defines `ModelFamily`, the contract between the policies and the family of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from visenv.types import ImageSpan, VideoSpan, Visual

from .template import ChatTemplate

Span = ImageSpan | VideoSpan
"""Describes the placeholders of an image, or a run of placeholders of a video."""

VideoMode = Literal["native", "frames"]
"""How a video is shown: by the video tokens of the model, or as images, frame by frame."""


class MediaSpan(NamedTuple):
    """Describes an image or a video in a stream.

    Attributes:
        item: The image or the video.
        start: Index of its first token.
        end: Index after its last token.
        spans: The placeholders: one span for an image; a video with text in between has several.
        template_id: The token that the chat template writes for the image or the video.
    """

    item: Visual
    start: int
    end: int
    spans: tuple[Span, ...]
    template_id: int


class Checkpoint(NamedTuple):
    """Holds the parts of a checkpoint from which its family is made.

    Attributes:
        name: The folder or the hub name of the checkpoint.
        config: The configuration of the model.
        processor: The processor of transformers.
        template: The increments of its chat template.
    """

    name: str
    config: Any
    processor: Any
    template: ChatTemplate


class ModelFamily(Protocol):
    """Describes how the models of a family read images: the methods that policies need.

    A family is looked up by the type of the model in its configuration (``model_type``). A package
    adds a family as an entry point of the group ``visenv.families``: a function with the arguments
    of `qwen_vl`.
    """

    @property
    def name(self) -> str:
        """Return the type of the model; it occurs in error messages."""
        ...

    @property
    def template_ids(self) -> tuple[int, ...]:
        """Return the tokens that the chat template writes for an image and for a video."""
        ...

    @property
    def placeholder_ids(self) -> tuple[int, ...]:
        """Return the tokens that are replaced by features."""
        ...

    @property
    def packs(self) -> bool:
        """Return whether segments can be packed into one row that shares prefixes."""
        ...

    @property
    def takes_videos(self) -> bool:
        """Return whether videos are shown by tokens of their own, and not as frames."""
        ...

    def fingerprint(self, with_videos: bool) -> str:
        """Return a fingerprint of the processors and their settings, for images or for both."""
        ...

    def check(self, items: Iterable[Visual]) -> None:
        """Decode images and videos, so that a broken one fails its own episode and not a batch.

        Raises:
            ImageError: If one of them cannot be shown.
        """
        ...

    def prepare(self, items: Sequence[Visual]) -> None:
        """Process images and videos together, before `show` and `inputs` ask for each of them."""
        ...

    def show(self, item: Visual, start: int) -> tuple[list[int], MediaSpan]:
        """Return the tokens of an image or a video whose first token has the index `start`."""
        ...

    def inputs(self, items: Sequence[Visual]) -> dict[str, Any]:
        """Return the arguments of the model for the images and videos of a batch.

        Args:
            items: The images and videos of all rows, row by row, as often as they are shown.
        """
        ...

    def token_types(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the types of tokens: 0 is text, 1 an image, 2 a video.

        Args:
            token_ids: int64 ``[rows, tokens]``.
        """
        ...

    def positions(
        self, length: int, spans: Sequence[Span], items: Mapping[str, Visual]
    ) -> NDArray[np.int64] | None:
        """Return the positions of a stream, or None if the model computes them itself.

        Args:
            length: Number of tokens in the stream.
            spans: The spans of its images and videos, in order.
            items: The images and videos, by their hash.
        """
        ...

    def vision(self, model: Any) -> list[Any]:
        """Return the parameters that read images, which `freeze_vision` does not train.

        Args:
            model: A model of transformers.
        """
        ...
