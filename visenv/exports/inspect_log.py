"""Writes saved episodes as a log of Inspect, the evaluation framework: its header and its samples.

A log has the JSON layout of `EvalLog`, version 2, as inspect_ai 0.3 reads and writes it. The
episodes of one file and one environment are one log, and the members of a group are the epochs of
their sample. Episodes are written one at a time, so that a long file need not fit into memory.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from visenv import __version__
from visenv.episodes import read_episodes
from visenv.errors import RunError
from visenv.evaluation.values import is_aborted, labels_key
from visenv.exports.portable import portable, portable_text, saved_png
from visenv.files import output_folder, replacing
from visenv.records import event_to_json, known_fields
from visenv.types import Answered, Episode, Image, Message, Part, ToolCalled, Turn, TurnTaken
from visenv.viewer.facts import run_facts
from visenv.viewer.gather import episode_files

_STOP_REASONS = {"stop": "stop", "length": "max_tokens", "abort": "unknown"}

VERSION = 2
"""Version of the log format."""


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


def write_inspect_logs(folder: Path, out: Path) -> list[Path]:
    """Write the episodes of a run as logs of Inspect.

    Args:
        folder: The folder of a run, a rollout or an evaluation.
        out: The folder of the logs, which is created.

    Returns:
        The logs, one for each file of episodes and environment.

    Raises:
        DataError: If a file of episodes cannot be read.
        RunError: If the folder contains no episodes.
    """
    found = [
        (path, summary)
        for saved_in, path in episode_files(folder).items()
        for summary in _summaries(saved_in, path)
    ]
    if not found:
        raise RunError(f"{folder} holds no episodes. Give the folder of a run.")
    facts = run_facts(folder, [])["chief"]
    model = facts.get("policy") or facts.get("model") or "unknown"
    output_folder(out)
    return [_write_log(out, summary, path, model) for path, summary in found]


@dataclass
class _Summary:
    """Holds the values of the header of a log: ids of its samples, and sums of their scores.

    An aborted episode counts as 0, as in an evaluation (`visenv.evaluation.values.counted_values`).
    """

    env_id: str
    saved_in: str
    created: str
    ids: list[str] = field(default_factory=list)
    sums: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    counts: Counter[str] = field(default_factory=Counter)
    names: defaultdict[tuple[str, ...], set[str]] = field(default_factory=lambda: defaultdict(set))
    lost: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def add(self, episode: Episode) -> None:
        self.ids.append(_sample_id(episode))
        labels = labels_key(episode)
        if is_aborted(episode):
            self.lost[labels] += 1
            return
        found = scores(episode)
        self.names[labels] |= found.keys()
        for name, value in found.items():
            self.sums[name] += value
            self.counts[name] += 1

    def means(self) -> Iterator[tuple[str, float, int]]:
        """Yield the name, the mean and the number of episodes of each score."""
        everywhere = {"reward"}.union(*self.names.values())
        counts = self.counts.copy()
        for labels, number in self.lost.items():
            counts.update(dict.fromkeys(self.names.get(labels, everywhere), number))
        for name, count in counts.items():
            yield name, self.sums[name] / count, count


def _summaries(saved_in: str, path: Path) -> list[_Summary]:
    created = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
    found: dict[str, _Summary] = {}
    for episode in read_episodes(path, messages=False):
        summary = found.setdefault(episode.env_id, _Summary(episode.env_id, saved_in, created))
        summary.add(episode)
    return list(found.values())


def _write_log(out: Path, summary: _Summary, path: Path, model: str) -> Path:
    """Write a log with the file name that Inspect expects: its time, its task and its id."""
    log_id = _id(summary.env_id, summary.saved_in, summary.created)
    task = re.sub(r"[^\w.-]+", "-", summary.env_id)
    log = out / f"{summary.created.replace(':', '-')}_{task}_{log_id}.json"
    with replacing(log) as partial, partial.open("w", encoding="utf-8") as file:
        header = json.dumps(portable(_header(summary, log_id, model)), allow_nan=False)
        file.write(header[:-1] + ', "samples": [')
        _write_samples(file, _samples(summary.env_id, path, model))
        file.write("]}\n")
    return log


def _write_samples(file: TextIO, samples: Iterator[dict[str, Any]]) -> None:
    for number, sample in enumerate(samples):
        file.write(",\n" if number else "\n")
        json.dump(portable(sample), file, ensure_ascii=False, allow_nan=False)


def _samples(env_id: str, path: Path, model: str) -> Iterator[dict[str, Any]]:
    epochs: Counter[str] = Counter()
    for episode in read_episodes(path, check_pixels=False):
        if episode.env_id == env_id:
            sample_id = _sample_id(episode)
            epochs[sample_id] += 1
            yield inspect_sample(episode, sample_id, epochs[sample_id], model)


def _sample_id(episode: Episode) -> str:
    """Return an id that the members of a group share."""
    return portable_text(f"{episode.sample_id or 'sample'} (seed {episode.seed})")


def _header(summary: _Summary, log_id: str, model: str) -> dict[str, Any]:
    ids = list(dict.fromkeys(summary.ids))
    epochs = max(Counter(summary.ids).values())
    return {
        "version": VERSION,
        "status": "success",
        "eval": {
            "eval_id": log_id,
            "run_id": _id("run", summary.created),
            "created": summary.created,
            "task": summary.env_id,
            "task_id": _id("task", summary.env_id, summary.saved_in),
            "task_display_name": f"{summary.env_id} ({summary.saved_in})",
            "dataset": {"name": summary.saved_in, "samples": len(ids), "sample_ids": ids},
            "model": model,
            "config": {"epochs": epochs},
            "packages": {"visenv": __version__},
        },
        "plan": {"name": "plan", "steps": []},
        "results": {
            "total_samples": len(summary.ids),
            "completed_samples": len(summary.ids) - summary.lost.total(),
            "scores": [_mean(*each) for each in summary.means()],
        },
        "stats": {"started_at": summary.created, "completed_at": summary.created},
    }


def _mean(name: str, mean: float, count: int) -> dict[str, Any]:
    return {
        "name": name,
        "scorer": "visenv",
        "scored_samples": count,
        "metrics": {"mean": {"name": "mean", "value": mean}},
    }


def _id(*parts: str) -> str:
    """Return an id of 22 letters and digits, which depends only on the parts."""
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:22]
