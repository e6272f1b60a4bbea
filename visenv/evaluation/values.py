"""Defines the values of an episode that enter the means of an evaluation.

An evaluation asks for a number of episodes, and each of them counts in its means. An episode that a
failure aborted has no values of its own: it counts as 0 in the reward, in the terms and in the
metrics, so that a server that fails on the hard samples does not raise a score. Tool use is
measured only in episodes that were played. Values that are not finite numbers are refused: with a
NaN, a mean would be empty and the advantages of a whole group NaN, without an error.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from visenv.errors import EpisodeError
from visenv.records import known_fields
from visenv.types import Episode, ToolCalled

SampleKey = tuple[str, int | None]
"""Identifies the sample of an episode: its id, and its row in a finite source."""

_ADVICE = "correct the term, or let the environment abort the episode"


def is_aborted(episode: Episode) -> bool:
    """Return whether a failure ended the episode."""
    return episode.status == "aborted"


def calls_of(episode: Episode) -> list[ToolCalled]:
    """Return the tool calls of an episode."""
    return [event for event in episode.events if isinstance(event, ToolCalled)]


def tool_metrics(episode: Episode) -> dict[str, float]:
    """Return ``used tools`` (0 or 1), ``tool calls`` and ``failed calls`` of an episode."""
    calls = calls_of(episode)
    failed = sum(not call.ok for call in calls)
    return {
        "used tools": float(bool(calls)),
        "tool calls": float(len(calls)),
        "failed calls": float(failed),
    }


def metrics_of(episode: Episode) -> dict[str, float]:
    """Return all values of an episode, by name, without terms that do not apply."""
    return {**_results_of(episode), **tool_metrics(episode)}


def labels_of(episode: Episode) -> dict[str, str]:
    """Return the labels by which the episode is grouped; none if its sample was never read."""
    truth = known_fields(episode.ground_truth)
    if not truth and not episode.kind:
        return {}
    labels = truth.get("labels")
    return dict(labels) if labels and isinstance(labels, Mapping) else {"kind": episode.kind}


def labels_key(episode: Episode) -> tuple[str, ...]:
    """Return the labels of an episode as texts in a fixed order, to compare those of episodes."""
    return tuple(sorted(f"{name}={label}" for name, label in labels_of(episode).items()))


def counted_values(episodes: Sequence[Episode]) -> list[dict[str, float]]:
    """Return the values with which each episode of an evaluation counts.

    Args:
        episodes: All episodes of the evaluation.

    Returns:
        `metrics_of` of an episode that was played. For an aborted episode: 0 for the reward, and
        for each term and metric that a played episode with the same labels has, or any played
        episode if there is none with these labels.
    """
    by_labels: dict[tuple[str, ...], dict[str, float]] = defaultdict(dict)
    for episode in episodes:
        if not is_aborted(episode):
            zeros = dict.fromkeys(_results_of(episode), 0.0)
            by_labels[labels_key(episode)].update(zeros)
    everywhere = {"reward": 0.0}
    for zeros in by_labels.values():
        everywhere.update(zeros)
    return [
        dict(by_labels.get(labels_key(episode), everywhere))
        if is_aborted(episode)
        else metrics_of(episode)
        for episode in episodes
    ]


def sample_of(episode: Episode) -> SampleKey:
    """Return the sample of an episode; if the sample was never read, the seed replaces the id."""
    return (episode.sample_id or f"seed {episode.seed}", episode.index)


def sample_keys(episodes: Iterable[Episode]) -> Callable[[Episode], SampleKey]:
    """Return a function like `sample_of` that also works for an episode that never read its sample.

    An episode whose reset failed has no sample id. The id is then that of another episode with the
    same row, or with the same seed if there are no rows.

    Args:
        episodes: All episodes between which samples are matched.
    """
    read = {_place_of(each): sample_of(each) for each in episodes if each.sample_id}

    def key(episode: Episode) -> SampleKey:
        if episode.sample_id:
            return sample_of(episode)
        return read.get(_place_of(episode), sample_of(episode))

    return key


def _results_of(episode: Episode) -> Mapping[str, float]:
    terms = {name: value for name, value in episode.terms.items() if value is not None}
    return {**episode.metrics, "reward": episode.reward, **terms}


def _place_of(episode: Episode) -> tuple[str, int]:
    return ("seed", episode.seed) if episode.index is None else ("row", episode.index)


def require_finite_reward(episode: Episode) -> None:
    """Check that the reward of an episode is finite.

    Raises:
        EpisodeError: If it is not. The message names the episode and its terms.
    """
    if not math.isfinite(episode.reward):
        raise EpisodeError(
            f"{_described(episode)} has the reward {episode.reward}, of the terms "
            f"{dict(episode.terms)}; rewards must be finite numbers: {_ADVICE}"
        )


def require_finite_values(episode: Episode) -> None:
    """Check that the reward, the terms and the metrics of an episode are finite.

    Raises:
        EpisodeError: If one of them is not. The message names the episode and the value.
    """
    for kind, values in (("term", episode.terms), ("metric", episode.metrics)):
        for name, value in values.items():
            if value is not None and not math.isfinite(value):
                raise EpisodeError(
                    f"{_described(episode)} has the value {value} of the {kind} {name!r}; terms "
                    f"and metrics must be finite numbers: {_ADVICE}"
                )
    require_finite_reward(episode)


def _described(episode: Episode) -> str:
    sample = f"sample {episode.sample_id!r}, " if episode.sample_id else ""
    return (
        f"the episode of {episode.env_id} with {sample}seed {episode.seed} (group {episode.group}, "
        f"member {episode.member})"
    )
