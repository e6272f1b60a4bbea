"""Summarizes an evaluation: means with intervals by group, tool use, and all failures.

Every episode that was asked for counts: an aborted episode counts as 0
(`visenv.evaluation.values`). Intervals are over samples, not over repeats of a sample. A metric
with only the values 0 and 1 has Wilson's interval, any other metric the normal interval. Only
events, rewards and metrics are read, so that the episodes need no messages
(`Episode.without_messages`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from visenv.evaluation.intervals import Mean, mean, mean_of, repeat_metrics, repeats_of, share
from visenv.evaluation.values import (
    SampleKey,
    calls_of,
    counted_values,
    is_aborted,
    labels_of,
    require_finite_values,
    sample_keys,
    sample_of,
)
from visenv.types import Episode, ToolCalled

ANY_TOOL = "any tool"


class SummaryRow(NamedTuple):
    """Holds one line of an evaluation.

    Attributes:
        grouping: The label by which the episodes are grouped, ``""`` for all episodes.
        label: The group, or ``"all"``, or ``"mean of groups"``.
        episodes: Number of episodes that were asked for, which is the denominator of the means of
            the reward, of its terms and of the metrics.
        aborted: Number of these that a failed service or an unreadable row ended; each counts as 0.
        unanswered: Number of episodes that a limit truncated; they are part of the means.
        means: Every metric, the reward, its terms, and tool use (`tool_metrics`; only of episodes
            that were played), by name; if samples were repeated, ``avg@n`` and ``pass@k`` as well
            (`repeat_metrics`).
        samples: Number of samples in the means, which is less than `episodes` if samples were
            repeated.
    """

    grouping: str
    label: str
    episodes: int
    aborted: int
    unanswered: int
    means: dict[str, Mean]
    samples: int = 0


class ToolRow(NamedTuple):
    """Describes the use of one tool in the episodes that were played.

    Attributes:
        tool: The name of the tool; `ANY_TOOL` for all tools together, ``""`` for calls that could
            not be parsed.
        used: Share of episodes with a call.
        calls: Mean number of calls per episode.
        success: Share of calls that returned a result.
        total: Number of calls.
    """

    tool: str
    used: Mean
    calls: Mean
    success: Mean
    total: int


class ControlRow(NamedTuple):
    """Compares the same samples with and without a control.

    Attributes:
        control: The name of the control (`visenv.evaluation.controls`).
        metric: The metric that is compared: accuracy, or the reward of a task without it.
        value: The metric under the control.
        difference: The metric without the control minus the metric under it, paired by sample. For
            ``no_tool`` it is the tool necessity.
        samples: Number of samples in both.
        aborted: Number of aborted episodes under the control; each counts as 0.
    """

    control: str
    metric: str
    value: Mean
    difference: Mean
    samples: int
    aborted: int = 0


class FailedItem(NamedTuple):
    """Describes an item without an answer.

    Attributes:
        item: The sample's id, or the location of its row.
        status: ``"left out"`` (the row cannot be read), ``"aborted"`` or ``"unanswered"``.
        reason: The reason, for a person.
    """

    item: str
    status: str
    reason: str


class Summary(NamedTuple):
    """Holds the result of an evaluation.

    Attributes:
        rows: All episodes first, then each group of each grouping, and the mean of its groups.
        tools: All tools together, then each tool that was called.
        failures: All items without an answer.
        totals: Scores of the data set that are not means over episodes, by name.
        controls: A comparison with the same samples for each control.
    """

    rows: list[SummaryRow]
    tools: list[ToolRow]
    failures: list[FailedItem]
    totals: dict[str, float]
    controls: Sequence[ControlRow] = ()


def summarize(
    episodes: Sequence[Episode],
    left_out: Iterable[str] = (),
    totals: Mapping[str, float] | None = None,
    controls: Sequence[ControlRow] = (),
) -> Summary:
    """Summarize an evaluation.

    Episodes are grouped by each entry of the ``labels`` of their ground truth, or by the sample's
    kind if it has none. A grouping with a single group is left out.

    Args:
        episodes: Finished episodes, including aborted ones.
        left_out: Rows that cannot be used, each as ``"<file>:<row>: <problem>"``.
        totals: Scores of the data set that are not means over episodes.
        controls: The same samples under controls (`visenv.evaluation.compare.control_row`).

    Raises:
        EpisodeError: If a reward, a term or a metric is not a finite number.
    """
    for episode in episodes:
        require_finite_values(episode)
    table = _Table(episodes)
    rows = [table.row("", "all", range(len(episodes)))]
    for grouping, groups in _groupings(episodes).items():
        if len(groups) > 1:
            some = [table.row(grouping, label, groups[label]) for label in sorted(groups)]
            rows += [*some, _mean_of_groups(some)]
    failures = [*_left_out(left_out), *_failures(episodes)]
    played = [episode for episode in episodes if not is_aborted(episode)]
    return Summary(rows, tool_use(played), failures, dict(totals or {}), controls)


def tool_use(episodes: Sequence[Episode]) -> list[ToolRow]:
    """Return how often each tool was used and returned a result; all tools together come first."""
    calls = [calls_of(episode) for episode in episodes]
    samples = [sample_of(episode) for episode in episodes]
    names = sorted({call.tool for each in calls for call in each})
    rows = [_tool_row(ANY_TOOL, calls, samples)]
    return rows + [_tool_row(name, [_of(each, name) for each in calls], samples) for name in names]


# ------------------------------------------------------------------------------------- rows


def item_of(episode: Episode) -> str:
    """Return the id of the episode's sample, or the location of its row if it was never read."""
    place = episode.seed if episode.index is None else episode.index
    return episode.sample_id or f"row {place}"


def _groupings(episodes: Sequence[Episode]) -> dict[str, dict[str, list[int]]]:
    """Return the indices of the episodes by grouping, such as ``"kind"``, and by group."""
    found: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, episode in enumerate(episodes):
        for grouping, label in labels_of(episode).items():
            found[grouping][label].append(place)
    return found


class _Table:
    """Computes the rows of an evaluation; all groups use one kind of interval for a metric."""

    def __init__(self, episodes: Sequence[Episode]) -> None:
        self._episodes = episodes
        self._values = counted_values(episodes)
        self._binary = _binary_metrics(self._values)
        self._shares = _shares(episodes)
        self._repeats = repeats_of(episodes)
        self._keys = list(map(sample_keys(episodes), episodes))

    def row(self, grouping: str, label: str, places: Sequence[int]) -> SummaryRow:
        """Return the row of the episodes at these places."""
        episodes = [self._episodes[place] for place in places]
        counted = [(self._keys[place], self._values[place]) for place in places]
        values: dict[str, list[float]] = defaultdict(list)
        samples: dict[str, list[SampleKey]] = defaultdict(list)
        for key, of_episode in counted:
            for name, value in of_episode.items():
                values[name].append(value)
                samples[name].append(key)
        means = {name: self._mean(name, each, samples[name]) for name, each in values.items()}
        return SummaryRow(
            grouping,
            label,
            len(episodes),
            sum(map(is_aborted, episodes)),
            sum(episode.status == "truncated" for episode in episodes),
            means | repeat_metrics(counted, self._repeats),
            len({key for key, _ in counted}),
        )

    def _mean(self, name: str, values: Sequence[float], samples: Sequence[SampleKey]) -> Mean:
        """Return a mean; the interval of a metric from 0 to 1 has the same bounds."""
        if name in self._binary:
            return share(values, samples)
        found = mean(values, samples)
        if name not in self._shares or math.isnan(found.low):
            return found
        return Mean(found.value, max(0.0, found.low), min(1.0, found.high))


def _shares(episodes: Iterable[Episode]) -> frozenset[str]:
    """Return the metrics of tasks and the reward terms whose values are all from 0 to 1."""
    lowest: dict[str, float] = {}
    highest: dict[str, float] = {}
    for episode in episodes:
        terms = {name: value for name, value in episode.terms.items() if value is not None}
        for name, value in {**episode.metrics, **terms}.items():
            lowest[name] = min(value, lowest.get(name, value))
            highest[name] = max(value, highest.get(name, value))
    return frozenset(name for name in lowest if 0.0 <= lowest[name] <= highest[name] <= 1.0)


def _binary_metrics(values: Iterable[Mapping[str, float]]) -> frozenset[str]:
    """Return the metrics that are 0 or 1 in all episodes; all groups then use one interval."""
    seen: dict[str, set[float]] = defaultdict(set)
    for each in values:
        for name, value in each.items():
            seen[name].add(value)
    return frozenset(name for name, found in seen.items() if found <= {0.0, 1.0})


def _mean_of_groups(rows: Sequence[SummaryRow]) -> SummaryRow:
    """Return a row with the mean over groups.

    A mean that a group with played episodes lacks is left out. A group in which every episode was
    aborted has no tool use, and is not part of that mean.
    """
    played = [row for row in rows if row.aborted < row.episodes] or rows
    shared = [name for name in played[0].means if all(name in row.means for row in played)]
    return SummaryRow(
        rows[0].grouping,
        "mean of groups",
        sum(row.episodes for row in rows),
        sum(row.aborted for row in rows),
        sum(row.unanswered for row in rows),
        {name: mean_of([row.means[name] for row in rows if name in row.means]) for name in shared},
        sum(row.samples for row in rows),
    )


# ------------------------------------------------------------------------------------- tools


def _of(calls: Sequence[ToolCalled], tool: str) -> list[ToolCalled]:
    return [call for call in calls if call.tool == tool]


def _tool_row(
    name: str, calls: Sequence[Sequence[ToolCalled]], samples: Sequence[SampleKey]
) -> ToolRow:
    """Return a tool's row from its calls in each episode and the sample of each episode."""
    results = [float(call.ok) for each in calls for call in each]
    sample_of_result = [sample for each, sample in zip(calls, samples, strict=True) for _ in each]
    return ToolRow(
        name,
        share([float(bool(each)) for each in calls], samples),
        mean([len(each) for each in calls], samples),
        share(results, sample_of_result),
        len(results),
    )


# ------------------------------------------------------------------------------------- failures


def _left_out(problems: Iterable[str]) -> list[FailedItem]:
    parts = [problem.partition(": ") for problem in problems]
    return [FailedItem(place, "left out", reason) for place, _, reason in parts]


def _failures(episodes: Sequence[Episode]) -> list[FailedItem]:
    status = {"aborted": "aborted", "truncated": "unanswered"}
    return [
        FailedItem(item_of(each), status[each.status], each.end_reason)
        for each in episodes
        if each.status in status
    ]
