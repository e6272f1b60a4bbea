"""Formats the transcript of an episode as Markdown: messages, turns, events and rewards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from visenv.types import Answered, Episode, Image, Malformed, Message, ToolCalled, Turn, Video

_MOST_CHARACTERS = 1500
"""Maximum number of characters of one message; of a longer one, the beginning and the end are
shown.
"""


def transcript(episode: Episode) -> str:
    """Return the transcript of an episode as Markdown.

    An image is represented by its size. The middle of long messages is omitted.
    """
    blocks = [f"Seed {episode.seed}, sample `{episode.sample_id}`."]
    for number, turn in enumerate(episode.turns):
        blocks += [_message(each) for each in turn.messages]
        blocks.append(_block(f"Policy, turn {number + 1}", turn.text))
        blocks += _events(turn)
    blocks += [_message(each) for each in episode.closing]
    blocks.append(_end(episode))
    return "\n\n".join(blocks)


def _message(message: Message) -> str:
    parts = [_part(part) for part in message.parts]
    return _block(f"Environment ({message.role})", "\n".join(filter(None, parts)))


def _part(part: str | Image | Video) -> str:
    if isinstance(part, str):
        return part.strip("\n")
    if isinstance(part, Video):
        return f"[video of {len(part.frames)} frames]"
    width, height = part.size
    return f"[image, {width} x {height} pixels]"


def _block(title: str, text: str) -> str:
    half = _MOST_CHARACTERS // 2
    if len(text) > _MOST_CHARACTERS:
        left_out = len(text) - 2 * half
        text = f"{text[:half]}\n[... {left_out:,} characters left out ...]\n{text[-half:]}"
    runs = [len(run) for run in re.findall("~+", text)]
    fence = "~" * max(4, *(run + 1 for run in runs), 0)  # no text can close the fence
    return f"**{title}**\n\n{fence}text\n{text}\n{fence}"


def _events(turn: Turn) -> Iterator[str]:
    """Yield the events of calls and answers, as the environment parsed them."""
    for event in turn.events:
        if isinstance(event, ToolCalled):
            outcome = "succeeded" if event.ok else f"failed: {event.reason}"
            yield f"Event: the call of `{event.tool}` {outcome}."
        elif isinstance(event, Answered):
            yield f"Event: the answer is `{_line(event.answer)}`."
        elif isinstance(event, Malformed):
            yield "Event: the turn is malformed."


def _line(text: str) -> str:
    return " ".join(text.replace("`", "'").split())[:120]


def _end(episode: Episode) -> str:
    answers = ", ".join(f"`{_line(answer)}`" for answer in episode.answers[:4])
    lines = [
        f"- Reward: **{episode.reward:.3f}** ({episode.status}"
        + (f", {episode.end_reason})" if episode.end_reason else ")"),
        f"- Accepted answers: {answers}" if answers else "",
        _facts("Reward terms", episode.terms),
        _facts("Metrics", episode.metrics),
    ]
    return "\n".join(filter(None, lines))


def _facts(title: str, facts: Mapping[str, float | None]) -> str:
    shown = [f"`{k}` {'-' if v is None else f'{v:.3g}'}" for k, v in facts.items()]
    return f"- {title}: {', '.join(shown)}" if shown else ""
