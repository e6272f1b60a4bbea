"""Tests the child process of a decoder: limits, crashes, threads, forks and the end of the host."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from visenv.child_process.host import ChildLimits
from visenv.decoding import decoder as decoders
from visenv.decoding.decoder import DecoderError, DecoderProcess, Source
from visenv.errors import ConfigurationError

TOY = """
import os, signal, time
from visenv.decoding.child.target import ContentError, DecoderTarget, OpenSources


class Toy(DecoderTarget):
    def start(self, options):
        self.sources = OpenSources(2, bytes, lambda source: None)
        self.kept = None

    def pid(self, request, arrays):
        return {"pid": os.getpid()}, {}

    def content(self, request, arrays):
        return {}, {"content": memoryview(self.sources.get(request, arrays))}

    def bad(self, request, arrays):
        raise ContentError("is bad")

    def fault(self, request, arrays):
        raise RuntimeError("the library is in an unknown state")

    def crash(self, request, arrays):
        os.kill(os.getpid(), signal.SIGSEGV)

    def spin(self, request, arrays):
        while True:
            pass

    def sleep(self, request, arrays):
        time.sleep(600)

    def grow(self, request, arrays):
        self.kept = bytearray(request["bytes"])
        return {}, {}


class Missing(DecoderTarget):
    def start(self, options):
        import no_such_package
"""

START = (sys.executable, "-X", "dev", "-W", "error", "-W", "ignore::DeprecationWarning")
"""Starts Python such that a resource that is not closed is an error on standard error."""

LIMITS = ChildLimits(call_s=60, memory_bytes=2**30, data_bytes=2**28, processor_s=2)
SOURCE = Source("a", None, b"some bytes")

Make = Callable[..., DecoderProcess]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Yield a function that makes decoders of the toy; close them at the end."""
    package = tmp_path / "toydecoders"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "target.py").write_text(TOY)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    made: list[DecoderProcess] = []

    def make_decoder(name: str = "Toy", limits: ChildLimits = LIMITS) -> DecoderProcess:
        made.append(DecoderProcess("toy", f"toydecoders.target:{name}", limits, extra="data"))
        return made[-1]

    yield make_decoder
    for decoder in made:
        decoder.close()
        decoders._decoders.remove(decoder)
    sys.modules.pop("toydecoders", None)


def pid_of(decoder: DecoderProcess) -> int:
    pid: int = decoder.call("pid", SOURCE)[0]["pid"]
    return pid


def is_running(pid: int) -> bool:
    try:
        return "zombie" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def wait_until_gone(pid: int) -> None:
    limit = time.monotonic() + 60
    while is_running(pid):
        assert time.monotonic() < limit, f"{pid} is still running"
        time.sleep(0.01)


def test_child_is_shared_by_calls_and_does_not_load_visenv(make: Make) -> None:
    decoder = make()
    pid = pid_of(decoder)
    assert pid == decoder.pid != os.getpid()
    assert pid_of(decoder) == pid
    maps = Path(f"/proc/{pid}/maps").read_text()
    assert "numpy" not in maps


def test_content_is_sent_once_and_again_to_a_new_child(make: Make) -> None:
    decoder = make()
    for _ in range(2):
        assert bytes(decoder.call("content", SOURCE)[1]["content"]) == b"some bytes"
    # The child keeps the content under the key: other bytes under the same key are not sent.
    changed = Source("a", None, b"other bytes")
    assert bytes(decoder.call("content", changed)[1]["content"]) == b"some bytes"
    decoder.close()
    assert bytes(decoder.call("content", changed)[1]["content"]) == b"other bytes"


def test_content_that_cannot_be_decoded_is_a_result_and_the_child_goes_on(make: Make) -> None:
    decoder = make()
    pid = pid_of(decoder)
    assert decoder.call("bad", SOURCE)[0] == {"problem": "is bad"}
    assert pid_of(decoder) == pid


@pytest.mark.attack("decoders: a PDF cannot end or stop the process")
@pytest.mark.parametrize(
    ("method", "request_", "cause"),
    [
        ("fault", {}, "RuntimeError: the library is in an unknown state"),
        ("crash", {}, "Segmentation fault"),
        ("spin", {}, "CPU time limit exceeded"),
        ("grow", {"bytes": 2**29}, "MemoryError"),
    ],
)
def test_child_that_exceeds_a_limit_is_replaced_and_the_error_names_the_limits(
    make: Make, method: str, request_: dict[str, int], cause: str
) -> None:
    decoder = make()
    pid = pid_of(decoder)
    with pytest.raises(DecoderError, match=cause) as error:
        decoder.call(method, Source("b", None), **request_)
    assert "256 MiB of memory, 2 s of processor time and 60 s" in str(error.value)
    wait_until_gone(pid)
    assert pid_of(decoder) != pid


def test_call_that_sleeps_is_ended_by_the_limit_of_time(make: Make) -> None:
    decoder = make(limits=ChildLimits(call_s=0.2, data_bytes=2**28, processor_s=2))
    pid = pid_of(decoder)
    with pytest.raises(DecoderError, match=r"no reply within 0\.2 s"):
        decoder.call("sleep", SOURCE)
    wait_until_gone(pid)


@pytest.mark.attack("decoders: a PDF cannot end or stop the process")
def test_source_that_stopped_the_decoder_three_times_is_given_up(make: Make) -> None:
    decoder = make()
    hostile = Source("hostile", None)
    for _ in range(3):
        with pytest.raises(DecoderError, match="Segmentation fault"):
            decoder.call("crash", hostile)
    pid = pid_of(decoder)
    with pytest.raises(DecoderError, match="is not read any more, because it stopped toy 3 times"):
        decoder.call("pid", hostile)
    assert pid_of(decoder) == pid


def test_child_whose_process_was_killed_is_replaced(make: Make) -> None:
    decoder = make()
    pid = pid_of(decoder)
    os.kill(pid, signal.SIGKILL)
    wait_until_gone(pid)
    assert pid_of(decoder) != pid


def test_missing_library_names_the_extra(make: Make) -> None:
    with pytest.raises(ConfigurationError, match=r"'toy': pip install 'visenv\[data\]'.*no_such"):
        make("Missing").call("pid", SOURCE)


def test_threads_share_the_child_and_get_their_own_replies(make: Make) -> None:
    decoder = make()
    replies: list[tuple[bytes, bytes]] = []

    def work(number: int) -> None:
        content = str(number).encode() * 1000
        for _ in range(10):
            _, arrays = decoder.call("content", Source(str(number), None, content))
            replies.append((bytes(arrays["content"]), content))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(replies) == 40
    assert all(got == sent for got, sent in replies)


def test_close_ends_a_call_that_waits(make: Make) -> None:
    decoder = make()
    pid = pid_of(decoder)
    errors: list[Exception] = []

    def wait() -> None:
        try:
            decoder.call("sleep", SOURCE)
        except DecoderError as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    while not decoder._lock.locked():
        time.sleep(0.01)
    decoder.close()
    thread.join(60)
    wait_until_gone(pid)
    assert len(errors) == 1


def test_interrupted_call_leaves_no_reply_for_the_next_one(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = make()
    pid = pid_of(decoder)
    child = decoder._child
    assert child is not None

    def interrupted(deadline: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(child, "_read_reply", interrupted)
    with pytest.raises(KeyboardInterrupt):
        decoder.call("bad", SOURCE)
    assert pid_of(decoder) != pid


def answer_in_fork(decoder: DecoderProcess, answers: multiprocessing.Queue[int]) -> None:
    answers.put(pid_of(decoder))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_forked_process_has_a_child_of_its_own(make: Make) -> None:
    decoder = make()
    pid = pid_of(decoder)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    with decoder._lock:  # another thread may be in a call during the fork
        forked = context.Process(target=answer_in_fork, args=(decoder, answers))
        forked.start()
        theirs = answers.get(timeout=60)
        forked.join()
    assert theirs != pid
    wait_until_gone(theirs)
    assert pid_of(decoder) == pid


@pytest.mark.parametrize("end", ["exit", "kill"])
def test_child_ends_with_its_host_without_a_warning(make: Make, tmp_path: Path, end: str) -> None:
    make()
    program = f"""
import sys, time
sys.path.insert(0, {str(tmp_path)!r})
from tests.visenv.decoding.test_decoder import LIMITS, SOURCE, pid_of
from visenv.decoding.decoder import DecoderProcess
print(pid_of(DecoderProcess("toy", "toydecoders.target:Toy", LIMITS)), flush=True)
if {end == "kill"}:
    time.sleep(600)
"""
    host = subprocess.Popen(
        [*START, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    assert host.stdout is not None
    pid = int(host.stdout.readline())
    if end == "kill":
        host.kill()
    _, warnings = host.communicate(timeout=60)
    wait_until_gone(pid)
    assert warnings == ""
