"""Reads the JSON object of an episode, and checks all invariants again."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path
from types import UnionType
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from visenv.errors import DataError, EpisodeError, ImageError, VisenvError
from visenv.files import file_inside, image_name
from visenv.records import event_from_json, truth_from_json
from visenv.types import (
    Episode,
    Failure,
    Image,
    ImageSpan,
    Message,
    Part,
    PlaceholderRun,
    Role,
    Segment,
    Turn,
    TurnRequest,
    TurnSpan,
    TurnTaken,
    Video,
    VideoSpan,
)
from visenv.types.episode import Status

from .record import (
    ADDED,
    ARRAYS,
    LARGEST,
    NUMBER_MAPPINGS,
    PLAIN,
    READ,
    SETTINGS,
    TEXT_MAPPINGS,
    TURN_FACTS,
    TURN_TYPES,
    TYPES,
)

_TURN_REQUEST = TypeAdapter(TurnRequest)

BROKEN = (
    *(ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError),
    VisenvError,
)
"""The errors that reading a line can raise, whatever the line contains."""


class ImageFolder(NamedTuple):
    """Holds the images of a folder: one object for all episodes, whose pixels are checked once."""

    folder: Path
    known: MutableMapping[str, Image]
    check_pixels: bool = True

    def named(self, sha256: str) -> Image:
        """Return the image with this hash.

        Raises:
            DataError: If `sha256` is not a SHA-256, or the file is a link to another folder.
            ImageError: If the image is missing or has other pixels.
        """
        image = self.known.get(sha256)
        if image is None:
            path = file_inside(self.folder, image_name(sha256))
            image = Image.from_file(path, None if self.check_pixels else sha256)
            if image.sha256 != sha256:
                raise ImageError(f"the pixels of {image.name} are not those it was saved with.")
            self.known[sha256] = image
        return image


def episode_from_json(record: Mapping[str, Any], images: Path) -> Episode:
    """Return the episode that `episode_to_json` wrote, and check every invariant again.

    Args:
        record: The JSON object.
        images: The folder of its images.

    Raises:
        DataError: If the record is not a valid episode, or an image is missing.
    """
    try:
        return decode(record, ImageFolder(images, {}))
    except BROKEN as error:
        raise DataError(f"no episode: {type(error).__name__}: {error}") from error


def decode(record: Mapping[str, Any], images: ImageFolder) -> Episode:
    """Return the episode of a JSON object; an object that is no episode raises one of `BROKEN`."""
    if record["format"] not in READ:
        raise EpisodeError(
            f"it has the format {record['format']!r}, and this version of visenv reads "
            f"the formats {', '.join(map(str, READ))}: play the episode again, or read it with the "
            "version that wrote it."
        )
    _check_types(record, TYPES)
    if record["status"] not in get_args(Status):
        raise ValueError(f"there is no status {record['status']!r:.80}")
    for name in ("group", "member", "index"):
        if abs(record[name] or 0) > LARGEST:
            raise ValueError(f"{name} does not fit into 64 bits")
    for texts in (record["answers"], *(record[name].values() for name in TEXT_MAPPINGS)):
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("an answer, a note or a hash is not a string")

    def messages(records: Iterable[Mapping[str, Any]]) -> tuple[Message, ...]:
        return tuple([_message(each, images) for each in records])

    for turn in record["turns"]:
        _check_types(turn, TURN_TYPES)
    turns = [
        Turn(
            messages(turn["messages"]),
            turn["text"],
            float(turn["reward"]),
            tuple([_event(event, turn["text"]) for event in turn["events"]]),
            turn["finish_reason"],
            _request(turn["request"]),
            tuple([_video(video, images) for video in turn["hidden_frames"]]),
            **{name: _number(name, _added(turn, name, object)) for name in TURN_FACTS},
        )
        for turn in record["turns"]
    ]
    numbers: dict[str, Any] = {name: _numbers(name, record[name]) for name in NUMBER_MAPPINGS}
    failure = record["failure"]
    return Episode(
        **{name: record[name] for name in (*PLAIN, *TEXT_MAPPINGS)},
        **numbers,
        failure=None if failure is None else Failure(*map(_word, failure)),
        answers=tuple(record["answers"]),
        ground_truth=truth_from_json(record["ground_truth"]),
        turns=tuple(turns),
        closing=messages(record["closing"]),
        segments=tuple([_segment(each, record["format"]) for each in record["segments"]]),
        term_weights=_numbers("term_weights", _added(record, "term_weights", dict)),
        world_version=_added(record, "world_version", int),
    )


def _event(record: Mapping[str, Any], text: str) -> Any:
    """Return an event of a turn with this text, which a `TurnTaken` need not repeat."""
    if record["event"] == TurnTaken.__name__:
        record = {"text": text, **record}
        thought = record["thought"]
        if isinstance(thought, list):
            start, end = map(_whole, thought)
            if not 0 <= start <= end <= len(record["text"]):
                raise ValueError(f"a thought has the places {thought}")
            record["thought"] = record["text"][start:end]
    return event_from_json(record)


def _request(record: Mapping[str, Any]) -> TurnRequest:
    fields = {**record, "stop": tuple(record["stop"])}
    return _TURN_REQUEST.validate_python(fields, strict=True)


def _word(value: Any) -> Any:
    if not isinstance(value, str):
        raise TypeError(f"failure holds {type(value).__name__}")
    return value


def _added(record: Mapping[str, Any], name: str, wanted: type | UnionType) -> Any:
    value = record.get(name, ADDED[name])
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


def _check_types(record: Mapping[str, Any], types: Mapping[str, type | UnionType]) -> None:
    for name, wanted in types.items():
        if not isinstance(record[name], wanted):
            raise TypeError(f"{name} is {type(record[name]).__name__}")


def _message(record: Mapping[str, Any], images: ImageFolder) -> Message:
    if record["role"] not in get_args(Role):
        raise ValueError(f"there is no role {record['role']!r:.80}")
    return Message(record["role"], tuple([_part(part, images) for part in record["parts"]]))


def _part(record: Mapping[str, Any], images: ImageFolder) -> Part:
    if "video" in record:
        return _video(record["video"], images)
    _check_types(record, {"text" if "text" in record else "image": str})
    return record["text"] if "text" in record else images.named(record["image"])


def _video(record: Mapping[str, Any], images: ImageFolder) -> Video:
    frames = [images.named(sha256) for sha256 in record["frames"]]
    return Video(tuple(frames), tuple(map(float, record["times"])))


def _segment(record: Mapping[str, Any], format_: int) -> Segment:
    _check_types(record, SETTINGS)
    arrays: dict[str, Any] = {name: _decode(record[name], dtype) for name, dtype in ARRAYS.items()}
    read = _image_of_format_2 if format_ == 2 else _image
    videos = [
        VideoSpan(offset, length, sha256, tuple(grid), placeholder, seconds, first)
        for offset, length, sha256, grid, placeholder, seconds, first in record["videos"]
    ]
    return Segment(
        **arrays,
        processor=record["processor"],
        temperature=float(record["temperature"]),
        placeholder_ids=tuple(record["placeholder_ids"]),
        turns=tuple([TurnSpan(*span) for span in record["turns"]]),
        images=tuple([read(*span) for span in record["images"]]),
        videos=tuple(videos),
    )


def _image(sha256: str, runs: Any, placeholder: int, patches: int) -> ImageSpan:
    placed = [PlaceholderRun(*map(_whole, run)) for run in runs]
    return ImageSpan(sha256, tuple(placed), _whole(placeholder), _whole(patches))


def _image_of_format_2(
    offset: int, length: int, sha256: str, grid: Any, placeholder: int
) -> ImageSpan:
    return _image(sha256, [(offset, length)], placeholder, math.prod(grid))


def _whole(value: Any) -> int:
    if not isinstance(value, int) or abs(value) > LARGEST:
        raise ValueError(f"expected a whole number of 64 bits, got {value!r:.80}")
    return value


def _decode(text: str, dtype: str) -> NDArray[Any]:
    array = np.frombuffer(base64.b64decode(text, validate=True), dtype)
    return array.astype(array.dtype.newbyteorder("="))
