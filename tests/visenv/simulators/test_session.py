"""Tests sessions: one host per episode, a snapshot in a pickle, a new host after a failure."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterator

import pytest

from visenv.errors import ServiceError
from visenv.simulators.pool import SimulatorPool, shared_pool
from visenv.simulators.session import SimulatorSession
from visenv.simulators.settings import SimulatorSpec


@pytest.fixture
def pool() -> Iterator[SimulatorPool]:
    made = SimulatorPool(budget_bytes=4 * 2**30)
    yield made
    made.close()


@pytest.fixture
def session(pool: SimulatorPool, spec: Callable[..., SimulatorSpec]) -> SimulatorSession:
    return SimulatorSession(spec(), pool)


def test_episodes_of_a_session_share_a_host(session: SimulatorSession) -> None:
    session.reset({"from": 1})
    first = session.host
    assert session.act({"add": 2}).facts == {"count": 3}
    assert session.reset({"from": 5}).facts == {"count": 5}
    assert session.host is first


@pytest.mark.slow
def test_session_replaces_a_host_that_grew(
    pool: SimulatorPool, spec: Callable[..., SimulatorSpec]
) -> None:
    session = SimulatorSession(spec(recycle_bytes=150 * 2**20), pool)
    session.reset({"reset": "grow"})
    first = session.host
    assert session.reset({"from": 5}).facts == {"count": 5}
    assert session.host is not first
    assert pool.hosts() == [session.host]


@pytest.mark.slow
def test_pickle_in_mid_episode_continues_from_its_snapshot(session: SimulatorSession) -> None:
    session.reset({"from": 1})
    session.act({"add": 2})
    copied = pickle.loads(pickle.dumps(session))
    session.act({"add": 100})
    try:
        assert copied.host is None
        assert copied.act({"add": 1}).facts == {"count": 4}
        assert copied.host is not session.host
        again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(copied))))
        assert again.act({"add": 1}).facts == {"count": 5}
        again.end()
    finally:
        copied.end()
        shared_pool().close()


def test_failed_episode_is_followed_by_one_on_another_host(session: SimulatorSession) -> None:
    session.reset({})
    first = session.host
    with pytest.raises(ServiceError, match="ended with status 7"):
        session.act({"do": "die"})
    with pytest.raises(ServiceError, match="no episode is in progress"):
        session.act({})
    assert session.reset({"from": 2}).facts == {"count": 2}
    assert session.host is not first


@pytest.mark.slow
def test_session_that_is_dropped_gives_its_host_back(
    pool: SimulatorPool, spec: Callable[..., SimulatorSpec]
) -> None:
    session = SimulatorSession(spec(), pool)
    session.reset({})
    host = session.host
    assert host is not None
    del session
    gc.collect()
    assert pool.borrow(spec(), {}) is host
