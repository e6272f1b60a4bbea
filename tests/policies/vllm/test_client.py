"""Tests `ServerClient` with a server that dies, restarts, hangs, or gets weights from others."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from tests.policies.vllm.fake_server import FakeServer
from tests.waiting import LIMIT
from visenv.errors import PolicyError

torch = pytest.importorskip("torch")

from visenv.policies.vllm.client import ServerClient
from visenv.policies.vllm.control import ServerAddress, ServerControl
from visenv.policies.vllm.request import EngineOutput, EngineRequest, encode
from visenv.policies.vllm.sampler import EngineSampler
from visenv.policies.vllm.weights import WeightUpdate
from visenv.policies.vllm.worker import WeightSums

pytestmark = [pytest.mark.component("torch", "transformers"), pytest.mark.timeout(120)]

REQUEST = EngineRequest([1, 2, 3], (), 1.0, 0, 5)
MANIFEST: Any = SimpleNamespace(
    shapes={"model.norm.weight": (2,)}, tied=False, embedding="", head=""
)


class Courier:
    """Delivers weights to the server; may wait forever."""

    def __init__(self, server: FakeServer) -> None:
        self.server = server
        self.broken = False
        self.going = threading.Event()
        self.going.set()

    def send(self, delivery: WeightUpdate) -> None:
        for _ in delivery:
            self.going.wait()
        self.server.take(delivery.sums)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    made = FakeServer()
    yield made
    made.die()


@pytest.fixture
def connect(server: FakeServer) -> Iterator[Callable[..., ServerClient]]:
    made: list[ServerClient] = []

    def connect(**options: Any) -> ServerClient:
        told: dict[str, Any] = {"timeout": 30.0, "transfer_timeout": 5.0, "retries": 2}
        told |= {"sleep_level": 0, "alive": lambda: True} | options
        alive = told.pop("alive")
        control = ServerControl(ServerAddress(server.url), 5.0, 2)
        made.append(ServerClient(control, Courier(server), 0, alive, **told))
        return made[-1]

    yield connect
    for each in made:
        each.close()


def delivery(value: float, count: int = 1) -> WeightUpdate:
    weights = [("model.norm.weight", torch.full((2,), value))] * count
    return WeightUpdate(MANIFEST, weights, torch.float32, packs=False)


def client_in_use(connect: Callable[..., ServerClient]) -> ServerClient:
    """Return a client that has sent weights as version 3 and played a turn with them."""
    client = connect()
    client.load(delivery(1.0), 3)
    client.submit(REQUEST).result(LIMIT)
    return client


def begun_turn(server: FakeServer, client: ServerClient) -> Future[EngineOutput]:
    """Return a turn that the server has begun and continues once ``server.sampling`` is set."""
    begun = threading.Event()
    server.asked = begun.set
    server.sampling.clear()
    turn = client.submit(REQUEST)
    assert begun.wait(5)
    return turn


def test_turn_is_accepted_from_the_weights_that_were_sent(
    connect: Callable[..., ServerClient],
) -> None:
    client = connect()
    assert client.submit(REQUEST).result(LIMIT).version == 0
    client.load(delivery(1.0), 3)
    piece = client.submit(REQUEST).result(LIMIT)
    assert (piece.token_ids, piece.logprobs, piece.version) == ([7], [-0.5], 3)


def test_closing_a_client_fails_the_turns_that_wait_for_a_dead_server(
    server: FakeServer, connect: Callable[..., ServerClient]
) -> None:
    client = connect(retries=10**6)
    server.die()
    turns = [client.submit(REQUEST) for _ in range(3)]
    time.sleep(0.5)  # the turns wait for their next attempt
    client.close()
    for turn in turns:
        with pytest.raises(PolicyError, match=r"connection .* was closed"):
            turn.result(LIMIT)
    with pytest.raises(PolicyError, match="was closed"):
        client.submit(REQUEST).result(LIMIT)


def test_client_that_took_a_turn_is_asked_whether_it_works() -> None:
    """Check that the client that took a turn reports its problem, even if its successor works."""

    class Client:
        def __init__(self, problem: str) -> None:
            self.problem = problem

        def check(self) -> None:
            if self.problem:
                raise PolicyError(self.problem)

    dead, healthy = Client("died"), Client("")
    sampler: Any = SimpleNamespace(_patience=0.01, _client=lambda: healthy)
    waiting: Future[EngineOutput] = Future()
    with pytest.raises(PolicyError, match="died"):
        asyncio.run(EngineSampler._answer(sampler, dead, waiting))  # type: ignore[arg-type]


def test_server_that_was_restarted_is_refused_until_it_has_the_weights(
    server: FakeServer, connect: Callable[..., ServerClient]
) -> None:
    client = client_in_use(connect)
    server.start_anew()
    with pytest.raises(PolicyError, match="does not hold the weights of version 3"):
        client.submit(REQUEST).result(LIMIT)
    assert client.stale
    assert client.lost
    with pytest.raises(PolicyError, match="lacks the current weights"):
        client.submit(REQUEST).result(LIMIT)


def test_server_that_was_restarted_during_a_turn_is_refused(
    server: FakeServer, connect: Callable[..., ServerClient]
) -> None:
    turn = begun_turn(server, client_in_use(connect))
    server.start_anew()
    server.sampling.set()
    with pytest.raises(PolicyError, match="does not hold the weights of version 3"):
        turn.result(LIMIT)


def test_weights_that_another_program_sends_are_noticed_by_the_turns_it_interrupts(
    server: FakeServer, connect: Callable[..., ServerClient]
) -> None:
    turn = begun_turn(server, client_in_use(connect))
    loaded = threading.Event()
    server.answering = partial(loaded.wait, 10)
    connect().load(delivery(2.0), 3)  # the same version with other weights
    loaded.set()
    with pytest.raises(PolicyError, match="another program has sent it others"):
        turn.result(LIMIT)


def test_weights_that_another_program_sends_are_noticed_by_turns_that_wait_for_them(
    server: FakeServer, connect: Callable[..., ServerClient]
) -> None:
    """Check a turn that begins after an interruption, before the last interrupted turn ends."""
    client = client_in_use(connect)
    turns = {begun_turn(server, client), begun_turn(server, client)}
    answers, delayed = count(), threading.Event()
    server.answering = lambda: next(answers) == 0 or delayed.wait(10)
    server.answer("/pause?mode=abort", {})
    first, second = wait(turns, 10, FIRST_COMPLETED)
    waiting = begun_turn(server, client)
    delayed.set()
    for turn in (*first, *second):  # both were sampled from the client's weights
        assert turn.result(LIMIT).finish == "abort"
    connect()._transfer.send(delivery(2.0))
    server.sampling.set()
    server.answer("/resume", {})
    with pytest.raises(PolicyError, match="another program has sent it others"):
        waiting.result(LIMIT)


def test_weights_that_another_program_sends_between_turns_are_noticed_by_the_next(
    connect: Callable[..., ServerClient],
) -> None:
    client = client_in_use(connect)
    connect().load(delivery(2.0), 3)
    with pytest.raises(PolicyError, match="another program has sent it others"):
        client.submit(REQUEST).result(LIMIT)


def test_clients_of_one_server_are_sent_the_same_weights(
    server: FakeServer, connect: Callable[..., ServerClient]
) -> None:
    first, second = connect(), connect(leads=False)
    first.load(delivery(1.5), 4)
    second.load(delivery(1.5), 4)
    assert second.submit(REQUEST).result(LIMIT).version == 4
    # If the first client could not send weights, turns of the second are rejected.
    first.load(delivery(2.5), 5)
    second.load(delivery(3.5), 5)
    with pytest.raises(PolicyError, match="does not hold the weights of version 5"):
        second.submit(REQUEST).result(LIMIT)


def test_server_with_weights_of_another_client_is_refused(
    server: FakeServer, connect: Callable[..., ServerClient]
) -> None:
    connect().load(delivery(1.0), 9)
    with pytest.raises(PolicyError, match="does not hold the weights of version 0"):
        connect().submit(REQUEST).result(LIMIT)


def test_server_that_is_another_is_found_before_weights_are_sent_to_it(
    server: FakeServer, connect: Callable[..., ServerClient]
) -> None:
    client = connect()
    client.load(delivery(1.0), 3)
    client.find()
    assert not client.lost
    server.start_anew()
    client.find()
    assert client.lost


def test_weights_that_come_while_a_turn_is_written_down_are_those_it_is_labeled_with(
    server: FakeServer, connect: Callable[..., ServerClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect()
    client.load(delivery(1.0), 1)
    begun, go_on = threading.Event(), threading.Event()

    def slowly(*arguments: Any) -> dict[str, Any]:
        begun.set()
        go_on.wait(10)
        return encode(*arguments)

    monkeypatch.setattr("visenv.policies.vllm.client.encode", slowly)
    turn = client.submit(REQUEST)
    assert begun.wait(5)
    client.load(delivery(2.0), 2)
    go_on.set()
    assert turn.result(LIMIT).version == 2


def test_transfer_whose_receiver_hangs_ends_with_an_error(
    connect: Callable[..., ServerClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect(transfer_timeout=0.3)
    courier: Any = client._transfer
    courier.going.clear()
    with pytest.raises(PolicyError, match=r"transfer of weights has taken longer than 0\.3 s"):
        client.load(delivery(1.0), 1)
    assert client.broken  # the next `load` connects again
    assert client.stale
    courier.going.set()


def test_transfer_ends_when_its_server_dies(connect: Callable[..., ServerClient]) -> None:
    state = {"alive": True}
    # A wait for `transfer_timeout` would exceed the time limit of the test.
    client = connect(alive=lambda: state["alive"], transfer_timeout=3600.0)
    courier: Any = client._transfer
    courier.going.clear()
    threading.Timer(0.3, state.update, kwargs={"alive": False}).start()
    with pytest.raises(PolicyError, match="died"):
        client.load(delivery(1.0), 1)
    courier.going.set()


def test_error_of_the_trainer_is_reported(connect: Callable[..., ServerClient]) -> None:
    def broken() -> Iterator[tuple[str, Any]]:
        raise RuntimeError("out of memory")
        yield

    client = connect()
    wrong = WeightUpdate(MANIFEST, broken(), torch.float32, packs=False)
    with pytest.raises(PolicyError, match="reading them failed with RuntimeError"):
        client.load(wrong, 1)
    client.load(delivery(1.0), 2)
    assert client.submit(REQUEST).result(LIMIT).version == 2


@pytest.mark.parametrize("fault", ["the server refuses", "a wrong shape"])
def test_failed_transfer_leaves_the_other_weights_to_be_gathered(
    server: FakeServer,
    connect: Callable[..., ServerClient],
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
) -> None:
    """Check that all weights are gathered: under ZeRO-3, a process that stops blocks the others."""
    shapes = {f"model.layers.{layer}.norm.weight": (2,) for layer in range(5)}
    gathered: list[str] = []

    def trainers() -> Iterator[tuple[str, Any]]:
        for number, name in enumerate(shapes):
            gathered.append(name)
            yield name, torch.zeros(3 if fault == "a wrong shape" and number == 1 else 2)

    def refuse(delivery: WeightUpdate) -> None:
        next(iter(delivery))
        raise RuntimeError("server refused")

    client, weights = connect(), trainers()
    if fault == "the server refuses":
        monkeypatch.setattr(client._transfer, "send", refuse)
    manifest: Any = SimpleNamespace(shapes=shapes, tied=False, embedding="", head="")
    with pytest.raises(PolicyError, match=r"server refused|must be"):
        client.load(WeightUpdate(manifest, weights, torch.float32, packs=False), 1)
    assert len(gathered) < 5
    for _ in weights:  # like `WeightSync`
        pass
    assert gathered == list(shapes)


class Model(torch.nn.Module):  # type: ignore[name-defined,misc]
    """Holds two weights, one of them a matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.matrix = torch.nn.Parameter(torch.zeros(3, 200))
        self.norm = torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16))


def test_worker_finds_weights_by_name_and_prefix() -> None:
    worker = WeightSums()
    model = Model()
    worker.model_runner = SimpleNamespace(get_model=lambda: model)
    assert worker.visenv_holds("") == {"same": True}
    assert worker.visenv_holds("a") == {"same": False}
    worker.visenv_mark("a")
    assert worker.visenv_marked() == {"identity": "a"}
    assert worker.visenv_holds("a") == {"same": True}
    assert worker.visenv_holds("b") == {"same": False}
    with torch.no_grad():
        model.norm[3] += 1  # like a dropping sleep, or another's transfer
    assert worker.visenv_holds("a") == {"same": False}


def test_identities_distinguish_weights_and_versions() -> None:
    def named(value: float, version: int) -> str:
        given = delivery(value)
        list(given)
        return given.identity(version)

    assert named(1.0, 3) == named(1.0, 3)
    assert len({named(1.0, 3), named(1.0, 4), named(2.0, 3)}) == 3
