"""Writes an episode as one JSON object, with images as hashes.

The constants define the fields of a saved episode, and their types.
"""

from __future__ import annotations

import base64
from types import UnionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visenv.records import event_to_json, truth_to_json
from visenv.types import (
    Episode,
    Event,
    Failure,
    Image,
    Message,
    Part,
    Segment,
    Turn,
    TurnTaken,
    Video,
)

FORMAT = 4
"""The format number in every line. Format 1 had neither the environment's spec nor typed failures.

Format 2 had one run of placeholders and a grid of patches for each image. The first files of format
2 lack the fields of `ADDED`, which then have their default values. Up to format 3, each `TurnTaken`
event repeated the text of its turn.
"""

READ = (2, 3, FORMAT)
"""The formats that are read."""

WORDS = ("env_id", "sample_id", "kind", "status", "reason", "question", "env_spec")
NUMBERS = ("seed", "group", "member")
PLAIN = (*WORDS[:3], *NUMBERS, *WORDS[3:], "index")
TEXT_MAPPINGS = ("term_notes", "media")
NUMBER_MAPPINGS = ("terms", "metrics")
MAPPINGS = (*TEXT_MAPPINGS, *NUMBER_MAPPINGS)
LARGEST = 2**63 - 1
"""Maximum of `group`, `member` and `index`: other formats store them in 64 bits."""
TYPES: dict[str, type | UnionType] = {
    **dict.fromkeys(WORDS, str),
    **dict.fromkeys(NUMBERS, int),
    **dict.fromkeys(MAPPINGS, dict),
    "index": int | None,
    "failure": list | None,
    "answers": list,
}
TURN_TYPES = {"text": str, "reward": float | int, "finish_reason": str}
TIMES = ("sampling_seconds", "env_seconds")
TURN_FACTS = (*TIMES, "advantage")
ADDED: dict[str, Any] = {"term_weights": {}, "world_version": 1, **dict.fromkeys(TURN_FACTS)}
"""Fields of episodes and turns that the first files of format 2 lack, with their default values."""
ARRAYS = {"token_ids": "<i4", "loss_mask": "|b1", "logprobs": "<f4", "policy_version": "<i4"}
SETTINGS = {"temperature": float | int, "processor": str}


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
        "events": [_event_record(event, turn.text) for event in turn.events],
        "finish_reason": turn.finish_reason,
        "request": turn.request._asdict(),
        "hidden_frames": [_video_record(video) for video in turn.hidden_frames],
        "advantage": turn.advantage,
    }


def _event_record(event: Event, text: str) -> dict[str, Any]:
    """Return an event as JSON; a `TurnTaken` does not repeat the text of its turn.

    Its ``text`` is omitted if it is `text`, the text of the turn. A thought that is a part of its
    text is written as ``[start, end]``, the places of this part in characters.
    """
    record = event_to_json(event)
    if isinstance(event, TurnTaken):
        if event.thought is not None and event.thought in event.text:
            start = event.text.index(event.thought)
            record["thought"] = [start, start + len(event.thought)]
        if event.text == text:
            del record["text"]
    return record


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
