"""Converts an episode for the page: turns, named images, and boxes drawn on the source image.

`film` collects the frames that the policy did not see, and `turn_tokens` the number and the
log-probabilities of the tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from typing_extensions import TypeIs

from visenv.records import event_to_json, known_fields
from visenv.types import (
    Answered,
    Episode,
    Event,
    Image,
    Message,
    ToolCalled,
    Turn,
    TurnTaken,
    Video,
)
from visenv.viewer.grounding import ImageMark, grounding_marks, lanes
from visenv.viewer.index import outcome

_FURTHEST = 1e9
"""Largest coordinate of a box in pixels. Boxes beyond it are invalid; a data set may contain any
number."""

_ANNOUNCED = re.compile(r"(\w+)(?: </image_name>|:)\n\Z")
"""Matches the name of the following image, as the grammars write it."""

_LARGEST_SHOWN = 1e9
MOST_POINTS = 160
"""Maximum number of log-probabilities of one turn on the page; for more tokens, each run of them
shows its minimum."""


def episode_record(episode: Episode, images: str) -> dict[str, Any]:
    """Return the episode in the format of the page, JSON-like except for NaN and infinity.

    Args:
        episode: The episode.
        images: Folder of its images, relative to the page.
    """
    answers = [event.answer for event in episode.events if isinstance(event, Answered)]
    plain = ("kind", "group", "member", "reward", "status", "index")
    return {
        **{name: getattr(episode, name) for name in plain},
        "id": episode.sample_id,
        "reason": episode.end_reason,
        "seed": str(episode.seed),  # may be too large for an exact JavaScript number
        "env": episode.env_id,
        "outcome": outcome(episode),
        "answer": answers[-1] if answers else None,
        "truth": {
            **known_fields(episode.ground_truth),
            "question": episode.question,
            "answers": list(episode.answers),
        },
        "terms": dict(episode.terms),
        "notes": dict(episode.term_notes),
        "weights": dict(episode.term_weights),
        "metrics": dict(episode.metrics),
        "context": sum(len(segment) for segment in episode.segments),
        "turns": list(_turns(episode, images)),
        "closing": _messages(episode.closing, images),
        "marks": [mark._asdict() for mark in (*marks(episode), *grounding_marks(episode))],
        "lanes": [lane._asdict() for lane in lanes(episode)],
    }


def _turns(episode: Episode, images: str) -> Iterator[dict[str, Any]]:
    tokens = turn_tokens(episode)
    for number, turn in enumerate(episode.turns):
        prefix = turn.request.prefill if turn.text.startswith(turn.request.prefill) else ""
        yield {
            "messages": _messages(turn.messages, images),
            "prefix": prefix,
            "text": turn.text[len(prefix) :],
            "reward": turn.reward,
            "finish": turn.finish_reason,
            "seconds": [turn.sampling_seconds, turn.env_seconds],
            "advantage": turn.advantage,
            **tokens.get(number, {}),
            "film": film(turn, images),
            # The turn itself shows that it was taken.
            "events": [event_to_json(each) for each in turn.events if type(each) is not TurnTaken],
        }


def _messages(messages: Sequence[Message], images: str) -> list[dict[str, Any]]:
    return [{"role": message.role, "parts": list(_parts(message, images))} for message in messages]


def _parts(message: Message, images: str) -> Iterator[dict[str, Any]]:
    """Return texts, images with the name that the preceding text announces, and video frames."""
    before = ""
    for part in message.parts:
        if isinstance(part, str):
            before = part
            yield {"text": part}
        elif isinstance(part, Image):
            named = _ANNOUNCED.search(before)
            yield _picture(part, named[1] if named else "image", images)
        else:
            yield {"video": list(_frames(part, images))}


def _frames(video: Video, images: str) -> Iterator[dict[str, Any]]:
    for number, (frame, time) in enumerate(zip(video.frames, video.times, strict=True), start=1):
        yield {**_picture(frame, f"frame {number}", images), "time": time}


def _picture(image: Image, name: str, images: str) -> dict[str, Any]:
    width, height = image.size
    return {"image": f"{images}/{image.sha256}.png", "name": name, "width": width, "height": height}


def marks(episode: Episode) -> list[ImageMark]:
    """Return the boxes that were cropped from images, and the boxes of the ground truth.

    A call crops one box, ``detail["shown_box"]``, or several, ``detail["boxes"]``, each with a
    ``problem`` if it was rejected. All boxes count in the numbers of the labels; those without four
    numbers cannot be drawn.

    The ground truth is in native pixels. The scale to the shown image is known only after a zoom
    into that image, which contains its box in both units. Otherwise, no box of the ground truth is
    drawn.
    """
    zooms = [
        detail
        for call in _calls(episode.events)
        for detail in _boxes(call.detail)
        if "image" in detail and "shown_box" in detail
    ]
    several = len(zooms) > 1
    drawn = []
    truths: list[ImageMark] = []
    for number, detail in enumerate(zooms, start=1):
        box = _corners(detail["shown_box"])
        if box is None:
            continue
        problem = str(detail.get("problem", ""))
        name = f"zoom {number}" if several else "zoom"
        label = f"{name}, rejected: {problem}" if problem else name
        image, what = str(detail["image"]), "rejected" if problem else "zoom"
        drawn.append(ImageMark(image, what, label, box, _point(detail.get("keypoint"))))
        scale = _scale(box, detail) if detail.get("origin", image) == image else None
        if scale is not None and not truths:
            truths = list(_truths(episode, image, scale))
    return drawn + truths


def _truths(episode: Episode, image: str, scale: tuple[float, float]) -> Iterator[ImageMark]:
    for name, box in known_fields(episode.ground_truth).items():
        if name.endswith("_box") and _box(box):
            scaled = [side * scale[axis % 2] for axis, side in enumerate(box)]
            yield ImageMark(image, "truth", name.replace("_", " "), scaled)


def _calls(events: Sequence[Event]) -> list[ToolCalled]:
    """Return the calls that succeeded, and the failed calls that contain boxes."""
    calls = [event for event in events if isinstance(event, ToolCalled)]
    return [call for call in calls if call.ok or "boxes" in call.detail]


def _boxes(detail: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the details of each box of a call."""
    if "boxes" not in detail:
        return [detail]
    shared = {key: value for key, value in detail.items() if key != "boxes"}
    boxes = detail["boxes"] if isinstance(detail["boxes"], list) else []
    return [{**shared, **each} for each in boxes if isinstance(each, dict)]


def _scale(shown: Sequence[float], detail: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return shown pixels per native pixel, in x and y; None if the native box is unknown."""
    native = detail.get("box", ())
    if not _box(native):
        return None
    across, down = (
        (shown[axis + 2] - shown[axis]) / (native[axis + 2] - native[axis]) for axis in (0, 1)
    )
    return across, down


def _box(value: object) -> bool:
    """Return whether the value is a box with positive area, for ground truths of all data sets."""
    corners = _corners(value)
    return (
        corners is not None
        and corners == list(value)  # type: ignore[call-overload]
        and corners[0] < corners[2]
        and corners[1] < corners[3]
    )


def _corners(value: object) -> list[float] | None:
    """Return the box between two opposite corners; None if the value is not four numbers."""
    if not _are_coordinates(value, 4):
        return None
    x1, y1, x2, y2 = value
    return [min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)]


def _point(value: object) -> list[float] | None:
    """Return the point; None if the value is not two numbers."""
    return list(value) if _are_coordinates(value, 2) else None


def _are_coordinates(value: object, count: int) -> TypeIs[Sequence[float]]:
    if not isinstance(value, list | tuple) or len(value) != count:
        return False
    return all(type(side) in (int, float) and abs(side) <= _FURTHEST for side in value)


def film(turn: Turn, images: str) -> dict[str, Any] | None:
    """Return the hidden frames of a turn and the action at each frame, or None if there are none.

    Args:
        turn: The turn; videos of equal length play side by side.
        images: Folder of the images, relative to the page.

    Returns:
        ``times`` (seconds), ``views`` (for each video, the files of its frames), ``actions`` (the
        action before each frame, as text) and ``goals`` (conditions of the goal by name, with
        whether they hold after the turn).
    """
    if not turn.hidden_frames:
        return None
    longest = max(turn.hidden_frames, key=lambda video: len(video.frames))
    count = len(longest.frames)
    actions, goals = _facts(turn, count)
    return {
        "times": [round(time, 3) for time in longest.times],
        "views": [_files(video, images, count) for video in turn.hidden_frames],
        "actions": actions,
        "goals": goals,
    }


def _files(video: Video, images: str, count: int) -> list[str]:
    """Return the file of each frame; the last frame of a shorter video is repeated."""
    files = [f"{images}/{frame.sha256}.png" for frame in video.frames]
    return files + files[-1:] * (count - len(files))


def _facts(turn: Turn, count: int) -> tuple[list[str], dict[str, bool]]:
    """Return a text for each frame, and the conditions of the goal after the turn.

    A call's ``detail["actions"]`` contains its actions and ``detail["goals"]`` the conditions. A
    call without actions gives one text, with the reason if the call failed.
    """
    texts: list[str] = []
    goals: dict[str, bool] = {}
    for call in turn.events:
        if not isinstance(call, ToolCalled):
            continue
        actions = call.detail.get("actions")
        if isinstance(actions, list):
            texts += [_text(action) for action in actions]
        else:
            arguments = " ".join(str(value) for value in call.arguments.values())
            texts.append(f"{call.tool} {arguments} {call.reason}".strip())
        found = call.detail.get("goals")
        if isinstance(found, dict):
            goals = {str(name): bool(held) for name, held in found.items()}
    if len(texts) > count:  # fewer frames than actions: show the last actions
        texts = texts[-count:]
    return texts + [""] * (count - len(texts)), goals


def _text(action: object) -> str:
    if isinstance(action, list) and all(
        isinstance(each, int | float) and abs(each) < _LARGEST_SHOWN for each in action
    ):
        return " ".join(f"{each:+.2f}" for each in action)
    return str(action)


def turn_tokens(episode: Episode) -> dict[int, dict[str, Any]]:
    """Return statistics of the sampled tokens of each turn, by the number of the turn.

    Returns:
        ``tokens`` (number of sampled tokens, without the prefill). If log-probabilities are known,
        also ``mean`` and ``lowest`` (natural log), and ``logprobs``, at most `MOST_POINTS`, in
        order.
    """
    facts: dict[int, dict[str, Any]] = {}
    for segment in episode.segments:
        for span in segment.turns:
            logprobs = segment.logprobs[span.start : span.end].astype(np.float64)
            facts[span.turn] = {"tokens": span.end - span.start, **_logprobs(logprobs)}
    return facts


def _logprobs(logprobs: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, Any]:
    if not logprobs.size or np.isnan(logprobs).any():
        return {}
    runs = np.array_split(logprobs, min(len(logprobs), MOST_POINTS))
    return {
        "mean": round(float(logprobs.mean()), 4),
        "lowest": round(float(logprobs.min()), 4),
        "logprobs": [round(float(run.min()), 3) for run in runs],
    }
