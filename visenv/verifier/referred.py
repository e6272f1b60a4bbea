"""Records what a response refers to: points, frames and spans, and the scoring functions."""

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
        shown_size: Width and height of the image as the policy saw it, pixels.
        reasoning: All of the response but the final answer.
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
        functions: Their names (`visenv.verifier.selector`).
        by: ``"rules"``, or the name of the model that chose.
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
    """Return the event for what a response refers to.

    Args:
        turn: The number of the turn, from 0.
        references: Points in the coordinates of the policy.
        reasoning: All of the response but the final answer.
        native_size: Width and height of the image, native pixels.
        shown_size: Width and height as shown.
        relative: The extent of relative coordinates, such as 1000; None for pixels as shown.
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
