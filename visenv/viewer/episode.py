"""One episode as the page shows it: turns, images under their names, boxes drawn on the source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from visenv.records import event_to_json, known_fields
from visenv.types import (
    Answered,
    Episode,
    Event,
    Image,
    Message,
    ToolCalled,
    TurnTaken,
    Video,
)
from visenv.viewer.film import film
from visenv.viewer.grounding import ImageMark, grounding_marks, lanes
from visenv.viewer.index import outcome
from visenv.viewer.tokens import turn_tokens

_FURTHEST = 1e9
"""Pixels. A box that reaches further is none: a data set may have written any number."""

_ANNOUNCED = re.compile(r"(\w+)(?: </image_name>|:)\n\Z")
"""The name of the image that follows, as the grammars write it."""


def episode_record(episode: Episode, images: str) -> dict[str, Any]:
    """Return the episode in the form of the page, JSON-like but for NaN and infinity.

    Args:
        episode: What to show.
        images: Folder of its images, relative to the page.
    """
    answers = [event.answer for event in episode.events if isinstance(event, Answered)]
    plain = ("kind", "group", "member", "reward", "status", "index")
    return {
        **{name: getattr(episode, name) for name in plain},
        "id": episode.sample_id,
        "reason": episode.end_reason,
        "seed": str(episode.seed),  # may exceed what a JavaScript number holds exactly
        "env": episode.env_id,
        "outcome": outcome(episode),
        "answer": answers[-1] if answers else None,
        "truth": {
            "question": episode.question,
            "answers": list(episode.answers),
            **known_fields(episode.ground_truth),
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
            # That a turn was taken is seen from the turn.
            "events": [event_to_json(each) for each in turn.events if type(each) is not TurnTaken],
        }


def _messages(messages: Sequence[Message], images: str) -> list[dict[str, Any]]:
    return [{"role": message.role, "parts": list(_parts(message, images))} for message in messages]


def _parts(message: Message, images: str) -> Iterator[dict[str, Any]]:
    """Return texts, images under the name that the text before announces, and video frames."""
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
    """Return the boxes that were cut out of images, and those of the truth.

    A call cuts one box, ``detail["shown_box"]``, or several, each with a ``problem`` if it was
    rejected: ``detail["boxes"]``.

    The truth is in native pixels. How large these are on the image as shown is known from a zoom
    straight into it, which tells its box in both; without one, there is nothing to draw.
    """
    zooms = [
        detail
        for call in _calls(episode.events)
        for detail in _boxes(call.detail)
        if "image" in detail and _box(detail.get("shown_box"))
    ]
    several = len(zooms) > 1
    drawn = []
    truths: list[ImageMark] = []
    for number, detail in enumerate(zooms, start=1):
        problem = detail.get("problem", "")
        name = f"zoom {number}" if several else "zoom"
        label = f"{name}, rejected: {problem}" if problem else name
        image, what = detail["image"], "rejected" if problem else "zoom"
        drawn.append(ImageMark(image, what, label, detail["shown_box"], detail.get("keypoint")))
        scale = _scale(detail) if detail.get("origin", image) == image else None
        if scale is not None and not truths:
            truths = list(_truths(episode, image, scale))
    return drawn + truths


def _truths(episode: Episode, image: str, scale: tuple[float, float]) -> Iterator[ImageMark]:
    for name, box in known_fields(episode.ground_truth).items():
        if name.endswith("_box") and _box(box):
            scaled = [side * scale[axis % 2] for axis, side in enumerate(box)]
            yield ImageMark(image, "truth", name.replace("_", " "), scaled)


def _calls(events: Sequence[Event]) -> list[ToolCalled]:
    """Return the calls that succeeded, and those that failed with boxes to show."""
    calls = [event for event in events if isinstance(event, ToolCalled)]
    return [call for call in calls if call.ok or "boxes" in call.detail]


def _boxes(detail: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the facts of each box of a call."""
    if "boxes" not in detail:
        return [detail]
    shared = {key: value for key, value in detail.items() if key != "boxes"}
    return [{**shared, **each} for each in detail["boxes"]]


def _scale(detail: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return shown pixels per native pixel, across and down; None if the native box is unknown."""
    shown, native = detail["shown_box"], detail.get("box", ())
    if not _box(native):
        return None
    across, down = (
        (shown[axis + 2] - shown[axis]) / (native[axis + 2] - native[axis]) for axis in (0, 1)
    )
    return across, down


def _box(value: object) -> bool:
    """Return whether the value is a box with positive area; truths of all data sets come here."""
    return (
        isinstance(value, list | tuple)
        and len(value) == 4
        and all(isinstance(side, int | float) and abs(side) <= _FURTHEST for side in value)
        and value[0] < value[2]
        and value[1] < value[3]
    )
