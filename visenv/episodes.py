"""Reads and writes episodes: one JSON object per line, exact arrays, images stored once.

::

    episodes.jsonl
    images/<sha256>.png     named by the hash of the pixels, lossless; frames of videos included

An episode that is read equals the written episode in every field, including NaN log-probabilities,
and all invariants of `Episode` and `Segment` are checked again.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from pathlib import Path
from types import UnionType
from typing import Any, NamedTuple, get_args
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from visenv.errors import DataError, EpisodeError, ImageError, VisenvError
from visenv.files import replacing
from visenv.records import event_from_json, event_to_json, truth_from_json, truth_to_json
from visenv.types import (
    Episode,
    Failure,
    Image,
    ImageSpan,
    Message,
    Part,
    Role,
    Segment,
    Turn,
    TurnRequest,
    TurnSpan,
    Video,
    VideoSpan,
)

FORMAT = 2
"""The format number in every line. Format 1 had neither the environment's spec nor typed failures.

The first files of format 2 lack the fields of `_ADDED`, which are then empty or None.
"""

_WORDS = ("env_id", "sample_id", "kind", "status", "reason", "question", "env_spec")
_NUMBERS = ("seed", "group", "member")
_PLAIN = (*_WORDS[:3], *_NUMBERS, *_WORDS[3:], "index")
_TEXT_MAPPINGS = ("term_notes", "media")
_NUMBER_MAPPINGS = ("terms", "metrics")
_MAPPINGS = (*_TEXT_MAPPINGS, *_NUMBER_MAPPINGS)
_LARGEST = 2**63 - 1
"""Maximum of `group`, `member` and `index`: other formats store them in 64 bits."""
_TYPES: dict[str, type | UnionType] = {
    **dict.fromkeys(_WORDS, str),
    **dict.fromkeys(_NUMBERS, int),
    **dict.fromkeys(_MAPPINGS, dict),
    "index": int | None,
    "failure": list | None,
    "answers": list,
}
_TURN_TYPES = {"text": str, "reward": float | int, "finish_reason": str}
_TIMES = ("sampling_seconds", "env_seconds")
_TURN_FACTS = (*_TIMES, "advantage")
_ADDED: dict[str, Any] = {"term_weights": {}, **dict.fromkeys(_TURN_FACTS)}
"""Fields of episodes and turns that the first files of format 2 lack, with their default values."""
_ARRAYS = {"token_ids": "<i4", "loss_mask": "|b1", "logprobs": "<f4", "policy_version": "<i4"}
_SETTINGS = {"merge": int, "temperature": float | int, "processor": str}
_BROKEN = (
    *(ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError),
    VisenvError,
)
"""The errors that reading a line can raise, whatever the line contains."""


def write_episodes(path: str | Path, episodes: Iterable[Episode]) -> None:
    """Write a file of episodes and the images that do not exist yet; replace an old file.

    The file appears under its name only when it is complete.

    Args:
        path: The file. Its folder is created, and images are written to ``images/`` in it.
        episodes: The episodes.

    Raises:
        EpisodeError: If a field that must be JSON-like holds something else.
    """
    path = Path(path)
    images = path.parent / "images"
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        replacing(path) as partial,
        # Half of a surrogate pair is written and read back as it is, because Python encodes each
        # code point separately.
        partial.open("w", encoding="utf-8", errors="surrogatepass", newline="\n") as file,
    ):
        for episode in episodes:
            file.write(_line(episode) + "\n")
            save_images(images, _all_images(episode))


def append_episode(path: str | Path, episode: Episode) -> None:
    """Append an episode to a file, which is created if it does not exist.

    Images are written before the line that refers to them. A process that is killed while it writes
    leaves at most an incomplete last line; if the disk is full, the file remains unchanged.

    Args:
        path: The file. Its folder is created, and images are written to ``images/`` in it.
        episode: The episode to add.

    Raises:
        EpisodeError: If a field that must be JSON-like holds something else.
        OSError: If the disk is full.
    """
    path = Path(path)
    line = (_line(episode) + "\n").encode("utf-8", "surrogatepass")
    save_images(path.parent / "images", _all_images(episode))
    with path.open("ab", buffering=0) as file:
        start = file.tell()
        try:
            written = file.write(line)
            while written < len(line):
                written += file.write(line[written:])
        except OSError:
            file.truncate(start)
            raise


def read_episodes(
    path: str | Path, *, messages: bool = True, check_pixels: bool = True
) -> Iterator[Episode]:
    """Read the episodes of a file, one at a time.

    Args:
        path: The file.
        messages: Whether to read messages, hidden frames and segments as well. Without them no
            image is opened, and episodes are as `Episode.without_messages` returns them.
        check_pixels: Whether the pixels of each image are compared with the hash in the episode. If
            False, no image is opened: a changed file is not noticed, and a missing or broken file
            raises `ImageError` when its pixels or size are read.

    Raises:
        DataError: If a line is broken or violates an invariant, or with `check_pixels` if one of
            its images is missing; the message contains the file and the line number.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"There is no file of episodes {path}.")
    # Episodes share an image while one of them is in use; so the memory use remains small if the
    # caller keeps no episode.
    images = _Images(path.parent / "images", WeakValueDictionary(), check_pixels)
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                record = json.loads(line.decode("utf-8", "surrogatepass"))
                if not messages:
                    _drop_messages(record)
                episode = _episode(record, images)
            except _BROKEN as error:
                reason = f"{type(error).__name__}: {error}"
                raise DataError(f"{path}, line {number} holds no episode: {reason}") from error
            yield episode


def episode_to_json(episode: Episode) -> dict[str, Any]:
    """Return the episode as one JSON object, with images as hashes (`save_images`).

    The wall times of turns are omitted, so that equal episodes give equal objects: the output of a
    curation step does not depend on its duration. Files of episodes contain them
    (`write_episodes`).
    """
    return {
        "format": FORMAT,
        **{name: getattr(episode, name) for name in _PLAIN},
        **{name: dict(getattr(episode, name)) for name in _MAPPINGS},
        "term_weights": dict(episode.term_weights),
        "failure": episode.failure,
        "answers": episode.answers,
        "ground_truth": truth_to_json(episode.ground_truth),
        "turns": [_turn_record(turn) for turn in episode.turns],
        "closing": [_message_record(message) for message in episode.closing],
        "segments": [_segment_record(segment) for segment in episode.segments],
    }


def episode_from_json(record: Mapping[str, Any], images: Path) -> Episode:
    """Return the episode that `episode_to_json` wrote, and check every invariant again.

    Args:
        record: The JSON object.
        images: The folder of its images.

    Raises:
        DataError: If the record is not a valid episode, or an image is missing.
    """
    try:
        return _episode(record, _Images(images, {}))
    except _BROKEN as error:
        raise DataError(f"no episode: {type(error).__name__}: {error}") from error


def save_images(folder: Path, images: Iterable[Image]) -> list[Path]:
    """Write the missing images to ``folder/<sha256>.png``, lossless, and return all paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for image in images:
        path = folder / f"{image.sha256}.png"
        _write_image(path, image)
        paths.append(path)
    return paths


# ------------------------------------------------------------------------------------- writing


def _line(episode: Episode) -> str:
    record = episode_to_json(episode)
    for turn, saved in zip(episode.turns, record["turns"], strict=True):
        saved |= {name: getattr(turn, name) for name in _TIMES}
    try:
        return json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    except TypeError as error:
        name = f"{episode.env_id} {episode.sample_id} (seed {episode.seed})"
        raise EpisodeError(f"The episode {name} cannot be written as JSON: {error}.") from error


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


def _all_images(episode: Episode) -> Iterator[Image]:
    yield from episode.images
    yield from episode.hidden_frames


def _segment_record(segment: Segment) -> dict[str, Any]:
    return {
        **{name: _encode(getattr(segment, name), dtype) for name, dtype in _ARRAYS.items()},
        **{name: getattr(segment, name) for name in _SETTINGS},
        "placeholder_ids": segment.placeholder_ids,
        "turns": segment.turns,
        "images": segment.images,
        "videos": segment.videos,
    }


def _encode(array: NDArray[Any], dtype: str) -> str:
    """Return the bytes of the array, little-endian, as Base64 text."""
    return base64.b64encode(np.ascontiguousarray(array, dtype).tobytes()).decode("ascii")


def _write_image(path: Path, image: Image) -> None:
    if path.exists():
        return
    with replacing(path) as partial:
        partial.write_bytes(image.png())


# ------------------------------------------------------------------------------------- reading


class _Images(NamedTuple):
    """Holds the images of a folder: one object for all episodes, whose pixels are checked once."""

    folder: Path
    known: MutableMapping[str, Image]
    check_pixels: bool = True

    def named(self, sha256: str) -> Image:
        image = self.known.get(sha256)
        if image is None:
            path = self.folder / f"{Path(sha256).name}.png"
            image = Image.from_file(path, None if self.check_pixels else sha256)
            if image.sha256 != sha256:
                raise ImageError(f"the pixels of {image.name} are not those it was saved with.")
            self.known[sha256] = image
        return image


def _episode(record: Mapping[str, Any], images: _Images) -> Episode:
    if record["format"] != FORMAT:
        raise EpisodeError(
            f"it has the format {record['format']!r}, and this version of visenv reads {FORMAT}: "
            "play the episode again, or read it with the version that wrote it."
        )
    _check_types(record, _TYPES)
    for name in ("group", "member", "index"):
        if abs(record[name] or 0) > _LARGEST:
            raise ValueError(f"{name} does not fit into 64 bits")
    for texts in (record["answers"], *(record[name].values() for name in _TEXT_MAPPINGS)):
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("an answer, a note or a hash is not a string")

    def messages(records: Iterable[Mapping[str, Any]]) -> tuple[Message, ...]:
        return tuple([_message(each, images) for each in records])

    for turn in record["turns"]:
        _check_types(turn, _TURN_TYPES)
    turns = [
        Turn(
            messages(turn["messages"]),
            turn["text"],
            float(turn["reward"]),
            tuple([event_from_json(event) for event in turn["events"]]),
            turn["finish_reason"],
            TurnRequest(**{**turn["request"], "stop": tuple(turn["request"]["stop"])}),
            tuple([_video(video, images) for video in turn["hidden_frames"]]),
            **{name: _number(name, _added(turn, name, object)) for name in _TURN_FACTS},
        )
        for turn in record["turns"]
    ]
    numbers: dict[str, Any] = {name: _numbers(name, record[name]) for name in _NUMBER_MAPPINGS}
    failure = record["failure"]
    return Episode(
        **{name: record[name] for name in (*_PLAIN, *_TEXT_MAPPINGS)},
        **numbers,
        failure=None if failure is None else Failure(*failure),
        answers=tuple(record["answers"]),
        ground_truth=truth_from_json(record["ground_truth"]),
        turns=tuple(turns),
        closing=messages(record["closing"]),
        segments=tuple([_segment(each) for each in record["segments"]]),
        term_weights=_numbers("term_weights", _added(record, "term_weights", dict)),
    )


def _added(record: Mapping[str, Any], name: str, wanted: type | UnionType) -> Any:
    value = record.get(name, _ADDED[name])
    if not isinstance(value, wanted):
        raise TypeError(f"{name} is {type(value).__name__}")
    return value


def _numbers(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _number(name, value) for key, value in values.items()}


def _number(name: str, value: Any) -> float | None:
    """Return a number as a float, including NaN and infinity, so that sums are floats too."""
    if not isinstance(value, float | int | None):
        raise TypeError(f"{name} holds {type(value).__name__}")
    return None if value is None else float(value)


def _drop_messages(record: dict[str, Any]) -> None:
    for turn in record["turns"]:
        turn.update(messages=[], hidden_frames=[])
    record.update(closing=[], segments=[])


def _check_types(record: Mapping[str, Any], types: Mapping[str, type | UnionType]) -> None:
    for name, wanted in types.items():
        if not isinstance(record[name], wanted):
            raise TypeError(f"{name} is {type(record[name]).__name__}")


def _message(record: Mapping[str, Any], images: _Images) -> Message:
    if record["role"] not in get_args(Role):
        raise ValueError(f"there is no role {record['role']!r:.80}")
    return Message(record["role"], tuple([_part(part, images) for part in record["parts"]]))


def _part(record: Mapping[str, Any], images: _Images) -> Part:
    if "video" in record:
        return _video(record["video"], images)
    _check_types(record, {"text" if "text" in record else "image": str})
    return record["text"] if "text" in record else images.named(record["image"])


def _video(record: Mapping[str, Any], images: _Images) -> Video:
    frames = [images.named(sha256) for sha256 in record["frames"]]
    return Video(tuple(frames), tuple(map(float, record["times"])))


def _segment(record: Mapping[str, Any]) -> Segment:
    _check_types(record, _SETTINGS)
    arrays: dict[str, Any] = {name: _decode(record[name], dtype) for name, dtype in _ARRAYS.items()}
    images = [
        ImageSpan(offset, length, sha256, tuple(grid), placeholder)
        for offset, length, sha256, grid, placeholder in record["images"]
    ]
    videos = [
        VideoSpan(offset, length, sha256, tuple(grid), placeholder, seconds, first)
        for offset, length, sha256, grid, placeholder, seconds, first in record["videos"]
    ]
    return Segment(
        **arrays,
        **{name: record[name] for name in ("merge", "processor")},
        temperature=float(record["temperature"]),
        placeholder_ids=tuple(record["placeholder_ids"]),
        turns=tuple([TurnSpan(*span) for span in record["turns"]]),
        images=tuple(images),
        videos=tuple(videos),
    )


def _decode(text: str, dtype: str) -> NDArray[Any]:
    array = np.frombuffer(base64.b64decode(text, validate=True), dtype)
    return array.astype(array.dtype.newbyteorder("="))
