"""Our episodes as verl's `AgentLoopOutput`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import PIL.Image

from visenv.types import Episode, Image, Segment

from ..stream import cut


def to_verl(episode: Episode) -> list[dict[str, Any]]:
    """Return the fields of one ``AgentLoopOutput`` for each segment, without its ``metrics``.

    An aborted episode has none: verl's V1 trainer leaves a rollout without outputs out of its
    group, baseline included. Frames that the policy did not see are not exported.

    Args:
        episode: Played by a policy that deals in tokens.

    Returns:
        ``prompt_ids`` and ``response_ids`` (placeholders expanded), ``response_mask`` (1 where the
        policy sampled), ``response_logprobs`` (None where the engine gave none),
        ``multi_modal_data``, ``reward_score`` (of the whole episode: verl credits every output of a
        rollout with it), ``num_turns`` and ``extra_fields``: the reward of each turn as
        ``turn_scores``, the reward's terms as ``reward_extra_info`` (NaN for one that does not
        apply), and the weights that sampled.

    Raises:
        ConfigurationError: If a segment holds a video.
    """
    if episode.status == "aborted":
        return []
    images = {image.sha256: image for image in episode.images}
    return [_output(episode, segment, images) for segment in episode.segments]


def _output(episode: Episode, segment: Segment, images: dict[str, Image]) -> dict[str, Any]:
    stream = cut(segment, images)
    versions = segment.policy_version[segment.loss_mask].tolist() or [0]
    known = not any(map(math.isnan, stream.logprobs))
    return {
        "prompt_ids": stream.prompt_ids,
        "response_ids": stream.response_ids,
        "response_mask": stream.response_mask,
        "response_logprobs": stream.logprobs if known else None,
        "multi_modal_data": {"images": [to_pil(image) for image in stream.images]},
        "reward_score": episode.reward,
        "num_turns": 2 * len(episode.turns),
        "extra_fields": {
            "turn_scores": [turn.reward for turn in episode.turns],
            "tool_rewards": [],
            "reward_extra_info": _numbers(episode.terms),
            "min_global_steps": min(versions),
            "max_global_steps": max(versions),
        },
    }


def _numbers(terms: Mapping[str, float | None]) -> dict[str, float]:
    """Return the terms with NaN for one that does not apply: verl takes numbers alone."""
    return {name: math.nan if value is None else value for name, value in terms.items()}


def to_pil(image: Image) -> PIL.Image.Image:
    """Return the image as verl's engines and processors take it."""
    return PIL.Image.fromarray(image.pixels)
