"""Summarizes an evaluation: means with intervals by group, tool use, and all failures.

Intervals are over samples, not over repeats of a sample. A metric with only the values 0 and 1 has
Wilson's interval, any other metric the normal interval. Only events, rewards and metrics are read,
so that the episodes need no messages (`Episode.without_messages`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from visenv.evaluation.intervals import Mean, mean, mean_of, share
from visenv.evaluation.repeats import SampleKey, repeat_metrics, repeats_of, sample_of
from visenv.records import known_fields
from visenv.types import Episode, ToolCalled

ANY_TOOL = "any tool"


class SummaryRow(NamedTuple):
    """Holds one line of an evaluation.

    Attributes:
        grouping: The label by which the episodes are grouped, ``""`` for all episodes.
        label: The group, or ``"all"``, or ``"mean of groups"``.
        episodes: Number of episodes in the means.
        aborted: Number of episodes that a failed service or an unreadable row ended; they are not
            counted anywhere else.
        unanswered: Number of episodes that a limit truncated; they are part of the means.
        means: Every metric, the reward, its terms, and tool use (`tool_metrics`), by name; if
            samples were repeated, ``avg@n`` and ``pass@k`` as well (`repeat_metrics`).
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
    """Describes the use of one tool in the counted episodes.

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
    """

    control: str
    metric: str
    value: Mean
    difference: Mean
    samples: int


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
    """
    counted = [episode for episode in episodes if episode.status != "aborted"]
    binary = _binary_metrics(counted)
    repeats = repeats_of(episodes)
    rows = [_row("", "all", episodes, binary, repeats)]
    for grouping, groups in _groupings(episodes).items():
        if len(groups) > 1:
            some = [
                _row(grouping, label, groups[label], binary, repeats) for label in sorted(groups)
            ]
            rows += [*some, _mean_of_groups(some)]
    failures = [*_left_out(left_out), *_failures(episodes)]
    return Summary(rows, tool_use(counted), failures, dict(totals or {}), controls)


def tool_metrics(episode: Episode) -> dict[str, float]:
    """Return ``used tools`` (0 or 1), ``tool calls`` and ``failed calls`` of an episode."""
    calls = _calls(episode)
    failed = sum(not call.ok for call in calls)
    return {
        "used tools": float(bool(calls)),
        "tool calls": float(len(calls)),
        "failed calls": float(failed),
    }


def tool_use(episodes: Sequence[Episode]) -> list[ToolRow]:
    """Return how often each tool was used and returned a result; all tools together come first."""
    calls = [_calls(episode) for episode in episodes]
    samples = [sample_of(episode) for episode in episodes]
    names = sorted({call.tool for each in calls for call in each})
    rows = [_tool_row(ANY_TOOL, calls, samples)]
    return rows + [_tool_row(name, [_of(each, name) for each in calls], samples) for name in names]


# ------------------------------------------------------------------------------------- rows


def metrics_of(episode: Episode) -> dict[str, float]:
    """Return all values that are averaged, by name, without terms that do not apply."""
    values = {"reward": episode.reward, **tool_metrics(episode)}
    terms = {name: value for name, value in episode.terms.items() if value is not None}
    return {**episode.metrics, **values, **terms}


def labels_of(episode: Episode) -> dict[str, str]:
    """Return the labels by which the episode is grouped; none if its sample was never read."""
    truth = known_fields(episode.ground_truth)
    if not truth and not episode.kind:
        return {}
    return dict(truth.get("labels") or {"kind": episode.kind})


def item_of(episode: Episode) -> str:
    """Return the id of the episode's sample, or the location of its row if it was never read."""
    place = episode.seed if episode.index is None else episode.index
    return episode.sample_id or f"row {place}"


def _groupings(episodes: Sequence[Episode]) -> dict[str, dict[str, list[Episode]]]:
    found: dict[str, dict[str, list[Episode]]] = defaultdict(lambda: defaultdict(list))
    for episode in episodes:
        for grouping, label in labels_of(episode).items():
            found[grouping][label].append(episode)
    return found


def _binary_metrics(episodes: Sequence[Episode]) -> frozenset[str]:
    """Return the metrics that are 0 or 1 in all episodes; all groups then use one interval."""
    seen: dict[str, set[float]] = defaultdict(set)
    for episode in episodes:
        for name, value in metrics_of(episode).items():
            seen[name].add(value)
    return frozenset(name for name, values in seen.items() if values <= {0.0, 1.0})


def _row(
    grouping: str, label: str, episodes: Sequence[Episode], binary: frozenset[str], repeats: int
) -> SummaryRow:
    counted = [episode for episode in episodes if episode.status != "aborted"]
    values: dict[str, list[float]] = defaultdict(list)
    samples: dict[str, list[SampleKey]] = defaultdict(list)
    for episode in counted:
        for name, value in metrics_of(episode).items():
            values[name].append(value)
            samples[name].append(sample_of(episode))
    means = {
        name: (share if name in binary else mean)(each, samples[name])
        for name, each in values.items()
    }
    return SummaryRow(
        grouping,
        label,
        len(counted),
        len(episodes) - len(counted),
        sum(episode.status == "truncated" for episode in counted),
        means | repeat_metrics(counted, repeats),
        len(set(map(sample_of, counted))),
    )


def _mean_of_groups(rows: Sequence[SummaryRow]) -> SummaryRow:
    """Return a row with the mean over groups that have a counted episode."""
    counted = [row for row in rows if row.episodes] or rows
    shared = [name for name in counted[0].means if all(name in row.means for row in counted)]
    return SummaryRow(
        rows[0].grouping,
        "mean of groups",
        sum(row.episodes for row in rows),
        sum(row.aborted for row in rows),
        sum(row.unanswered for row in rows),
        {name: mean_of([row.means[name] for row in counted]) for name in shared},
        sum(row.samples for row in rows),
    )


# ------------------------------------------------------------------------------------- tools


def _calls(episode: Episode) -> list[ToolCalled]:
    return [event for event in episode.events if isinstance(event, ToolCalled)]


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
