"""Writes saved episodes to a parquet file, a row for each episode, for data frames and data sets.

The column `images` has the layout of the image lists of Hugging Face's datasets (bytes and path).
Each message contains the marker ``<image>`` in place of each image, in the same order. A marker
that is part of a text is broken by a blank (`Message.plain`). A missing or broken image has no
bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from visenv.episodes import read_episodes
from visenv.errors import RunError
from visenv.exports.portable import portable, portable_text, saved_png
from visenv.files import replacing
from visenv.packages import missing_package
from visenv.records import event_to_json, truth_to_json
from visenv.types import Answered, Episode, Message, Segment
from visenv.viewer.gather import episode_files
from visenv.viewer.index import outcome

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_IN_GROUP = 64
"""Episodes of one row group, which are in memory at the same time."""

_EMPTY = "{} holds no episodes. Give the folder of a run."
_PLAIN = ("env_id", "sample_id", "kind", "index", "group", "member", "status", "reason")
_TURN = ("text", "reward", "finish_reason", "advantage", "sampling_seconds", "env_seconds")


def write_parquet(folder: Path, out: Path) -> int:
    """Write the episodes of a run into a parquet file.

    Args:
        folder: The folder of a run, a rollout or an evaluation.
        out: The file; an existing file is replaced when the new one is complete.

    Returns:
        The number of rows.

    Raises:
        ConfigurationError: If pyarrow is not installed.
        DataError: If a file of episodes cannot be read.
        RunError: If the folder contains no episodes.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise missing_package("A parquet file", error, "data") from error
    found = episode_files(folder)
    if not found:
        raise RunError(_EMPTY.format(folder))
    schema, count = _schema(), 0
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(out) as partial, parquet.ParquetWriter(partial, schema) as writer:
        for rows in _batches(_rows(found)):
            writer.write_table(pa.Table.from_pylist(rows, schema))
            count += len(rows)
        if not count:
            raise RunError(_EMPTY.format(folder))
    return count


def _rows(found: dict[str, Path]) -> Iterator[dict[str, Any]]:
    for saved_in, path in found.items():
        for line, episode in enumerate(read_episodes(path, check_pixels=False)):
            yield portable_row(episode) | {"saved_in": portable_text(saved_in), "line": line}


def _batches(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == ROWS_IN_GROUP:
            yield batch
            batch = []
    if batch:
        yield batch


def portable_row(episode: Episode) -> dict[str, Any]:
    """Return the row of an episode, without the columns of the place where it was saved."""
    answer = next((e.answer for e in reversed(episode.events) if isinstance(e, Answered)), None)
    told = {
        **{name: getattr(episode, name) for name in _PLAIN},
        "seed": str(episode.seed),  # may exceed 64 bits
        "failure": None if episode.failure is None else str(episode.failure),
        "outcome": outcome(episode),
        "reward": episode.reward,
        "question": episode.question,
        "answer": answer,
        "answers": list(episode.answers),
        **{name: _pairs(getattr(episode, name)) for name in ("terms", "term_weights", "metrics")},
        "ground_truth": _json(truth_to_json(episode.ground_truth)),
        "turns": [
            {name: getattr(turn, name) for name in _TURN}
            | {
                "messages": [_message(each) for each in turn.messages],
                "events": _json([event_to_json(event) for event in turn.events]),
            }
            for turn in episode.turns
        ],
        "env_spec": episode.env_spec,
    }
    images = [{"bytes": saved_png(each), "path": f"{each.sha256}.png"} for each in episode.images]
    row: dict[str, Any] = portable(told)
    return row | {
        "images": images,
        "segments": [_segment(each) for each in episode.segments],
    }


def _pairs(mapping: Any) -> list[tuple[str, float | None]]:
    return list(mapping.items())


def _message(message: Message) -> dict[str, str]:
    return {"role": message.role, "content": message.plain()}


def _segment(segment: Segment) -> dict[str, Any]:
    return {
        "token_ids": segment.token_ids.tolist(),
        "loss_mask": segment.loss_mask.tolist(),
        "logprobs": segment.logprobs.tolist(),
        "temperature": segment.temperature,
    }


def _json(value: Any) -> str:
    return json.dumps(portable(value), ensure_ascii=False)


def _schema() -> pa.Schema:
    import pyarrow as pa

    text, number, whole = pa.string(), pa.float64(), pa.int64()
    message = pa.struct({"role": text, "content": text})
    turn = {
        "text": text,
        "reward": number,
        "finish_reason": text,
        "advantage": number,
        "sampling_seconds": number,
        "env_seconds": number,
        "messages": pa.list_(message),
        "events": text,
    }
    segment = {
        "token_ids": pa.list_(pa.int32()),
        "loss_mask": pa.list_(pa.bool_()),
        "logprobs": pa.list_(pa.float32()),
        "temperature": number,
    }
    columns = {
        **dict.fromkeys(("saved_in", "env_id", "sample_id", "kind", "seed"), text),
        **dict.fromkeys(("line", "index", "group", "member"), whole),
        **dict.fromkeys(("status", "reason", "failure", "outcome"), text),
        "reward": number,
        **dict.fromkeys(("question", "answer", "ground_truth", "env_spec"), text),
        "answers": pa.list_(text),
        **dict.fromkeys(("terms", "term_weights", "metrics"), pa.map_(text, number)),
        "turns": pa.list_(pa.struct(turn)),
        "images": pa.list_(pa.struct({"bytes": pa.binary(), "path": text})),
        "segments": pa.list_(pa.struct(segment)),
    }
    return pa.schema(list(columns.items()))
