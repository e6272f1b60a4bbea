"""Reads and writes episodes: one JSON object per line, exact arrays, images stored once.

::

    episodes.jsonl
    images/<sha256>.png     named by the hash of the pixels, lossless; frames of videos included

An episode that is read equals the written episode in every field, including NaN log-probabilities,
and all invariants of `Episode` and `Segment` are checked again.
"""

from __future__ import annotations

from .decode import episode_from_json
from .files import append_episode, read_episode_lines, read_episodes, save_images, write_episodes
from .record import FORMAT, episode_to_json

__all__ = [
    "FORMAT",
    "append_episode",
    "episode_from_json",
    "episode_to_json",
    "read_episode_lines",
    "read_episodes",
    "save_images",
    "write_episodes",
]
