"""Tests the pool of hosts: reuse, recycling, the memory budget, and hosts that end with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from typing_extensions import override

from visenv.errors import ConfigurationError, ServiceError
from visenv.simulators.host import ChildHost
from visenv.simulators.pool import SimulatorPool
from visenv.simulators.settings import SimulatorSpec

MakeSpec = Callable[..., SimulatorSpec]


@pytest.fixture
def pool() -> Iterator[SimulatorPool]:
    made = SimulatorPool(budget_bytes=2 * 2**30, wait_s=0.3)
    yield made
    made.close()


def pid(host: object) -> int:
    assert isinstance(host, ChildHost)
    return host.pid


def test_host_that_was_given_back_is_lent_again(pool: SimulatorPool, spec: MakeSpec) -> None:
    first = pool.borrow(spec(), {})
    pool.give_back(first)
    assert pool.borrow(spec(), {}) is first


def test_spec_that_differs_gets_another_host(pool: SimulatorPool, spec: MakeSpec) -> None:
    first = pool.borrow(spec(), {})
    pool.give_back(first)
    assert pool.borrow(spec({"level": 2}), {}) is not first


def test_host_of_the_same_task_comes_first(pool: SimulatorPool, spec: MakeSpec) -> None:
    tasks = [{"world": "kitchen", "from": 1}, {"world": "desk", "from": 2}]
    hosts = [pool.borrow(spec(), task) for task in tasks]
    for host, task in zip(hosts, tasks, strict=True):
        host.reset(task)
        pool.give_back(host)
    assert pool.borrow(spec(), {"world": "kitchen", "from": 9}) is hosts[0]


def test_host_that_failed_is_replaced(pool: SimulatorPool, spec: MakeSpec) -> None:
    first = pool.borrow(spec(), {})
    with pytest.raises(ServiceError):
        first.reset({"reset": "raise"})
    pool.give_back(first)
    second = pool.borrow(spec(), {})
    assert second.reset({"from": 2}).facts == {"count": 2}


def test_host_that_died_while_it_was_idle_is_replaced(pool: SimulatorPool, spec: MakeSpec) -> None:
    first = pool.borrow(spec(), {})
    pool.give_back(first)
    first.kill()
    pid_before = pid(first)
    second = pool.borrow(spec(), {})
    assert pid(second) != pid_before
    assert second.reset({}).facts == {"count": 0}


@pytest.mark.slow
def test_host_that_grew_is_replaced_between_episodes(pool: SimulatorPool, spec: MakeSpec) -> None:
    made = spec(recycle_bytes=150 * 2**20)
    first = pool.borrow(made, {})
    first.reset({"reset": "grow"})
    pool.give_back(first)
    assert not first.is_alive()
    assert pool.borrow(made, {}) is not first


def test_simulators_run_within_the_budget(pool: SimulatorPool, spec: MakeSpec) -> None:
    hosts = [pool.borrow(spec(), {}), pool.borrow(spec(), {})]  # a new one counts as 1 GiB
    pool.budget_bytes = sum(host.memory_bytes() for host in hosts) + 2**20
    with pytest.raises(ServiceError, match="2 simulators use the memory budget"):
        pool.borrow(spec(), {})


@pytest.mark.parametrize(("given", "budget"), [("1.5", 3 * 2**29), ("8 GB", None), ("inf", None)])
def test_memory_budget_is_a_number_of_gib(
    monkeypatch: pytest.MonkeyPatch, given: str, budget: int | None
) -> None:
    monkeypatch.setenv("VISENV_SIMULATOR_MEMORY", given)
    if budget is None:
        with pytest.raises(ConfigurationError, match="must be a number of GiB such as 16"):
            SimulatorPool()
    else:
        assert SimulatorPool().budget_bytes == budget


def test_memory_is_reserved_for_a_start_only_while_it_lasts(
    pool: SimulatorPool, spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = pool.borrow(spec(), {})

    class Slow(ChildHost):
        @override
        def start(self) -> None:
            pool.give_back(first)  # now the memory of such a simulator is known
            super().start()

    monkeypatch.setattr("visenv.simulators.pool.ChildHost", Slow)
    pool.borrow(spec({"level": 2}), {})
    assert pool._pending == 0


def test_borrower_waits_until_a_simulator_is_given_back(
    pool: SimulatorPool, spec: MakeSpec
) -> None:
    pool.budget_bytes, pool._wait_s = 2**20, 10
    host = pool.borrow(spec(), {})  # one host may always run
    threading.Timer(0.2, pool.give_back, (host,)).start()
    assert pool.borrow(spec(), {}) is host


def test_free_simulator_of_another_kind_makes_room(pool: SimulatorPool, spec: MakeSpec) -> None:
    pool.budget_bytes = 2**20
    first = pool.borrow(spec(), {})
    pool.give_back(first)
    pool.borrow(spec({"level": 2}), {})
    assert not first.is_alive()


@pytest.mark.slow
def test_threads_get_hosts_of_their_own(pool: SimulatorPool, spec: MakeSpec) -> None:
    pool.budget_bytes = 8 * 2**30
    counts: list[int] = []

    def play(start: int) -> None:
        host = pool.borrow(spec(), {})
        host.reset({"from": start})
        for _ in range(20):
            found = host.act({"add": 1}).facts["count"]
        counts.append(found - start)
        pool.give_back(host)

    threads = [threading.Thread(target=play, args=(100 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [20] * 4


def test_closing_the_pool_ends_all_its_simulators(spec: MakeSpec) -> None:
    pool = SimulatorPool(budget_bytes=4 * 2**30)
    lent, free = pool.borrow(spec(), {}), pool.borrow(spec(), {})
    pool.give_back(free)
    pool.close()
    with pytest.raises(ServiceError):
        lent.act({})
    assert not free.is_alive()
    pool.give_back(lent)
    assert pool.hosts() == []
