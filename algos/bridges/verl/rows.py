"""Rows of verl's data set: each names the sample that a group plays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def rows(
    seeds: Iterable[int], indices: Iterable[int] | None = None, agent: str = "visenv"
) -> list[dict[str, Any]]:
    """Return one row for each group.

    ::

        datasets.Dataset.from_list(rows(range(10_000))).to_parquet("train.parquet")

    Args:
        seeds: One for each row.
        indices: Rows of the environment's finite source to play, one for each seed; without them
            the seed picks the sample.
        agent: Name of the agent loop in verl's ``agent_loop_config_path``, which says what
            environment it plays.

    Returns:
        Rows with ``prompt`` (a stand-in: the environment speaks first), ``data_source``,
        ``agent_name`` and ``extra_info`` (``index``, ``seed`` and, where given, ``row``).
    """
    places = [{"seed": int(seed)} for seed in seeds]
    if indices is not None:
        places = [place | {"row": int(row)} for place, row in zip(places, indices, strict=True)]
    return [
        {
            "prompt": [{"role": "user", "content": f"Seed {place['seed']}."}],
            "data_source": agent,
            "agent_name": agent,
            "extra_info": {"index": number} | place,
        }
        for number, place in enumerate(places)
    ]
