"""Tests scores by split, which count every item."""

from __future__ import annotations

from typing import Any

import pytest

from visenv.envs.arft.datasets.mat import split_scores
from visenv.envs.arft.search.ground_truth import SearchTruth
from visenv.types import Episode, Failure


def item(split: str | None, exact: float, f1: float, **changes: Any) -> Episode:
    given: dict[str, Any] = {
        "env_id": "env",
        "sample_id": "item",
        "kind": "",
        "seed": 0,
        "group": 0,
        "member": 0,
        "turns": (),
        "status": "terminated",
        "metrics": {"accuracy": exact, "f1": f1},
        "ground_truth": None if split is None else SearchTruth(split=split),
    }
    return Episode(**given | changes)


def test_split_scores_and_the_average_over_items() -> None:
    episodes = [
        item("simple", 1.0, 1.0),
        item("hard", 0.0, 0.5),
        item("hard", 1.0, 1.0),
        item("hard", 0.0, 0.0, status="truncated", reason="turns"),  # without an answer
    ]
    assert split_scores(episodes) == {
        "F1 simple": 1.0,
        "EM simple": 1.0,
        "F1 hard": 0.5,  # (0.5 + 1 + 0) / 3
        "EM hard": pytest.approx(1 / 3),
        "F1 average": 0.625,  # 2.5 / 4: the paper averages over items, not over splits
        "EM average": 0.5,
    }


def test_items_that_were_aborted_or_not_read_count_as_wrong() -> None:
    failure = Failure("service", "search", "down")
    lost: dict[str, Any] = {"status": "aborted", "failure": failure, "metrics": {}}
    episodes = [
        item("simple", 1.0, 1.0),
        item("simple", 1.0, 1.0, **lost),
        # its sample could not be opened, so that its split is unknown
        item(None, 0.0, 0.0, **lost),
    ]
    scores = split_scores(episodes, left_out=1)
    assert scores == {
        "F1 simple": 0.5,
        "EM simple": 0.5,
        "F1 average": 0.25,
        "EM average": 0.25,
    }


def test_row_without_episodes_is_left_out() -> None:
    assert split_scores([]) == {}


def test_published_sizes_give_the_published_average() -> None:
    """Check table 1, Qwen2.5-VL-7B with Visual-ARFT: EM 51.43 of 70, 25.38 of 130, mean 34.50."""
    simple = [item("simple", float(place < 36), 0.0) for place in range(70)]
    hard = [item("hard", float(place < 33), 0.0) for place in range(130)]
    scores = split_scores([*simple, *hard])
    # 36/70 = 0.5143, 33/130 = 0.2538, 69/200 = 0.345
    assert [round(100 * scores[f"EM {name}"], 2) for name in ("simple", "hard", "average")] == [
        51.43,
        25.38,
        34.5,
    ]
