"""Defines fixtures for scorers; every test starts and ends without running services."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.visenv.scorers.chat_server import ChatServer, running
from tests.visenv.scorers.doubles import RELEASE
from visenv.scorers import Scorer, retry, services

_tags = itertools.count()


@pytest.fixture(autouse=True)
def no_services() -> Iterator[None]:
    RELEASE.clear()
    yield
    RELEASE.set()
    for key in list(services._services.known):
        services.release(key)


@pytest.fixture
def tag() -> str:
    """Return a name that no other backend of this process has."""
    return f"tag{next(_tags)}"


@pytest.fixture
def remote(tag: str) -> Any:
    """Return a function that makes handles to the server double of this test."""

    def make(**options: Any) -> Scorer:
        return Scorer("tests.visenv.scorers.doubles:RemoteDouble", tag=tag, **options)

    return make


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with running() as chat_server:
        yield chat_server


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the list of waits before further attempts, which are recorded and skipped."""
    noted: list[float] = []

    async def note(seconds: float) -> None:
        noted.append(seconds)

    monkeypatch.setattr(retry, "_sleep", note)
    return noted
