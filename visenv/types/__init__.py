"""The frozen values that every part of visenv exchanges."""

from visenv.types.episode import Episode, Group, ImageSpan, Segment, Status, Turn, TurnSpan
from visenv.types.event import (
    Aborted,
    Answered,
    Event,
    Log,
    Malformed,
    ToolCalled,
    Truncated,
    TurnTaken,
    event_from_json,
    event_to_json,
)
from visenv.types.image import MAX_PIXELS, Image, Pixels
from visenv.types.message import IMAGE_MARKER, Message, Part, Role, all_images, flatten
from visenv.types.sample import Sample
from visenv.types.step import StepRecord
from visenv.types.turn import Ask, FinishReason, Reply, Sampling

__all__ = [
    "IMAGE_MARKER",
    "MAX_PIXELS",
    "Aborted",
    "Answered",
    "Ask",
    "Episode",
    "Event",
    "FinishReason",
    "Group",
    "Image",
    "ImageSpan",
    "Log",
    "Malformed",
    "Message",
    "Part",
    "Pixels",
    "Reply",
    "Role",
    "Sample",
    "Sampling",
    "Segment",
    "Status",
    "StepRecord",
    "ToolCalled",
    "Truncated",
    "Turn",
    "TurnSpan",
    "TurnTaken",
    "all_images",
    "event_from_json",
    "event_to_json",
    "flatten",
]
