"""Creates the data set for TRL, in which each row determines the sample of a group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from datasets import Dataset


def rows(
    seeds: Iterable[int],
    indices: Iterable[int] | None = None,
    environment: str | None = None,
) -> Dataset:
    """Return one row for each group; all members of a group reset their environments to its row.

    Without such a data set, each member would draw another sample, and the group would compare
    answers to different questions.

    Args:
        seeds: The seeds, one for each row.
        indices: The rows of the finite source of the environment, one for each seed; without them,
            the seed selects the sample.
        environment: The key of the environment, if TRL uses several environments by name.

    Returns:
        Rows with ``prompt`` (an empty user message, because the environment adds the prompt),
        ``seed``, and ``index`` and ``environment`` if they were given.
    """
    columns: dict[str, list[Any]] = {"seed": [int(seed) for seed in seeds]}
    count = len(columns["seed"])
    columns["prompt"] = [[{"role": "user", "content": ""}]] * count
    if indices is not None:
        columns["index"] = [int(index) for index in indices]
    if environment is not None:
        columns["environment"] = [environment] * count
    return Dataset.from_dict(columns)
