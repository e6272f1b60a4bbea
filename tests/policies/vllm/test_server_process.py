"""Tests the start and the end of a server process, mostly with a stand-in for vLLM's program."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.listeners import family, listeners, require_listed
from tests.policies.vllm.fake_server import FakeServer
from visenv.errors import ConfigurationError, PolicyError

pytestmark = [
    pytest.mark.component("vllm", "torch", "transformers"),
    pytest.mark.timeout(900),
]

# Stands in for vLLM's server: serves an application that answers everything, with the given
# middleware, and prints its arguments.
STAND_IN = """
import argparse, importlib, os, sys, uvicorn
print("arguments", sys.argv, flush=True)
parser = argparse.ArgumentParser()
for name in ("--middleware", "--uds", "--host", "--port"):
    parser.add_argument(name)
given, _ = parser.parse_known_args()
async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})
module, _, name = given.middleware.rpartition(".")
app = getattr(importlib.import_module(module), name)(app)
place = {"uds": given.uds} if given.uds else {"host": given.host, "port": int(given.port)}
uvicorn.run(app, lifespan="off", log_level="error", **place)
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that replaces vLLM's server in child processes by a program."""

    def replace(program: str) -> None:
        package = tmp_path / "vllm" / "entrypoints" / "openai"
        package.mkdir(parents=True)
        for folder in (package, package.parent, package.parent.parent):
            (folder / "__init__.py").touch()
        (package / "api_server.py").write_text(program)
        paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))

    return replace


@pytest.fixture
def settings(qwen3_folder: Path) -> Any:
    """Return settings whose videos need no module of vLLM."""
    from visenv.policies.vllm.settings import EngineSettings

    return EngineSettings(qwen3_folder, video="frames")


def own_port() -> int:
    """Return a port below those that the system assigns, so that no other program gets it."""
    return 20_000 + os.getpid() % 10_000


def test_server_ends_with_a_trainer_that_is_killed(
    tmp_path: Path, stand_in: Callable[[str], None]
) -> None:
    """Check the program `visenv.policies.vllm.serve`, with a server that only sleeps."""
    stand_in("print('up', flush=True)\nimport time; time.sleep(600)")
    sockets = tmp_path / "sockets"
    sockets.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "visenv.policies.vllm.serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"VISENV_SERVER_FOLDER": str(sockets)},
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.stdin.close()  # as the system does when the process at the other end dies
    assert process.wait(300) == -signal.SIGKILL
    assert not sockets.exists()
    process.stdout.close()


def test_server_restarts_at_the_same_socket_with_the_same_token(
    qwen3_folder: Path,
    settings: Any,
    stand_in: Callable[[str], None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from visenv.policies.vllm import VLLMServer, VLLMServerPolicy

    stand_in(STAND_IN)
    server = VLLMServer(settings)
    folder = Path(server.url.removeprefix("unix:")).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    for token in ("", "0" * 64):
        server.restart()
        with server.address.client(300.0) as client:
            assert client.get("/any").status_code == 200
        # Another process without the token gets an error that names the variable.
        monkeypatch.setenv("VISENV_SERVER_TOKEN", token)
        with pytest.raises(PolicyError, match=r"401.*Set VISENV_SERVER_TOKEN to the token"):
            VLLMServerPolicy(qwen3_folder, server.url, retries=0)
        assert server._process is not None
        os.killpg(server._process.pid, signal.SIGKILL)  # leaves its socket behind
        server._process.wait(300)
    assert server.address.token is not None
    assert server.address.token not in server._log.read_text()
    assert not caplog.records  # no warning of a server without a token
    server.stop()
    del server
    assert not folder.exists()


@pytest.mark.attack("servers: the table of listeners is complete")
@pytest.mark.attack("servers: another user cannot use a private socket or a port with a credential")
def test_server_with_a_port_listens_at_this_machine_and_demands_the_token(
    settings: Any, stand_in: Callable[[str], None], second_user: Any
) -> None:
    from visenv.policies.vllm import VLLMServer

    stand_in(STAND_IN)
    with VLLMServer(settings, port=own_port()) as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert server._process is not None
        found = listeners(family(server._process.pid))
        require_listed("vLLM server with a port", found)
        request = "POST /collective_rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
        ((answer,),) = second_user(found, request)
        assert answer.startswith("HTTP/1.1 401 ")
        with server.address.client(300.0) as client:
            assert client.post("/collective_rpc").status_code == 200
            assert client.post("/any", headers={"Host": "evil.example"}).status_code == 421


def test_servers_have_tokens_of_their_own(settings: Any) -> None:
    from visenv.policies.vllm import VLLMServer

    made = [VLLMServer(settings) for _ in range(2)]
    tokens = {server.address.token for server in made}
    assert len(tokens) == 2
    assert all(len(token or "") == 64 for token in tokens)
    for server in made:
        server._log.unlink()


def test_server_that_cannot_start_shows_its_last_words(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from visenv.policies.vllm import VLLMServer

    with pytest.raises(PolicyError, match=r"did not start within 0\.1 s"):
        VLLMServer(settings, timeout=0.1).start()
    monkeypatch.setattr(sys, "executable", shutil.which("ls"))
    with pytest.raises(PolicyError, match=r"(?s)ended while starting.*unrecognized option"):
        VLLMServer(settings).start()


def test_server_that_was_not_started_holds_no_file_open(settings: Any) -> None:
    from visenv.policies.vllm import VLLMServer

    def open_files() -> int:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    before = open_files()
    server = VLLMServer(settings)
    assert open_files() == before
    assert server._log.is_file()
    server._log.unlink()


def test_server_that_is_not_there(qwen3_folder: Path) -> None:
    from visenv.policies.vllm import VLLMServerPolicy

    with pytest.raises(PolicyError, match=r"127\.0\.0\.1:9 does not answer /v1/models"):
        VLLMServerPolicy(qwen3_folder, "http://127.0.0.1:9", retries=1)
    with pytest.raises(PolicyError, match=r"unix:/nowhere/socket does not answer /v1/models"):
        VLLMServerPolicy(qwen3_folder, "unix:/nowhere/socket", retries=1)


def test_address_of_another_form_is_refused(qwen3_folder: Path) -> None:
    from visenv.policies.vllm import VLLMServerPolicy

    with pytest.raises(ConfigurationError, match=r"must begin with .*got '127\.0\.0\.1:8000'"):
        VLLMServerPolicy(qwen3_folder, "127.0.0.1:8000")


def test_policy_warns_once_of_a_server_without_a_token(
    qwen3_folder: Path, qwen3: Any, caplog: pytest.LogCaptureFixture
) -> None:
    from visenv.policies.vllm import VLLMServerPolicy

    server = FakeServer(qwen3.image_processor)
    for _ in range(2):
        VLLMServerPolicy(qwen3_folder, server.url).close()
    (record,) = caplog.records
    assert f"{server.url} answers requests without a token" in record.getMessage()
    assert "VISENV_SERVER_TOKEN" in record.getMessage()
    server.die()


@pytest.mark.parametrize("part", range(3))
def test_server_with_another_image_processor_is_refused(
    qwen3_folder: Path, qwen3: Any, part: int
) -> None:
    """Check a processor with other settings, of another class, and with another backend."""
    from visenv.policies.vllm import VLLMServerPolicy

    parts = qwen3.image_processor.split(":")
    parts[part] = "other"
    server = FakeServer(":".join(parts))
    with pytest.raises(ConfigurationError, match=r"image processor .*other.* of the vLLM server"):
        VLLMServerPolicy(qwen3_folder, server.url)
    server.die()


def test_clients_of_a_socket_use_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a proxy of the environment does not receive the token."""
    from visenv.policies.vllm.control import ServerAddress

    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    client = ServerAddress("unix:/nowhere/socket", "secret").client(5.0)
    with client, pytest.raises(httpx.ConnectError, match="No such file"):
        client.get("/health")
