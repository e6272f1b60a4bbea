"""Tests `RolloutStats` and `ConcurrencyGauge` by hand, with a clock that the test sets."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from visenv.rollout import stats as stats_module
from visenv.rollout.stats import ConcurrencyGauge, RolloutStats


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    # Only in this module: threads of other tests use the clock of the process.
    monkeypatch.setattr(stats_module, "time", SimpleNamespace(monotonic=made))
    return made


def test_gauge_counts_overlaps_twice_and_busy_time_once(clock: Clock) -> None:
    gauge = ConcurrencyGauge()
    clock.now += 1
    with gauge:
        clock.now += 2
        with gauge:
            clock.now += 3
        clock.now += 4
    clock.now += 5
    assert gauge.busy == 2 + 3 + 4
    assert gauge.seconds == 2 + 2 * 3 + 4
    with gauge:
        clock.now += 1
        gauge.reset()
        clock.now += 7
        assert gauge.busy == gauge.seconds == 7  # an entered block is still counted


def test_rollout_stats_take(clock: Clock) -> None:
    stats = RolloutStats()
    with stats.waiting:
        clock.now += 1
    with stats.playing:
        with stats.stepping:
            clock.now += 1
        with stats.sampling:
            clock.now += 6
            stats.sampled(30)
            stats.waited_for_sandbox(2.0)
            stats.waited_for_sandbox(0.5)
        with stats.playing, stats.stepping:
            clock.now += 3
        with stats.scoring:
            clock.now += 10
    stats.finished(10.0)
    stats.finished(3.0)
    stats.aborted("a judge", again=True)
    stats.aborted("a judge", again=False)
    stats.aborted("timeout", again=True)
    stats.cancelled()
    assert stats.take() == {
        "episodes": 2.0,
        "retries": 2.0,
        "cancelled": 1.0,
        "aborted/a_judge": 2.0,
        "aborted/timeout": 1.0,
        "episodes_per_second": 2 / 20,  # in flight for 1 + 6 + 3 + 10 seconds
        "tokens_per_second": 30 / 20,
        "engine_busy": 6 / 20,
        "turns_in_flight": 6 / 20,
        "calls_in_flight": (1 + 3) / 20,
        "waiting": 1 / 20,
        "sampling_seconds": 6 / 2,
        "env_seconds": (1 + 3) / 2,
        "scoring_seconds": 10 / 2,
        "waiting_seconds": 1 / 2,
        "sandbox_wait_seconds": 2.5 / 2,
        "longest_seconds": 10.0,
    }
    assert stats.take() == {}
