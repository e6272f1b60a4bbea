"""Writes an episode as one JSON object, with images as hashes."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visenv.records import event_to_json, truth_to_json
from visenv.types import Episode, Failure, Image, Message, Part, Segment, Turn, Video

from .fields import ARRAYS, FORMAT, MAPPINGS, PLAIN, SETTINGS


def episode_to_json(episode: Episode) -> dict[str, Any]:
    """Return the episode as one JSON object, with images as hashes (`save_images`).

    The wall times of turns are omitted, so that equal episodes give equal objects: the output of a
    curation step does not depend on its duration. Files of episodes contain them
    (`write_episodes`).
    """
    return {
        "format": FORMAT,
        **{name: getattr(episode, name) for name in PLAIN},
        **{name: dict(getattr(episode, name)) for name in MAPPINGS},
        "term_weights": dict(episode.term_weights),
        "world_version": episode.world_version,
        "failure": _failure_record(episode.failure),
        "answers": episode.answers,
        "ground_truth": truth_to_json(episode.ground_truth),
        "turns": [_turn_record(turn) for turn in episode.turns],
        "closing": [_message_record(message) for message in episode.closing],
        "segments": [_segment_record(segment) for segment in episode.segments],
    }


def _failure_record(failure: Failure | None) -> tuple[str, ...] | None:
    """Return the fields of a failure; files of earlier versions lack the last one."""
    if failure is None or failure.bug:
        return failure
    return failure[:4]


def _turn_record(turn: Turn) -> dict[str, Any]:
    return {
        "messages": [_message_record(message) for message in turn.messages],
        "text": turn.text,
        "reward": turn.reward,
        "events": [event_to_json(event) for event in turn.events],
        "finish_reason": turn.finish_reason,
        "request": turn.request._asdict(),
        "hidden_frames": [_video_record(video) for video in turn.hidden_frames],
        "advantage": turn.advantage,
    }


def _message_record(message: Message) -> dict[str, Any]:
    return {"role": message.role, "parts": [_part_record(part) for part in message.parts]}


def _part_record(part: Part) -> dict[str, Any]:
    if isinstance(part, str):
        return {"text": part}
    return {"image": part.sha256} if isinstance(part, Image) else {"video": _video_record(part)}


def _video_record(video: Video) -> dict[str, Any]:
    return {"frames": [frame.sha256 for frame in video.frames], "times": video.times}


def _segment_record(segment: Segment) -> dict[str, Any]:
    return {
        **{name: _encode(getattr(segment, name), dtype) for name, dtype in ARRAYS.items()},
        **{name: getattr(segment, name) for name in SETTINGS},
        "placeholder_ids": segment.placeholder_ids,
        "turns": segment.turns,
        "images": segment.images,
        "videos": segment.videos,
    }


def _encode(array: NDArray[Any], dtype: str) -> str:
    """Return the bytes of the array, little-endian, as Base64 text."""
    return base64.b64encode(np.ascontiguousarray(array, dtype).tobytes()).decode("ascii")
