"""Converts episodes to rows of TRL."""

from __future__ import annotations

from typing import Any

from visenv.errors import ConfigurationError
from visenv.types import Episode

from ..stream import cut


def to_trl(episode: Episode) -> dict[str, Any]:
    """Return an episode as one row of the output of TRL's ``rollout_func``, with its images.

    Frames that the policy did not see are not exported.

    Args:
        episode: An episode with segments that was not aborted.

    Returns:
        ``prompt_ids``; ``completion_ids``, ``logprobs`` (NaN if the engine reported none) and
        ``env_mask`` (1 for sampled tokens), which have the same length; ``images``, an `Image` for
        each time that one is shown in prompt and completion; ``env_reward``.

    Raises:
        ConfigurationError: If the episode was aborted, has no tokens, contains a video, or has
            several segments, because a row of TRL is one token sequence.
    """
    if episode.status == "aborted":
        raise ConfigurationError(f"An aborted episode is not training data: {episode.failure}")
    if len(episode.segments) != 1:
        raise ConfigurationError(
            f"A row of TRL is one token sequence; this episode of {episode.env_id} has "
            f"{len(episode.segments)}. Environments that replace their context can be trained by "
            "visenv's own trainer or by verl."
        )
    stream = cut(episode.segments[0], {image.sha256: image for image in episode.images})
    return {
        "prompt_ids": stream.prompt_ids,
        "completion_ids": stream.response_ids,
        "logprobs": stream.logprobs,
        "env_mask": stream.response_mask,
        "images": stream.images,
        "env_reward": episode.reward,
    }


def blank(filler: int) -> dict[str, Any]:
    """Return a row without effect on training, which replaces an aborted episode.

    Args:
        filler: The id of any token that is not an image token.
    """
    return {
        "prompt_ids": [filler],
        "completion_ids": [filler],
        "logprobs": [0.0],
        "env_mask": [0],
        "images": [],
        "env_reward": None,
    }
