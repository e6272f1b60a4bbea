"""Provides the single instance of each scorer in a process, or access to the parent's instance."""

from __future__ import annotations

import json
import os
import pickle
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar, cast

from visenv.errors import ConfigurationError, ServiceError
from visenv.scorers.backend import backend_class
from visenv.scorers.handle import ScorerHandle
from visenv.scorers.request import ScoreRequest
from visenv.scorers.service import ScorerService, Service, ServiceCounts, Verdict
from visenv.scorers.sharing import ScorerAddress, ScorerClient, ScorerServer, this_machine

T = TypeVar("T")


class _Services:
    """Holds the services of this process; a forked child starts without services."""

    def __init__(self, parent: ScorerAddress | None = None) -> None:
        self.lock = threading.RLock()
        self.known: dict[str, Service] = {}
        self.clients: dict[ScorerAddress, ScorerClient] = {}
        self.server: ScorerServer | None = None
        self.parent = parent


_services = _Services()
_inherited: list[_Services] = []  # sockets and database connections that a fork must not use


def resolve(scorer: ScorerHandle) -> Service:
    """Return the instance that answers for a handle; the first call creates it.

    Raises:
        UntrustedNameError: If a received file gives the model, the server or the function
            (`visenv.received`); it may only use defaults, such as the packaged model.
        ConfigurationError: If the backend cannot be created, or its model is on another machine.
    """
    if scorer.received is not None and scorer.own_texts:
        scorer.received.require("scorer", scorer.name, scorer.own_texts)
    service = _services.known.get(scorer.key)
    if service is None:
        with _services.lock:
            service = _services.known.get(scorer.key)
            if service is None:
                service = _services.known[scorer.key] = _make(scorer)
    return service


def release(key: str) -> None:
    """Close the instance of this process, if there is one."""
    with _services.lock:
        service = _services.known.pop(key, None)
    if service is not None:
        service.close()


def share() -> ScorerAddress:
    """Return the address at which worker processes can use the models of this process.

    If this process itself uses the models of its parent, the result is the parent's address.
    """
    with _services.lock:
        if _services.parent is not None:
            return _services.parent
        if _services.server is None:
            _services.server = ScorerServer(_answer)
        return _services.server.address


def use_parent(address: ScorerAddress) -> None:
    """Make all handles in this process use the models at this address.

    Backends without a model are not affected.
    """
    if address.pid != os.getpid():
        with _services.lock:
            _services.parent = address


def for_worker(make: Callable[[], T]) -> Callable[[], T]:
    """Return a picklable function that calls `make` in a worker process.

    Handles that are created in the worker process use the models of this process (`use_parent`).

    Args:
        make: Makes an object, for example an environment.
    """
    return partial(_make_in_worker, share(), make)


def _make_in_worker(parent: ScorerAddress, make: Callable[[], T]) -> T:
    use_parent(parent)
    return make()


def _make(scorer: ScorerHandle) -> Service:
    made = backend_class(scorer.backend)
    parent = scorer.parent or _services.parent
    if parent is None or parent.pid == os.getpid() or not made.shared_with_children:
        return ScorerService(
            scorer.name,
            made,
            scorer.options,
            deterministic=scorer.deterministic,
            cache_dir=scorer.cache_dir,
        )
    if parent.machine != this_machine():
        raise ConfigurationError(
            f"The scorer {scorer.name!r} holds a model in a process on another machine "
            f"({parent.machine.partition('/')[0]}). Serve the model, for example by `vllm serve`, "
            'and use Scorer("openai", model=..., base_url=...).'
        )
    client = _services.clients.setdefault(parent, ScorerClient(parent))
    return _RemoteService(scorer, client)


class _RemoteService:
    """Sends the requests of a handle to the process that holds the model."""

    def __init__(self, scorer: ScorerHandle, client: ScorerClient) -> None:
        self._name = scorer.name
        self._description = scorer.description()
        self._client = client

    def recall(self, digest: str) -> Verdict | None:
        """Return None, because the other process has the memory."""
        return None

    async def score(self, request: ScoreRequest, digest: str) -> Verdict:
        """Return the verdict of the other process; see `ScorerService.score`."""
        return cast("Verdict", await self._call("score", request, digest))

    async def counts(self) -> ServiceCounts:
        """Return the counts of the other process's instance."""
        return cast("ServiceCounts", await self._call("counts"))

    def close(self) -> None:
        """Do nothing, because the other process owns the instance."""

    async def _call(self, method: str, *arguments: Any) -> Any:
        message = pickle.dumps((self._description, method, arguments))
        try:
            reply = await self._client.call(message)
        except OSError as error:
            reason = f"the process that holds the model cannot be reached: {error}"
            raise ServiceError(self._name, reason) from error
        result = pickle.loads(reply)  # noqa: S301  it comes from the process that holds our key
        if isinstance(result, Exception):
            raise result
        return result


async def _answer(message: bytes) -> bytes:
    """Return the reply to a worker process: a result or an exception, pickled."""
    name = "scorer"
    try:
        description, method, arguments = pickle.loads(message)  # noqa: S301  the sender knew our key
        name = description["backend"]
        result = await getattr(_service_of(description), method)(*arguments)
        return pickle.dumps(result)
    except Exception as error:  # noqa: BLE001  it is raised in the other process
        return _pickled_error(name, error)


def _service_of(description: Mapping[str, Any]) -> Service:
    service = _services.known.get(json.dumps(description, sort_keys=True))
    return service or resolve(ScorerHandle.from_description(description))


def _pickled_error(name: str, error: Exception) -> bytes:
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)  # noqa: S301  some exceptions can be pickled and not read back
    except Exception:  # noqa: BLE001  an exception may hold anything
        pickled = pickle.dumps(ServiceError(name, f"{type(error).__name__}: {error}"))
    return pickled


def _before_fork() -> None:
    # A forked child uses the models of its parent at this address; it must not load its own.
    if any(
        isinstance(each, ScorerService) and each.backend.shared_with_children
        for each in list(_services.known.values())
    ):
        share()


def _after_fork_in_child() -> None:
    global _services  # noqa: PLW0603  a fork copies the process, and not its threads
    inherited = _services
    _inherited.append(inherited)
    parent = inherited.parent
    if inherited.server is not None:
        parent = inherited.server.address
        inherited.server.close_inherited()
    for client in inherited.clients.values():
        client.close_inherited()
    _services = _Services(parent)


os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
