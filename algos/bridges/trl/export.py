"""Our episodes as rows of TRL."""

from __future__ import annotations

from typing import Any

from visenv.errors import ConfigurationError
from visenv.types import Episode

from ..stream import cut


def to_trl(episode: Episode) -> dict[str, Any]:
    """Return an episode as one row of what TRL's ``rollout_func`` returns, with its images.

    Frames that the policy did not see are not exported.

    Args:
        episode: Played by a policy that deals in tokens, and not aborted.

    Returns:
        ``prompt_ids``, ``completion_ids``, ``logprobs`` (NaN where the engine gave none) and
        ``env_mask`` (1 for what the policy sampled), lists of one length but the first;
        ``images``, one `Image` for each run of placeholders of both together; ``env_reward``.

    Raises:
        ConfigurationError: If the episode was aborted, has no tokens, or replaced its context: a
            row of TRL is one stream of tokens. Also if it holds a video.
    """
    if episode.status == "aborted":
        raise ConfigurationError(f"An aborted episode is no training data: {episode.failure}")
    if len(episode.segments) != 1:
        raise ConfigurationError(
            f"A row of TRL is one stream of tokens; this episode of {episode.env_id} has "
            f"{len(episode.segments)}. Environments that replace their context are trained by "
            "visenv's own trainer or by verl's."
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
    """Return a row without effect on training, in place of an aborted episode.

    Args:
        filler: Any token that is not an image's.
    """
    return {
        "prompt_ids": [filler],
        "completion_ids": [filler],
        "logprobs": [0.0],
        "env_mask": [0],
        "images": [],
        "env_reward": None,
    }
