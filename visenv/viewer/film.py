"""Collects the frames of a turn that the policy did not see, for the page to play."""

from __future__ import annotations

from typing import Any

from visenv.types import ToolCalled, Turn, Video

_LARGEST_SHOWN = 1e9


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
