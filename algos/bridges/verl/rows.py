"""Creates the rows of verl's data set, which determine the samples of the groups."""

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
        seeds: The seeds, one for each row.
        indices: The rows of the finite source of the environment, one for each seed; without them,
            the seed selects the sample.
        agent: The name of the agent loop in the file of verl's ``agent_loop_config_path``, which
            also names the environment.

    Returns:
        Rows with ``prompt`` (a placeholder, because the environment provides the prompt),
        ``data_source``, ``agent_name`` and ``extra_info`` (``index``, ``seed`` and, if given,
        ``row``).
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
