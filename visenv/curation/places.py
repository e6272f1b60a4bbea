"""Represents places as rows; a place is the sample of an environment that a step plays.

A row is ``{"id": "row-7", "index": 7}`` for a finite source, ``{"id": "seed-7", "seed": 7}`` for a
procedural one; ``"member"`` distinguishes the episodes of one place. A row may contain other keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import gymnasium as gym

from visenv.curation.lines import InputRow, Row, row_line
from visenv.data.source import IndexedSource, Source, is_indexed
from visenv.errors import ConfigurationError, DataError
from visenv.rollout import EpisodeSpec
from visenv.types import Sample


def row_lines(source: IndexedSource) -> list[InputRow]:
    """Return a place for each row of a finite source."""
    return [row_line({"id": f"row-{index}", "index": index}) for index in range(len(source))]


def seed_lines(count: int, first: int = 0) -> list[InputRow]:
    """Return the places ``first`` to ``first + count - 1`` of a procedural source.

    Raises:
        ConfigurationError: If `count` is below 1, or a seed is negative.
    """
    if count < 1 or first < 0:
        raise ConfigurationError(
            f"Expected at least 1 place from seed 0 up, got {count} from {first}."
        )
    return [row_line({"id": f"seed-{n}", "seed": n}) for n in range(first, first + count)]


def place_lines(source: Source, count: int | None = None, first: int = 0) -> list[InputRow]:
    """Return the places of `source`: its rows, or seeds of a procedural source.

    Args:
        source: The source.
        count: Number of places; by default all rows of a finite source.
        first: The first row or seed.

    Raises:
        ConfigurationError: If the source is procedural and `count` is None.
    """
    if is_indexed(source):
        lines = row_lines(source)[first:]
        return lines if count is None else lines[:count]
    if count is None:
        raise ConfigurationError(
            f"{type(source).__name__} is procedural and has no end: give the number of samples "
            "(--samples)."
        )
    return seed_lines(count, first)


def source_of(make_env: Callable[[], gym.Env[Any, Any]]) -> Any:
    """Return the source of an environment's samples."""
    env = make_env()
    env.close()
    base: Any = env.unwrapped
    return base.source


def members(lines: Iterable[InputRow], size: int) -> list[InputRow]:
    """Return each place `size` times, as members of a group: the same sample, different seeds."""
    found: list[InputRow] = []
    for line in lines:
        if line.problem:
            found.append(line)
            continue
        rows = ({**line.row, "id": f"{line.id}/{k}", "member": k} for k in range(size))
        found += map(row_line, rows)
    return found


def place_of(row: Row, member: int | None = None) -> EpisodeSpec:
    """Return the episode spec of a row.

    Args:
        row: The row.
        member: The index of the episode in the group; by default the row's ``"member"``, or 0.

    Raises:
        DataError: If the row has neither an index nor a seed.
    """
    if member is None:
        member = _count(row.get("member", 0), "member")
    if "index" in row:
        index = _count(row["index"], "index")
        return EpisodeSpec(index, member=member, index=index)
    if "seed" in row:
        return EpisodeSpec(_count(row["seed"], "seed"), member=member)
    raise DataError(f"a place must have the key 'index' or 'seed', got {sorted(row)}")


def sample_at(source: IndexedSource, row: Row) -> Sample:
    """Return the sample of a finite source that a row selects.

    Raises:
        DataError: If the row selects none, or the sample cannot be read.
    """
    index = place_of(row).index
    if index is None or index >= len(source):
        raise DataError(f"the index of a row must be 0 to {len(source) - 1}, got {index}")
    return source[index]


def _count(value: object, name: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise DataError(f"{name} must be an integer of at least 0, got {value!r:.80}")
