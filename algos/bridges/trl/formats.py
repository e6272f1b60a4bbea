"""Converts data to TRL's formats: rows of samples, messages, and rows of episodes.

In the data set for TRL, each row determines the sample of a group. Messages are converted for logs,
reward functions and prompts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import PIL.Image
from datasets import Dataset

from visenv.errors import ConfigurationError
from visenv.types import Episode, Image, Message

from ..stream import cut


def rows(
    seeds: Iterable[int],
    indices: Iterable[int] | None = None,
    environment: str | None = None,
) -> Dataset:
    """Return one row for each group; all members of a group reset their environments to its row.

    Without such a data set, each member would draw another sample, and the group would compare
    answers to different questions.

    Args:
        seeds: The seeds, one for each row.
        indices: The rows of the finite source of the environment, one for each seed; without them,
            the seed selects the sample.
        environment: The key of the environment, if TRL uses several environments by name.

    Returns:
        Rows with ``prompt`` (an empty user message, because the environment adds the prompt),
        ``seed``, and ``index`` and ``environment`` if they were given.
    """
    columns: dict[str, list[Any]] = {"seed": [int(seed) for seed in seeds]}
    count = len(columns["seed"])
    columns["prompt"] = [[{"role": "user", "content": ""}]] * count
    if indices is not None:
        columns["index"] = [int(index) for index in indices]
    if environment is not None:
        columns["environment"] = [environment] * count
    return Dataset.from_dict(columns)


def opening(episode: Episode) -> list[dict[str, Any]]:
    """Return the messages before the first turn, with a marker for each image."""
    first = episode.turns[0].messages if episode.turns else (Message("user", ("",)),)
    return _plain(first)


def conversation(episode: Episode) -> list[dict[str, Any]]:
    """Return the turns of the policy and the messages between them, with image markers."""
    messages: list[dict[str, Any]] = []
    for number, turn in enumerate(episode.turns):
        messages += _plain(turn.messages) if number else []
        messages.append({"role": "assistant", "content": turn.text})
    return messages or [{"role": "assistant", "content": ""}]


def to_pil(image: Image) -> PIL.Image.Image:
    """Return the image in the format of TRL's processors."""
    return PIL.Image.fromarray(image.pixels)


def _plain(messages: Iterable[Message]) -> list[dict[str, Any]]:
    return [{"role": message.role, "content": message.plain()} for message in messages]


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
