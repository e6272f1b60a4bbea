"""Converts messages to TRL's format for logs, reward functions and prompts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import PIL.Image

from visenv.types import Episode, Image, Message


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
