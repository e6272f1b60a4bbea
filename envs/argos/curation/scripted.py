"""Defines scripted writers, with which the curation steps run offline on procedural worlds.

They test the pipeline, and write replies in the form of the models' replies::

    visenv data argos-draft … --policy visenv.envs.argos.curation:ScriptedTeacher
    visenv data argos-entities … --scorer rules:visenv.envs.argos.curation.scripted:write_entities
    visenv data argos-extract … --scorer rules:visenv.envs.argos.curation.scripted:write_extraction
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from typing_extensions import override

from visenv.advised import AdvisedPolicy
from visenv.errors import ConfigurationError
from visenv.policy import Session
from visenv.scorers import Generate, ScoreRequest
from visenv.types import DemonstrationRequest, Message, Sampling

from .entities import MOST_ENTITIES
from .prompts import DRAFT_HEADING, TRACE_HEADING

_TAG = re.compile(r'<point x="([\d.]+)" y="([\d.]+)" alt="[^"]*">([^<]*)</point>')
_ANNOUNCED = re.compile(r"\[F(\d+) @ t=([\d.]+)s\]")
_SPAN, _FRAME = re.compile(r"From frame (\d+) to frame (\d+), "), re.compile(r"in frame (\d+)")

_POINT = re.compile(
    r"([\w -]{1,64}) at (\((\d[\d.]*), (\d[\d.]*)\)(?: in \[F(\d+) @ t=([\d.]+)s\])?)"
)
_EVENT = re.compile(r"In (\[F(\d+)-F(\d+) @ t=([\d.]+)-([\d.]+)s\]), ([^.]+)\.")


class ScriptedTeacher(AdvisedPolicy):
    """Rewrites the oracle's turn as a trace with overlays.

    Args:
        expert_rate: Share of traces with the right answer, 0 to 1. Other answers are random.
        miss: Share of traces whose first point is moved to the upper left corner, 0 to 1.

    Raises:
        ConfigurationError: If a share is not from 0 to 1.
    """

    name = "ScriptedTeacher"

    def __init__(self, expert_rate: float = 1.0, miss: float = 0.0) -> None:
        if not (0 <= expert_rate <= 1 and 0 <= miss <= 1):
            raise ConfigurationError(
                f"expert_rate and miss must be from 0 to 1, got {expert_rate!r} and {miss!r}."
            )
        self.advice_request = DemonstrationRequest(expert_rate=expert_rate, guess=True)
        self._miss = miss

    @override
    def text(self, advice: str, session: Session, sampling: Sampling) -> str:
        """Return the demonstrated turn with points as ``(x, y)`` and anchors in brackets."""
        text = _TAG.sub(r"\3 at (\1, \2)", advice)
        times = dict(_ANNOUNCED.findall(_said(session.messages)))
        if times:
            text = _SPAN.sub(
                lambda f: f"In [F{f[1]}-F{f[2]} @ t={times[f[1]]}-{times[f[2]]}s], ", text
            )
            text = _FRAME.sub(lambda f: f"in [F{f[1]} @ t={times[f[1]]}s]", text)
        if np.random.default_rng(sampling.seed).random() < self._miss:
            text = re.sub(r" at \([\d., ]+\)", " at (0, 0)", text, count=1)
        return text


def write_entities(request: ScoreRequest) -> dict[str, str]:
    """Reply to `FindEntities` with the entities that a scripted draft points to, and its events."""
    prompt, draft = _prompt(request, DRAFT_HEADING)
    names = dict.fromkeys(found[1].strip() for found in _POINT.finditer(draft))
    found: dict[str, Any] = {"entities": list(names)[:MOST_ENTITIES], "interactions": []}
    if '"actions"' in prompt:
        found["actions"] = [
            f"{event[6]} (start_time={event[4]}s, end_time={event[5]}s)"
            for event in _EVENT.finditer(draft)
        ]
    return _reply(found)


def write_extraction(request: ScoreRequest) -> dict[str, str]:
    """Reply to `ExtractReferences` with the points and events of a scripted trace."""
    prompt, trace = _prompt(request, TRACE_HEADING)
    points = list(_POINT.finditer(trace))
    if '"anchor_text"' not in prompt:
        return _reply([{"point": _numbers(found), "object": found[1].strip()} for found in points])
    placed = [
        {
            "anchor_text": found[2],
            "point": _numbers(found),
            "object": found[1].strip(),
            "frame": f"F{found[5]}",
            "time_s": f"{found[6]}s",
        }
        for found in points
    ]
    events = [
        {
            "anchor_text": found[1],
            "event": found[6],
            "frames": [int(found[2]), int(found[3])],
            "times_s": [float(found[4]), float(found[5])],
            "points": [],
        }
        for found in _EVENT.finditer(trace)
    ]
    return _reply({"observations": [], "events": events, "points": placed})


def _numbers(found: re.Match[str]) -> list[float]:
    return [float(found[3]), float(found[4])]


def _said(messages: list[Message]) -> str:
    return "".join(part for each in messages for part in each.parts if isinstance(part, str))


def _prompt(request: ScoreRequest, heading: str) -> tuple[str, str]:
    """Return the texts before and after the last heading of a prompt."""
    if not isinstance(request, Generate):
        raise TypeError(f"Expected Generate, got {type(request).__name__}.")
    prompt, _, text = _said(list(request.messages)).rpartition(heading)
    return prompt, text


def _reply(value: Any) -> dict[str, str]:
    return {"text": json.dumps(value), "finish_reason": "stop"}
