"""Converts an episode to a sample of an Inspect log (`EvalSample` of the package inspect_ai)."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any

from visenv.exports.portable import saved_png
from visenv.records import event_to_json, known_fields
from visenv.types import Answered, Episode, Image, Message, Part, ToolCalled, Turn, TurnTaken

_STOP_REASONS = {"stop": "stop", "length": "max_tokens", "abort": "unknown"}


def inspect_sample(episode: Episode, sample_id: str, epoch: int, model: str) -> dict[str, Any]:
    """Return the episode as a JSON object with the fields of `EvalSample`.

    Images are data URIs, so that the log needs no other file; a missing or broken image is replaced
    by a text. The frames of a video are images with their times. A tool call of a turn is a tool
    call of its message. Results of tools are user messages, as the policy read them.

    Args:
        episode: The episode.
        sample_id: Id of the sample; together with `epoch` it is unique in the log.
        epoch: Number of the episode among the episodes of the sample, from 1.
        model: Name of the policy.
    """
    messages = [
        message
        for number, turn in enumerate(episode.turns)
        for message in (*map(_message, turn.messages), _assistant(episode, number, turn, model))
    ]
    opening = episode.turns[0].messages if episode.turns else episode.closing
    seconds = [
        part
        for turn in episode.turns
        for part in (turn.sampling_seconds, turn.env_seconds)
        if part is not None
    ]
    return {
        "id": sample_id,
        "epoch": epoch,
        "input": [_message(message) for message in opening],
        "target": list(episode.answers),
        "messages": [*messages, *map(_message, episode.closing)],
        "output": _output(episode, model),
        "scores": {name: _score(episode, name, value) for name, value in scores(episode).items()},
        "metadata": _metadata(episode),
        "model_usage": {model: _usage(episode)},
        **({"total_time": sum(seconds)} if seconds else {}),
        **_end(episode),
    }


def scores(episode: Episode) -> dict[str, float]:
    """Return the finite numbers among reward, metrics and unweighted terms, by name."""
    named = {
        "reward": episode.reward,
        **episode.metrics,
        **{f"term/{name}": value for name, value in episode.terms.items()},
    }
    return {
        name: float(value)
        for name, value in named.items()
        if value is not None and math.isfinite(value)
    }


def _score(episode: Episode, name: str, value: float) -> dict[str, Any]:
    score: dict[str, Any] = {"value": value, "answer": _answer(episode)}
    if name == "reward":
        score["metadata"] = {
            "terms": dict(episode.terms),
            "term_weights": dict(episode.term_weights),
        }
    term = name.removeprefix("term/")
    if term in episode.term_weights and name != term:
        score["explanation"] = f"weight {episode.term_weights[term]}"
    return score


def _answer(episode: Episode) -> str | None:
    return next((e.answer for e in reversed(episode.events) if isinstance(e, Answered)), None)


# ------------------------------------------------------------------------------------- messages


def _message(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": _content(message.parts)}


def _content(parts: Sequence[Part]) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, str):
            content.append({"type": "text", "text": part})
        elif isinstance(part, Image):
            content.append(_image(part))
        else:
            for frame, time in zip(part.frames, part.times, strict=True):
                content += [{"type": "text", "text": f"[frame at {time:.2f} s]"}, _image(frame)]
    return content


def _image(image: Image) -> dict[str, Any]:
    png = saved_png(image)
    if png is None:
        return {"type": "text", "text": "[an image that cannot be read]"}
    encoded = base64.b64encode(png).decode("ascii")
    return {"type": "image", "image": f"data:image/png;base64,{encoded}", "detail": "auto"}


def _assistant(episode: Episode, number: int, turn: Turn, model: str) -> dict[str, Any]:
    calls = [event for event in turn.events if isinstance(event, ToolCalled)]
    return {
        "role": "assistant",
        "content": turn.text,
        "source": "generate",
        "model": model,
        "tool_calls": [
            {
                "id": f"call-{number}-{place}",
                "function": call.tool,
                "arguments": dict(call.arguments),
                "type": "function",
            }
            for place, call in enumerate(calls)
        ],
        "metadata": {
            "turn": number,
            "reward": turn.reward,
            "advantage": turn.advantage,
            "sampling_seconds": turn.sampling_seconds,
            "env_seconds": turn.env_seconds,
            **_tokens(episode, number),
            "events": [event_to_json(each) for each in turn.events if type(each) is not TurnTaken],
        },
    }


def _tokens(episode: Episode, number: int) -> dict[str, Any]:
    for segment in episode.segments:
        for span in segment.turns:
            if span.turn == number:
                logprobs = segment.logprobs[span.start : span.end]
                mean = float(logprobs.mean()) if len(logprobs) else None
                return {"tokens": span.end - span.start, "mean_logprob": mean}
    return {}


# ----------------------------------------------------------------------------- other fields


def _output(episode: Episode, model: str) -> dict[str, Any]:
    if not episode.turns:
        return {"model": model, "choices": []}
    last = episode.turns[-1]
    message = _assistant(episode, len(episode.turns) - 1, last, model)
    choice = {"message": message, "stop_reason": _STOP_REASONS[last.finish_reason]}
    return {
        "model": model,
        "choices": [choice],
        "completion": last.text,
        "usage": _usage(episode),
    }


def _usage(episode: Episode) -> Mapping[str, int]:
    sampled = episode.num_sampled_tokens
    total = sum(len(segment) for segment in episode.segments)
    return {
        "input_tokens": total - sampled,
        "output_tokens": sampled,
        "total_tokens": total,
    }


def _metadata(episode: Episode) -> dict[str, Any]:
    plain = ("env_id", "kind", "index", "group", "member", "status", "reason", "question")
    return {
        **{name: getattr(episode, name) for name in plain},
        "seed": str(episode.seed),  # may be too large for an exact number in other readers
        "ground_truth": known_fields(episode.ground_truth),
        "term_notes": dict(episode.term_notes),
    }


def _end(episode: Episode) -> dict[str, Any]:
    """Return the error of an aborted episode, or the limit of a truncated one."""
    if episode.failure is not None:
        said = str(episode.failure)
        trace = episode.failure.traceback
        return {"error": {"message": said, "traceback": trace, "traceback_ansi": trace}}
    if episode.status == "truncated":
        return {"limit": {"type": "custom", "limit": float(len(episode.turns))}}
    return {}
