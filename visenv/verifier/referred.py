"""Defines events for the points, frames and spans of a response, and for its scoring functions."""

from __future__ import annotations

from typing import NamedTuple

from visenv.grammar.points import FrameNote, Point, SpanNote, TraceReferences


class Referred(NamedTuple):
    """Holds the parsed points, frames and spans of a response.

    Attributes:
        turn: The number of the turn, from 0.
        points: The points, x and y in native pixels.
        frames: Descriptions of single frames.
        spans: Descriptions of spans.
        dropped: The number of malformed points.
        shown_size: Width and height of the image that the policy received, pixels.
        reasoning: The response without the final answer.
        native_size: Width and height of the image, native pixels; (0, 0) if not known.
    """

    turn: int
    points: tuple[Point, ...] = ()
    frames: tuple[FrameNote, ...] = ()
    spans: tuple[SpanNote, ...] = ()
    dropped: int = 0
    shown_size: tuple[int, int] = (0, 0)
    reasoning: str = ""
    native_size: tuple[int, int] = (0, 0)


class Selected(NamedTuple):
    """Holds the scoring functions that were chosen for a response.

    Attributes:
        turn: The number of the turn, from 0.
        functions: The names of the functions (`visenv.verifier.selector`).
        by: ``"rules"``, or the name of the model that selected them.
    """

    turn: int
    functions: tuple[str, ...]
    by: str = "rules"


def refer(
    turn: int,
    references: TraceReferences,
    reasoning: str,
    *,
    native_size: tuple[int, int],
    shown_size: tuple[int, int],
    relative: int | None = None,
) -> Referred:
    """Return the event for the points, frames and spans of a response.

    Args:
        turn: The number of the turn, from 0.
        references: Points in the coordinates of the policy.
        reasoning: The response without the final answer.
        native_size: Width and height of the image, native pixels.
        shown_size: Width and height of the image that the policy received, pixels.
        relative: The range of relative coordinates, such as 1000; None for pixels of the shown
            image.
    """
    across, down = (relative, relative) if relative else shown_size
    points = tuple(
        each._replace(x=each.x * native_size[0] / across, y=each.y * native_size[1] / down)
        for each in references.points
    )
    return Referred(
        turn,
        points,
        references.frames,
        references.spans,
        references.dropped,
        shown_size,
        reasoning,
        native_size,
    )
