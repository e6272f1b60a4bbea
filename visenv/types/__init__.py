"""Defines the frozen values that all parts of visenv exchange."""

from visenv.decoding.pictures import MAX_PIXELS
from visenv.types.episode import Episode, Group, Status, Turn
from visenv.types.event import (
    Aborted,
    Answered,
    CallSkipped,
    Event,
    EventLog,
    Malformed,
    Scored,
    ToolCalled,
    Truncated,
    TurnTaken,
    UnknownEvent,
)
from visenv.types.failure import Failure
from visenv.types.ground_truth import GroundTruth, QuestionTruth
from visenv.types.image import Image, Pixels
from visenv.types.message import (
    IMAGE_MARKER,
    Message,
    Part,
    Role,
    Visual,
    all_images,
    flatten,
)
from visenv.types.sample import Sample
from visenv.types.segment import ImageSpan, PlaceholderRun, Segment, TurnSpan, VideoSpan
from visenv.types.step import EpisodeInfo, StepResult
from visenv.types.turn import (
    AdviceRequest,
    Context,
    DemonstrationRequest,
    DescriptionRequest,
    FinishReason,
    RandomTurnRequest,
    Reply,
    Sampling,
    TeacherRequest,
    TurnRequest,
)
from visenv.types.video import Video

__all__ = [
    "IMAGE_MARKER",
    "MAX_PIXELS",
    "Aborted",
    "AdviceRequest",
    "Answered",
    "CallSkipped",
    "Context",
    "DemonstrationRequest",
    "DescriptionRequest",
    "Episode",
    "EpisodeInfo",
    "Event",
    "EventLog",
    "Failure",
    "FinishReason",
    "GroundTruth",
    "Group",
    "Image",
    "ImageSpan",
    "Malformed",
    "Message",
    "Part",
    "Pixels",
    "PlaceholderRun",
    "QuestionTruth",
    "RandomTurnRequest",
    "Reply",
    "Role",
    "Sample",
    "Sampling",
    "Scored",
    "Segment",
    "Status",
    "StepResult",
    "TeacherRequest",
    "ToolCalled",
    "Truncated",
    "Turn",
    "TurnRequest",
    "TurnSpan",
    "TurnTaken",
    "UnknownEvent",
    "Video",
    "VideoSpan",
    "Visual",
    "all_images",
    "flatten",
]
