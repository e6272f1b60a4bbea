"""The data set TRL wants: rows that name the samples, one group to a row."""

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

    Without such a data set each member would draw a sample of its own, and the group would compare
    answers to different questions.

    Args:
        seeds: One for each row.
        indices: Rows of the environment's finite source to play, one for each seed; without them
            the seed picks the sample.
        environment: Key of the environment, where TRL is given several by name.

    Returns:
        Rows with ``prompt`` (an empty user message: the environment speaks first), ``seed``, and
        ``index`` and ``environment`` where given.
    """
    columns: dict[str, list[Any]] = {"seed": [int(seed) for seed in seeds]}
    count = len(columns["seed"])
    columns["prompt"] = [[{"role": "user", "content": ""}]] * count
    if indices is not None:
        columns["index"] = [int(index) for index in indices]
    if environment is not None:
        columns["environment"] = [environment] * count
    return Dataset.from_dict(columns)
