"""Prepares the points and spans of a response for the page: points, masks, and a time bar."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from visenv.grammar.points import Point, without_tags
from visenv.types import Episode
from visenv.verifier.grounding import MAX_NOTES, MAX_POINTS, frame_number, span_frames
from visenv.verifier.oracle import WorldTruth
from visenv.verifier.referred import Referred

_FURTHEST = 1e12
"""Largest coordinate of a point that is drawn, native pixels; a saved point may be NaN."""

_LARGEST_SCALE = 1e6

_MASK_ROWS = 256
"""Maximum number of rows of a mask on the page; larger masks are drawn with every second row, or
fewer."""


class ImageMark(NamedTuple):
    """Describes a box, a point or a mask to draw on an image.

    Attributes:
        image: The name under which the image was shown.
        what: ``"zoom"`` (a crop of the policy), ``"rejected"`` (a refused crop), ``"truth"``,
            ``"mask"``, or for a point ``"hit"``, ``"miss"`` or, if no mask is known, ``"point"``.
        label: The text in the legend.
        box: ``[left, top, right, bottom]`` in pixels of the shown image, or None.
        point: A point in the same pixels: the keypoint of a zoom, or a point of the response.
        mask: The outline of a mask as an SVG path in the same pixels, or ``""``.
    """

    image: str
    what: str
    label: str
    box: Sequence[float] | None = None
    point: Sequence[float] | None = None
    mask: str = ""


class TimeLane(NamedTuple):
    """Describes a lane of the time bar: an event of the response, or of the ground truth.

    Attributes:
        what: ``"hit"`` or ``"miss"``, ``"said"`` if the ground truth is not known, or ``"truth"``.
        label: Description of the event.
        first: The first frame, from 0.
        last: The last frame.
    """

    what: str
    label: str
    first: int
    last: int


def grounding_marks(episode: Episode) -> list[ImageMark]:
    """Return the points of the last response, and the masks of their labels if they are known.

    Masks are known for procedural worlds. At most as many points are drawn as the verifier scores.
    """
    referred = _referred(episode)
    if referred is None or min(*referred.native_size, *referred.shown_size) < 1:
        return []
    times, truth = _times(episode), _truth(episode)
    if not times and len(episode.images) != 1:
        return []  # a point does not say to which image it belongs
    points = [
        (frame, point)
        for point in referred.points[:MAX_POINTS]
        if (frame := frame_number(point.frame, point.time, times) if times else 0) is not None
        and all(abs(side) < _FURTHEST for side in (point.x, point.y))
    ]
    scale = _scale(referred)
    if max(scale) > _LARGEST_SCALE:
        return []
    marks = [_point_mark(truth, frame, point, scale, bool(times)) for frame, point in points]
    if truth is None:
        return marks
    named = dict.fromkeys((frame, point.label) for frame, point in points)
    masks = [each for frame, label in named for each in _masks(truth, frame, label, scale, times)]
    return [*masks, *marks]


def lanes(episode: Episode) -> list[TimeLane]:
    """Return the events that the last response states, and the events of the ground truth."""
    referred, times = _referred(episode), _times(episode)
    if referred is None or not times:
        return []
    truth = _truth(episode)
    found: list[TimeLane] = []
    for span in referred.spans[:MAX_NOTES]:
        frames = span_frames(span, times)
        if frames is not None:
            said = without_tags(span.description)
            right = None if truth is None else truth.supports(*frames, said)
            found.append(TimeLane(_verdict(right), said, *frames))
    for note in referred.frames[:MAX_NOTES]:
        frame = frame_number(note.frame, note.time, times)
        if frame is not None:
            said = without_tags(note.description)
            right = None if truth is None else truth.happens(frame, said)
            found.append(TimeLane(_verdict(right), said, frame, frame))
    if truth is not None:
        found += [TimeLane("truth", event, first, last) for first, last, event in truth.intervals()]
    return found


def _referred(episode: Episode) -> Referred | None:
    found = [event for event in episode.events if isinstance(event, Referred)]
    return found[-1] if found else None


def _times(episode: Episode) -> Sequence[float]:
    """Return the times of the only video of an episode; empty if it has no video or several."""
    videos = episode.videos
    return videos[0].times if len(videos) == 1 else ()


def _truth(episode: Episode) -> WorldTruth | None:
    """Return the ground truth of a procedural world that has all frames, otherwise None."""
    truth = episode.ground_truth
    if not hasattr(truth, "owners"):
        return None
    try:
        truth.owners(max(0, len(_times(episode)) - 1))
    except IndexError:
        return None
    world: WorldTruth = truth
    return world


def _scale(referred: Referred) -> tuple[float, float]:
    """Return shown pixels per native pixel, in x and y."""
    (across, down), (width, height) = referred.shown_size, referred.native_size
    return across / width, down / height


def _point_mark(
    truth: WorldTruth | None,
    frame: int,
    point: Point,
    scale: tuple[float, float],
    is_video: bool,
) -> ImageMark:
    right = None if truth is None else _hits(truth, frame, point)
    place = [point.x * scale[0], point.y * scale[1]]
    what = "point" if right is None else _verdict(right)
    return ImageMark(_image_name(frame, is_video), what, point.label, point=place)


def _hits(truth: WorldTruth, frame: int, point: Point) -> bool:
    owners = truth.owners(frame)
    height, width = owners.shape
    if not (0 <= point.x < width and 0 <= point.y < height):
        return False
    owner = int(owners[math.floor(point.y), math.floor(point.x)])
    return owner in truth.named(frame, point.label)


def _masks(
    truth: WorldTruth, frame: int, label: str, scale: tuple[float, float], times: Sequence[float]
) -> Iterator[ImageMark]:
    numbers = truth.named(frame, label)
    if numbers:
        path = mask_path(np.isin(truth.owners(frame), numbers), scale)
        yield ImageMark(_image_name(frame, bool(times)), "mask", f"mask of {label}", mask=path)


def mask_path(mask: NDArray[np.bool_], scale: tuple[float, float] = (1.0, 1.0)) -> str:
    """Return a mask as an SVG path, with a rectangle for each run of pixels in a row.

    Args:
        mask: bool ``[height, width]``.
        scale: Shown pixels per pixel of the mask, in x and y.
    """
    step = math.ceil(mask.shape[0] / _MASK_ROWS)
    pieces: list[str] = []
    for row in range(0, mask.shape[0], step):
        edges = np.flatnonzero(np.diff(mask[row].astype(np.int8), prepend=0, append=0))
        top, height = row * scale[1], step * scale[1]
        for start, end in edges.reshape(-1, 2).tolist():
            left, width = start * scale[0], (end - start) * scale[0]
            pieces.append(f"M{left:.4g} {top:.4g}h{width:.4g}v{height:.4g}h-{width:.4g}z")
    return "".join(pieces)


def _image_name(frame: int, is_video: bool) -> str:
    """Return the name on the page of an image that no text announces."""
    return f"frame {frame + 1}" if is_video else "image"


def _verdict(right: bool | None) -> str:
    return "said" if right is None else "hit" if right else "miss"
