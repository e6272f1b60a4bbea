"""Splits a segment into prompt and response, the format of other trainers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from visenv.errors import ConfigurationError
from visenv.types import Image, Segment


class PromptCompletion(NamedTuple):
    """Holds one segment, split before its first sampled token.

    Attributes:
        prompt_ids: The tokens before the first sampled token, with expanded placeholders.
        response_ids: All other tokens, including later messages of the environment; never empty.
        response_mask: For each token of the response, 1 if the policy sampled it, otherwise 0.
        logprobs: For each token of the response, the log-probability that the sampler reported, in
            nats; 0 for tokens that were not sampled, NaN if the engine reported none.
        images: The images of the segment, in order, as often as they are shown.
    """

    prompt_ids: list[int]
    response_ids: list[int]
    response_mask: list[int]
    logprobs: list[float]
    images: list[Image]


def cut(segment: Segment, images: Mapping[str, Image]) -> PromptCompletion:
    """Split a segment before its first sampled token.

    If no token was sampled (an engine returned an empty reply), the response is the last token of
    the prompt, masked, because trainers do not accept an empty response.

    Args:
        segment: A segment with at least one sampled token.
        images: The images of the segment, by hash.

    Raises:
        ConfigurationError: If the segment contains a video, which no bridge exports yet.
    """
    if segment.videos:
        raise ConfigurationError(
            "The segment contains video tokens, which a bridge cannot export (VideoSpan: "
            f"{len(segment.videos)}). Show the frames as images (video='frames'), or train with "
            "visenv's own trainer."
        )
    sampled = np.flatnonzero(segment.loss_mask)
    start = int(sampled[0]) if len(sampled) else len(segment) - 1
    return PromptCompletion(
        segment.token_ids[:start].tolist(),
        segment.token_ids[start:].tolist(),
        segment.loss_mask[start:].astype(int).tolist(),
        segment.logprobs[start:].tolist(),
        [images[span.sha256] for span in segment.images],
    )
