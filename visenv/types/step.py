"""The rich half of a step's result: what `info["step"]` holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from visenv.types.event import Event
from visenv.types.message import Message
from visenv.types.turn import Ask


@dataclass(slots=True)
class StepRecord:
    """What one `reset` or `step` adds to the episode.

    Attributes:
        messages: Chat messages added since the last action, in order; empty once it has ended.
        events: What happened in this step.
        ask: The request for the next turn, or None when the episode has ended.
        terms: Reward terms by name, unweighted; filled by the reward wrapper.
        metrics: Task metrics by name, on the last step only.
    """

    messages: tuple[Message, ...] = ()
    events: tuple[Event, ...] = ()
    ask: Ask | None = None
    terms: dict[str, float] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
