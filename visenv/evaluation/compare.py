"""Compares two evaluations of the same samples, paired by sample."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from visenv.errors import DataError
from visenv.evaluation.intervals import ACCURACY, NOTHING, Mean, difference
from visenv.evaluation.summary import ControlRow, summarize
from visenv.evaluation.values import SampleKey, counted_values, is_aborted, sample_keys
from visenv.types import Episode


class MetricDifference(NamedTuple):
    """Compares one metric of two evaluations, over the samples that both contain.

    Attributes:
        metric: The name of the metric.
        first: The mean of the metric over samples in the first evaluation.
        second: The mean of the metric over samples in the second evaluation.
        difference: The first minus the second, paired by sample, with its interval.
        samples: Number of samples that have the metric in both evaluations.
    """

    metric: str
    first: float
    second: float
    difference: Mean
    samples: int


class Comparison(NamedTuple):
    """Compares two evaluations.

    Attributes:
        metrics: A row for each metric that both evaluations have.
        samples: Number of samples in both evaluations.
        only_first: Number of samples that only the first evaluation contains.
        only_second: Number of samples that only the second evaluation contains.
        aborted: Number of aborted episodes of each evaluation; each counts as 0.
    """

    metrics: list[MetricDifference]
    samples: int
    only_first: int
    only_second: int
    aborted: tuple[int, int] = (0, 0)

    def of(self, metric: str) -> MetricDifference | None:
        """Return the row of a metric, or None if one of the evaluations does not have it."""
        return next((row for row in self.metrics if row.metric == metric), None)


def compare(first: Sequence[Episode], second: Sequence[Episode]) -> Comparison:
    """Compare two evaluations, paired by sample.

    The value of a sample is the mean over its repeats. An aborted episode counts as 0
    (`visenv.evaluation.values.counted_values`).

    Args:
        first: Episodes of one evaluation, with or without their messages.
        second: Episodes of the other evaluation.

    Raises:
        DataError: If the evaluations have no sample in common.
    """
    key = sample_keys([*first, *second])
    one, other = _by_sample(first, key), _by_sample(second, key)
    shared = [sample for sample in one if sample in other]
    if not shared:
        raise DataError(
            "The two evaluations have no sample in common; compare evaluations of the same data "
            "and seed."
        )
    names = dict.fromkeys(name for sample in shared for name in one[sample])
    rows = [_row(name, [(one[sample], other[sample]) for sample in shared]) for name in names]
    return Comparison(
        [row for row in rows if row.samples],
        len(shared),
        len(one) - len(shared),
        len(other) - len(shared),
        (sum(map(is_aborted, first)), sum(map(is_aborted, second))),
    )


def control_row(
    control: str, plain: Sequence[Episode], under_control: Sequence[Episode]
) -> ControlRow:
    """Compare an evaluation with the same samples under a control.

    The row has NaN if no sample is in both, or if every episode of one of them was aborted: then
    the difference would measure the failure.

    Args:
        control: The name of the control.
        plain: The episodes without the control.
        under_control: The episodes under the control.
    """
    aborted = sum(map(is_aborted, under_control))
    nothing = ControlRow(control, ACCURACY, NOTHING, NOTHING, 0, aborted)
    if all(map(is_aborted, plain)) or all(map(is_aborted, under_control)):
        return nothing
    try:
        compared = compare(plain, under_control)
    except DataError:
        return nothing
    row = compared.of(ACCURACY) or compared.of("reward")
    assert row is not None  # every episode has a reward
    value = summarize(under_control).rows[0].means[row.metric]
    return ControlRow(control, row.metric, value, row.difference, row.samples, aborted)


def _row(
    name: str, pairs: Sequence[tuple[Mapping[str, float], Mapping[str, float]]]
) -> MetricDifference:
    values = [(one[name], other[name]) for one, other in pairs if name in one and name in other]
    if not values:
        return MetricDifference(name, 0.0, 0.0, NOTHING, 0)
    of_shares = all(0.0 <= value <= 1.0 for pair in values for value in pair)
    return MetricDifference(
        name,
        sum(one for one, _ in values) / len(values),
        sum(other for _, other in values) / len(values),
        difference([one - other for one, other in values], of_shares=of_shares),
        len(values),
    )


def _by_sample(
    episodes: Sequence[Episode], key: Callable[[Episode], SampleKey]
) -> dict[SampleKey, dict[str, float]]:
    """Return the mean of each metric over the repeats of each sample."""
    found: dict[SampleKey, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for episode, values in zip(episodes, counted_values(episodes), strict=True):
        for name, value in values.items():
            found[key(episode)][name].append(value)
    return {
        sample: {name: sum(each) / len(each) for name, each in values.items()}
        for sample, values in found.items()
    }
