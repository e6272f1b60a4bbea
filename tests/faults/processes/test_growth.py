"""Tests that resources stay flat in long runs, and that nothing is left after their end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.faults.processes.faulty_echo import Replaced
from tests.faults.processes.growth import Resources, measure, slopes, table
from tests.visenv.rollout.test_lockstep import Batching
from tests.waiting import wait_until
from visenv.rollout import Collector, EpisodeSpec, Executor, ProcessExecutor, ThreadExecutor

EXECUTORS: dict[str, Any] = {
    "inline": lambda: None,
    "threads": ThreadExecutor,
    "processes": ProcessExecutor,
}


@pytest.mark.parametrize(
    "name", ["inline", "threads", pytest.param("processes", marks=pytest.mark.soak)]
)
def test_environments_that_are_replaced_leave_no_thread_file_or_process(name: str) -> None:
    def play() -> None:
        executor: Executor | None = EXECUTORS[name]()
        collector = Collector(Replaced, Batching(), concurrency=2, executor=executor, retries=2)
        for _ in range(2):
            episodes = collector.episodes([EpisodeSpec(seed) for seed in range(4)])
            assert {each.status for each in episodes} == {"terminated"}
        collector.close()

    play()  # starts what all collectors of a process share
    before = Resources.of_this_process()
    play()
    # The system may count a thread for a moment after its end.
    wait_until(lambda: Resources.of_this_process().threads <= before.threads)
    after = Resources.of_this_process()
    assert after.files <= before.files
    assert after.children <= before.children


@pytest.mark.soak
@pytest.mark.component("torch", "transformers")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", EXECUTORS)
def test_resources_of_a_long_run_stay_flat(name: str, tmp_path: Path) -> None:
    measured = measure(tmp_path, name, 300)
    print(*table(name, measured), sep="\n")
    growth = slopes(measured.rows)
    growth.pop("memory")
    assert growth.pop("allocated") < 20  # MB in 100 steps
    assert max(growth.values()) < 1, growth
    assert not measured.files
    assert not measured.processes
