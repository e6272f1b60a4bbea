"""Computes the metrics of a step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from visenv.evaluation.values import tool_metrics
from visenv.types import Episode, Group, ToolCalled


def measure(groups: Sequence[Group]) -> dict[str, float]:
    """Return means over the episodes of a step; aborted episodes are only counted.

    Returns:
        ``reward``; ``terms/…`` by name (means over the episodes to which the term applies);
        ``metrics/…`` by name; ``tools/…`` (`tool_metrics`); ``episodes/aborted`` (a count);
        ``episodes/truncated`` (a share); ``episodes/turns`` and ``episodes/tokens`` (sampled
        tokens); ``groups/zero_std``, the share of groups with several members in which all rewards
        are equal.
    """
    whole = [[each for each in group if each.status != "aborted"] for group in groups]
    episodes = [episode for group in whole for episode in group]
    values: dict[str, list[float]] = defaultdict(list)
    for episode in episodes:
        for name, value in _of_episode(episode).items():
            values[name].append(value)
    several = [group for group in whole if len(group) > 1]
    if several:
        values["groups/zero_std"] = [len({each.reward for each in group}) == 1 for group in several]
    measures = {name: float(np.mean(each)) for name, each in values.items()}
    return measures | {"episodes/aborted": sum(map(len, groups)) - len(episodes)}


def measure_by_env_and_kind(
    groups: Sequence[Group], env_of: Callable[[Group], str]
) -> dict[str, float]:
    """Return the metrics of `measure` for each environment and each kind of sample.

    Args:
        groups: The groups of all processes in the step.
        env_of: A function that returns the name of the environment of a group; ``""`` if the run
            has only one.

    Returns:
        ``env/<environment>/<metric>``, and by kind ``env/<environment>/kind/<kind>/<metric>``. In a
        run with one environment, only ``kind/<kind>/<metric>``. Samples without a kind belong to no
        kind.
    """
    parts: dict[str, list[Group]] = defaultdict(list)
    for group in groups:
        env = env_of(group)
        prefix = f"env/{env}/" if env else ""
        if env:
            parts[prefix].append(group)
        # An episode that was aborted before it had a sample has no kind; the others have one.
        if kind := next((episode.kind for episode in group if episode.kind), ""):
            parts[f"{prefix}kind/{kind.replace(' ', '_')}/"].append(group)
    return {
        f"{prefix}{name}": value
        for prefix, some in sorted(parts.items())
        for name, value in measure(some).items()
    }


def _of_episode(episode: Episode) -> dict[str, float]:
    return {
        "reward": episode.reward,
        **{f"terms/{name}": value for name, value in episode.terms.items() if value is not None},
        **{f"metrics/{name}": value for name, value in episode.metrics.items()},
        **{
            f"tools/{name.replace(' ', '_')}": value
            for name, value in tool_metrics(episode).items()
        },
        "episodes/truncated": episode.status == "truncated",
        "episodes/turns": len(episode.turns),
        "episodes/tokens": episode.num_sampled_tokens,
    }


def advantages_by_tool(
    groups: Sequence[Group], advantages: Sequence[Sequence[Any]]
) -> dict[str, float]:
    """Return the mean advantage of episodes by the outcome of their tool calls.

    Figure 3 of Groundlight (arXiv 2506.14821) accumulates these means over the steps of a run.

    Args:
        groups: All groups of the step.
        advantages: The advantages of each episode of each group: ``[]``, or one for each turn,
            which are averaged.

    Returns:
        ``advantage/no_tool`` (no call), ``advantage/tool_ok`` (at least one call succeeded) and
        ``advantage/tool_failed`` (all calls failed). An outcome without episodes is left out.
    """
    found: dict[str, list[float]] = defaultdict(list)
    for group, given in zip(groups, advantages, strict=True):
        for episode, advantage in zip(group, given, strict=True):
            calls = [event for event in episode.events if type(event) is ToolCalled]
            outcome = "tool_ok" if any(call.ok for call in calls) else "tool_failed"
            found[outcome if calls else "no_tool"].append(float(np.mean(advantage)))
    return {f"advantage/{outcome}": float(np.mean(each)) for outcome, each in found.items()}


_MEANS = (
    *("engine_busy", "staleness"),
    *("sampling_seconds", "env_seconds", "scoring_seconds", "waiting_seconds"),
    "sandbox_wait_seconds",
)
_LARGEST = ("longest_seconds", "stalest", "waited_seconds")


def reduced(reports: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Combine the reports of several processes (`EpisodeSource.report`) into one.

    Counts and rates are summed, shares and times of an episode are averaged, and the maximum of
    times for which the step waits is used.
    """
    values: dict[str, list[float]] = defaultdict(list)
    for report in reports:
        for name, value in report.items():
            values[name].append(value)
    return {name: _reduce(name.split("/")[-1], each) for name, each in values.items()}


def _reduce(name: str, values: Sequence[float]) -> float:
    if name in _LARGEST:
        return max(values)
    return float(np.mean(values)) if name in _MEANS else sum(values)
