"""Tests that worker processes use the model of their parent process, or report why they cannot."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import textwrap
from concurrent.futures import wait
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from tests.listeners import Listener, listeners, require_listed
from tests.on_load import OnLoad
from tests.second_user import IS_POSSIBLE
from tests.visenv.scorers.doubles import BATCHES, Echo
from visenv.errors import ConfigurationError, ServiceError
from visenv.rollout.hosts import ProcessEnvHost
from visenv.scorers import Scorer, for_worker, services
from visenv.scorers.batching import loop
from visenv.scorers.services import resolve, share

MODEL = "tests.visenv.scorers.doubles:ModelDouble"
SPAWN = multiprocessing.get_context("spawn")
FORK = multiprocessing.get_context("fork")


@pytest.fixture
def model(tag: str, tmp_path: Path) -> Any:
    def make(**options: Any) -> Scorer:
        return Scorer(MODEL, folder=str(tmp_path), tag=tag, **options)

    return make


def loaded(folder: Path) -> list[int]:
    """Return the ids of the processes that loaded the model."""
    return [int(file.name.partition("-")[0]) for file in folder.iterdir()]


def _ask(pickled: bytes, contents: list[Any], results: Any) -> None:
    scorer: Scorer = cloudpickle.loads(pickled)
    futures = [scorer.submit(Echo(content)) for content in contents]
    wait(futures)
    outcomes = [
        error if (error := future.exception(0)) is not None else future.result(0)
        for future in futures
    ]
    results.put((os.getpid(), outcomes))


def start(scorer: Scorer, contents: list[Any], context: Any = SPAWN) -> tuple[Any, Any]:
    results = context.Queue()
    pickled = cloudpickle.dumps(scorer)
    child = context.Process(target=_ask, args=(pickled, contents, results))
    child.start()
    return child, results


def ask(scorer: Scorer, contents: list[Any], context: Any = SPAWN) -> tuple[int, list[Any]]:
    child, results = start(scorer, contents, context)
    found: tuple[int, list[Any]] = results.get(timeout=120)
    child.join(60)
    assert child.exitcode == 0
    return found


@pytest.mark.slow
def test_spawned_child_uses_the_instance_of_its_parent(
    model: Any, tag: str, tmp_path: Path
) -> None:
    scorer = model()
    mine = scorer.submit(Echo("mine")).result()
    pid, [theirs, again] = ask(scorer, ["theirs", "mine"])
    assert pid != os.getpid()
    assert theirs.value == {"value": "theirs", "batch": 1, "pid": os.getpid()}
    assert again == mine  # from the cache in the parent's memory
    assert loaded(tmp_path) == [os.getpid()]
    assert BATCHES[tag] == [["mine"], ["theirs"]]


@pytest.mark.slow
def test_requests_of_two_children_and_the_parent_are_one_batch(
    model: Any, tag: str, tmp_path: Path
) -> None:
    scorer = model(max_delay=60.0, max_batch_size=5)
    children = [start(scorer, [f"{name}1", f"{name}2"]) for name in ("a", "b")]
    mine = scorer.submit(Echo("mine"))
    found = [results.get(timeout=120)[1] for _, results in children]
    for child, _ in children:
        child.join(60)
    assert mine.result().value["batch"] == 5
    assert [verdict.value["batch"] for verdicts in found for verdict in verdicts] == [5] * 4
    assert [sorted(batch) for batch in BATCHES[tag]] == [["a1", "a2", "b1", "b2", "mine"]]
    assert loaded(tmp_path) == [os.getpid()]


@pytest.mark.slow
def test_parent_loads_the_model_when_only_a_child_asks(model: Any, tmp_path: Path) -> None:
    _, [verdict] = ask(model(), ["x"])
    assert verdict.value["pid"] == os.getpid()
    assert loaded(tmp_path) == [os.getpid()]


@pytest.mark.slow
def test_failures_reach_the_child_as_they_are(model: Any) -> None:
    scorer = model()
    _, [error, refusal] = ask(scorer, ["error", "refuse"])
    assert isinstance(error, ServiceError)
    assert error.boundary == scorer.name
    assert error.reason == "RuntimeError: a bug in the model"
    assert isinstance(refusal, ServiceError)


class Asker:
    """Builds its handle in its own process, as environments do from their options."""

    def __init__(self, folder: str, tag: str) -> None:
        self.scorer = Scorer(MODEL, folder=folder, tag=tag)

    def ask(self, content: str) -> tuple[int, int]:
        """Return the ids of the process that answers and of this process."""
        return self.scorer.submit(Echo(content)).result().value["pid"], os.getpid()

    def close(self) -> None:
        """Do nothing."""


@pytest.mark.slow
def test_handle_that_is_built_in_a_worker_uses_the_process_that_started_it(
    model: Any, tag: str, tmp_path: Path
) -> None:
    hosts = [ProcessEnvHost(partial(Asker, str(tmp_path), tag)) for _ in range(2)]
    for host in hosts:
        assert host.open() is None
        answering, asking = host.call("ask", {"content": "x"})
        assert answering == os.getpid() != asking
        host.close()
    assert loaded(tmp_path) == [os.getpid()]
    assert model().counts().batches == 1


def test_for_worker_creates_an_equal_scorer() -> None:
    assert pickle.loads(pickle.dumps(for_worker(dict)))() == {}


def _grandparent(pickled: bytes, results: Any) -> None:
    scorer: Scorer = pickle.loads(pickled)
    results.put(ask(scorer, ["grandchild"])[1][0].value["pid"])


@pytest.mark.slow
def test_grandchild_uses_the_instance_of_the_first_process(model: Any, tmp_path: Path) -> None:
    results = SPAWN.Queue()
    child = SPAWN.Process(target=_grandparent, args=(pickle.dumps(model()), results))
    child.start()
    assert results.get(timeout=120) == os.getpid()
    child.join(60)
    assert loaded(tmp_path) == [os.getpid()]


def test_forked_child_uses_the_instance_of_its_parent(model: Any, tmp_path: Path) -> None:
    scorer = model()
    scorer.submit(Echo("before")).result()
    pid, [verdict] = ask(scorer, ["forked"], FORK)
    assert pid != os.getpid()
    assert verdict.value["pid"] == os.getpid()
    # The connections and the loop of the parent are unchanged.
    assert scorer.submit(Echo("after")).result().value["pid"] == os.getpid()
    assert loaded(tmp_path) == [os.getpid()]


@pytest.mark.slow
def test_rule_and_a_server_are_rebuilt_in_the_child(remote: Any) -> None:
    rule = Scorer("rules", function="tests.visenv.scorers.doubles:double")
    for scorer, value in ((rule, 6), (remote(), 3)):
        assert services._services.server is None or b"visenv-" not in pickle.dumps(scorer)
        _, [verdict] = ask(scorer, [3])
        assert verdict.value == value
        assert services._services.known == {}  # this process ran no service


def test_handle_that_comes_back_to_its_process_is_local_again(model: Any) -> None:
    scorer = model()
    back = pickle.loads(pickle.dumps(scorer))
    assert back == scorer
    assert resolve(back) is resolve(scorer)
    assert copy.deepcopy(scorer) is scorer
    assert copy.copy(scorer) is scorer


def test_model_on_another_machine_is_refused_with_advice(model: Any) -> None:
    elsewhere = pickle.loads(pickle.dumps(model()))
    elsewhere.parent = elsewhere.parent._replace(machine="node7/boot", pid=-1)
    with pytest.raises(ConfigurationError, match=r"another machine \(node7\).*vllm serve"):
        elsewhere.submit(Echo("x"))


def test_server_refuses_a_wrong_key(model: Any) -> None:
    scorer = pickle.loads(pickle.dumps(model()))
    scorer.parent = scorer.parent._replace(key=bytes(32), pid=-1)
    with pytest.raises(ServiceError, match="cannot be reached"):
        scorer.submit(Echo("x")).result()


def exchanged(key: bytes, pickled: bytes) -> bytes:
    """Send a key and a message to the socket of this process, and return the reply."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(300)
        connection.connect(share().path)
        connection.sendall(key + struct.pack(">QQ", 0, len(pickled)) + pickled)
        return connection.recv(16)


@pytest.mark.attack("servers: the scorers' socket reads nothing before its key")
@pytest.mark.parametrize("key", [b"", bytes(32), b"\0" * 31, b"x" * 10_000])
def test_socket_unpickles_nothing_before_the_key(key: bytes, tmp_path: Path) -> None:
    assert exchanged(key, pickle.dumps(OnLoad(tmp_path / "refused"))) == b""
    assert not (tmp_path / "refused").exists()
    assert exchanged(share().key, pickle.dumps(OnLoad(tmp_path / "accepted"))) != b""
    assert (tmp_path / "accepted").exists()


@pytest.mark.attack("servers: the table of listeners is complete")
@pytest.mark.attack("servers: another user cannot use a private socket or a port with a credential")
def test_socket_is_as_documented_and_another_user_cannot_connect(second_user: Any) -> None:
    own = Listener(share().path)
    assert own in listeners([os.getpid()])
    require_listed("scorers", {own})
    assert second_user([own], "x" * 100) == [["PermissionError" if IS_POSSIBLE else ""]]


@pytest.mark.attack("keys: an API key is read at each request, and never saved, logged or pickled")
def test_key_of_the_socket_is_not_shown(model: Any) -> None:
    address = share()
    assert repr(address) == f"Address(pid={os.getpid()})"
    assert address.key.hex() not in repr(pickle.loads(pickle.dumps(model())))
    assert oct(Path(address.path).parent.stat().st_mode & 0o777) == "0o700"


PARENT = """
    import pickle, sys, time
    from visenv.scorers import Scorer
    scorer = Scorer("tests.visenv.scorers.doubles:ModelDouble", folder=sys.argv[1], tag="t",
                    timeout=600.0)
    sys.stdout.buffer.write(pickle.dumps(scorer).hex().encode() + b"\\n")
    sys.stdout.flush()
    time.sleep(600)
"""


@pytest.mark.slow
def test_parent_that_dies_gives_the_child_a_service_error_and_no_hang(tmp_path: Path) -> None:
    # Here this process acts as the child: it holds a handle that another process pickled.
    command = [sys.executable, "-c", textwrap.dedent(PARENT), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        scorer = pickle.loads(bytes.fromhex(parent.stdout.readline().decode()))
        assert scorer.submit(Echo("x")).result().value["pid"] == parent.pid
        hanging = scorer.submit(Echo("hang"))
        while len(loaded(tmp_path)) < 1 or scorer.counts().sent < 2:
            pass  # wait until the model hangs
        assert not hanging.done()
        parent.send_signal(signal.SIGKILL)
        with pytest.raises(ServiceError, match=r"cannot be reached: the process has ended"):
            hanging.result()
    with pytest.raises(ServiceError, match="the process that holds the model cannot be reached"):
        scorer.submit(Echo("y")).result()


def _leave(pickled: bytes) -> None:
    scorer: Scorer = pickle.loads(pickled)
    scorer.submit(Echo("hang"))
    while scorer.counts().sent < 1:
        pass
    os._exit(3)


@pytest.mark.slow
def test_child_that_dies_does_not_disturb_the_parent(model: Any) -> None:
    scorer = model(max_batch_size=1, timeout=0.5)
    child = SPAWN.Process(target=_leave, args=(pickle.dumps(scorer),))
    child.start()
    child.join(60)
    assert child.exitcode == 3
    with pytest.raises(ServiceError):  # the model still hangs
        scorer.submit(Echo("x")).result()
    _, [verdict] = ask(Scorer("rules", function="tests.visenv.scorers.doubles:double"), [1])
    assert verdict.value == 2


@pytest.mark.slow
def test_socket_is_removed_at_exit(tmp_path: Path) -> None:
    program = (
        "import os\nfrom visenv.scorers.services import share\nprint(share().path)\n"
        "if os.fork() == 0: raise SystemExit\nos.wait()\nassert os.path.exists(share().path)"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert not Path(done.stdout.strip()).parent.exists()


def test_pickling_inside_the_loop_of_scorers_does_not_block_it(model: Any) -> None:
    async def pickle_there() -> bytes:
        return pickle.dumps(model())

    assert loop.run(pickle_there())
