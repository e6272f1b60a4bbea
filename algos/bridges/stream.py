"""A segment cut in two, as trainers with a prompt and a response hold it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from visenv.errors import ConfigurationError
from visenv.types import Image, Segment


class PromptCompletion(NamedTuple):
    """Holds one segment, cut before its first sampled token.

    Attributes:
        prompt_ids: What was shown before the policy first spoke, placeholders expanded.
        response_ids: All the rest, later turns of the environment included; never empty.
        response_mask: Of each token in the response: 1 where the policy sampled it, 0 elsewhere.
        logprobs: Of each token in the response: natural log as the sampler reported it; 0 where
            none was sampled, NaN where the engine gave none.
        images: One for each run of placeholders, in order.
    """

    prompt_ids: list[int]
    response_ids: list[int]
    response_mask: list[int]
    logprobs: list[float]
    images: list[Image]


def cut(segment: Segment, images: Mapping[str, Image]) -> PromptCompletion:
    """Cut a segment before its first sampled token.

    Where none was sampled (an engine gave an empty reply) the response is the last token shown,
    masked: trainers cannot hold an empty one.

    Args:
        segment: A token stream.
        images: Every image it names, by hash.

    Raises:
        ConfigurationError: If the segment holds a video, which no bridge exports yet.
    """
    if segment.videos:
        raise ConfigurationError(
            "The segment shows videos as video tokens, which a bridge cannot export (VideoSpan: "
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
