"""Converts data to verl's formats: rows of samples, and episodes as `AgentLoopOutput`.

The rows of verl's data set determine the samples of the groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import PIL.Image

from visenv.types import Episode, Image, Segment

from ..stream import cut


def rows(
    seeds: Iterable[int], indices: Iterable[int] | None = None, agent: str = "visenv"
) -> list[dict[str, Any]]:
    """Return one row for each group.

    ::

        datasets.Dataset.from_list(rows(range(10_000))).to_parquet("train.parquet")

    Args:
        seeds: The seeds, one for each row.
        indices: The rows of the finite source of the environment, one for each seed; without them,
            the seed selects the sample.
        agent: The name of the agent loop in the file of verl's ``agent_loop_config_path``, which
            also names the environment.

    Returns:
        Rows with ``prompt`` (a placeholder, because the environment provides the prompt),
        ``data_source``, ``agent_name`` and ``extra_info`` (``index``, ``seed`` and, if given,
        ``row``).
    """
    places = [{"seed": int(seed)} for seed in seeds]
    if indices is not None:
        places = [place | {"row": int(row)} for place, row in zip(places, indices, strict=True)]
    return [
        {
            "prompt": [{"role": "user", "content": f"Seed {place['seed']}."}],
            "data_source": agent,
            "agent_name": agent,
            "extra_info": {"index": number} | place,
        }
        for number, place in enumerate(places)
    ]


def to_verl(episode: Episode) -> list[dict[str, Any]]:
    """Return the fields of one ``AgentLoopOutput`` for each segment, without its ``metrics``.

    The list is empty for an aborted episode, because verl's V1 trainer leaves a rollout without
    outputs out of its group and baseline. Frames that the policy did not see are not exported.

    Args:
        episode: An episode with segments.

    Returns:
        ``prompt_ids`` and ``response_ids`` (with expanded placeholders), ``response_mask`` (1 for
        sampled tokens), ``response_logprobs`` (None if the engine reported none),
        ``multi_modal_data``, ``reward_score`` (of the whole episode, because verl assigns it to
        every output of a rollout), ``num_turns`` and ``extra_fields``. The latter contains the
        reward of each turn as ``turn_scores``, the reward terms as ``reward_extra_info`` (NaN for a
        term that does not apply), and the versions of the sampling weights.

    Raises:
        ConfigurationError: If a segment contains a video.
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
    """Return the terms, with NaN for terms that do not apply, because verl needs numbers."""
    return {name: math.nan if value is None else value for name, value in terms.items()}


def to_pil(image: Image) -> PIL.Image.Image:
    """Return the image in the format of verl's engines and processors."""
    return PIL.Image.fromarray(image.pixels)
