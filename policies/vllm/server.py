"""Defines `VLLMServer`, which runs vLLM's own server as a child process, behind a token."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import torch

from visenv.errors import PolicyError
from visenv.socket_folder import socket_folder

from . import launch
from .control import ServerAddress
from .guard import TOKEN_VARIABLE
from .serve import FOLDER_VARIABLE
from .settings import EngineSettings, as_flags
from .transfer import is_split
from .videos import loaded_by_us

_FLAGS = ("--enable-scale-out", "--disable-uvicorn-access-log")
"""Flags of the server; the first enables the token-in, token-out endpoint (vLLM 0.31)."""

_GUARD = ("--middleware", "visenv.policies.vllm.guard.TokenGuard")
_TOKEN_BYTES = 32

_FAREWELL = 20.0
_GLANCE = 0.25
_SHOWN = 2000
"""Maximum number of characters of the log in an error."""


class VLLMServer:
    """Starts, monitors and stops a server; a context manager.

    The server computes on this process's GPU (with `tensor_parallel_size` on that many GPUs), and
    ends with this process, even if this process is killed. It listens at a Unix socket in a folder
    that only this user can enter, and demands a random token with every request (`TokenGuard`).

    Args:
        settings: Settings of its engine.
        transfer: How weights will be sent; see `transfer`.
        port: A port of 127.0.0.1 to listen at instead, for clients without Unix sockets. Every
            user of this machine can connect to it, and needs the token.
        timeout: Maximum number of seconds of a start.
        log: File of its log; None is a temporary file.

    Attributes:
        address: Address of the server, and its token. Both stay the same after a restart. Another
            process needs the address and the token in the environment variable
            ``VISENV_SERVER_TOKEN``.
    """

    def __init__(
        self,
        settings: EngineSettings,
        *,
        transfer: str = "folder",
        port: int | None = None,
        timeout: float = 900.0,
        log: Path | None = None,
    ) -> None:
        self._settings = settings
        self._transfer = transfer
        self._port = port
        self._timeout = timeout
        self._log = log or _temporary_log()
        self._folder = socket_folder("visenv-vllm-", launch.SOCKET_NAME_BYTES)
        # Also runs at the exit of the interpreter, after `_end`, which is defined later.
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._process: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize[[subprocess.Popen[bytes]], VLLMServer] | None = None
        url = f"unix:{self._folder / 'server'}" if port is None else f"http://127.0.0.1:{port}"
        self.address = ServerAddress(url, secrets.token_hex(_TOKEN_BYTES))

    @property
    def url(self) -> str:
        """Return the address of the server without its token."""
        return self.address.url

    @property
    def alive(self) -> bool:
        """Return whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the server, and wait until it answers.

        Raises:
            PolicyError: If the server ends or takes too long; the message contains the end of its
                log.
        """
        codec = self._settings.codec()
        arguments = self._settings.arguments(codec, self._transfer)
        loader = loaded_by_us() if codec.family.takes_videos else {}
        flags = as_flags(loader | arguments)
        command = [sys.executable, "-m", "visenv.policies.vllm.serve", *flags]
        command += [*_FLAGS, *_GUARD, *self._listen()]
        variables = launch.wanted(
            on_cpu=not torch.cuda.is_available(), server=True, ipc=self._transfer == "ipc"
        )
        variables |= {
            TOKEN_VARIABLE: self.address.token or "",
            FOLDER_VARIABLE: str(self._folder),
            launch.QUEUES_VARIABLE: str(self._folder),
            "VLLM_API_KEY": "",  # vLLM would demand the user's key instead of the token
        }
        if not _spans_machines(self._settings.options):
            variables |= launch.ON_ONE_MACHINE
        gpu = None if is_split(self._settings.options) else launch.own_gpu()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # never written to; closes when this process ends
                stdout=log,
                stderr=subprocess.STDOUT,
                env=launch.narrowed(os.environ, gpu) | variables,
                start_new_session=True,  # so that its children can be killed with it
            )
        # Also runs without a call of `stop`, at the exit of the interpreter.
        self._end = weakref.finalize(self, _end, self._process)
        self._wait()

    def stop(self) -> None:
        """End the server and its children."""
        if self._end is not None:
            self._end()
        self._process = self._end = None

    def restart(self) -> None:
        """End the server's processes, and start it again with the checkpoint's weights."""
        self.stop()
        self.start()

    def _listen(self) -> tuple[str, ...]:
        if self._port is not None:
            return ("--host", "127.0.0.1", "--port", str(self._port))
        path = self._folder / "server"
        path.unlink(missing_ok=True)  # of a server that was killed
        return ("--uds", str(path))

    def _wait(self) -> None:
        end = time.monotonic() + self._timeout
        with self.address.client(timeout=5.0) as client:
            while time.monotonic() < end:
                if not self.alive:
                    raise PolicyError(
                        f"The vLLM server ended while starting:\n{self._last_words()}"
                    )
                with suppress(httpx.TransportError):
                    if client.get("/health").is_success:
                        return
                time.sleep(_GLANCE)
        self.stop()
        raise PolicyError(
            f"The vLLM server did not start within {self._timeout:g} s:\n{self._last_words()}"
        )

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace")[-_SHOWN:]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _spans_machines(options: Mapping[str, Any]) -> bool:
    """Return whether these options of vLLM may place workers of the server on other machines."""
    return options.get("nnodes", 1) != 1 or options.get("distributed_executor_backend") == "ray"


def _temporary_log() -> Path:
    handle, name = tempfile.mkstemp(prefix="visenv-vllm-", suffix=".log")
    os.close(handle)
    return Path(name)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its children."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_FAREWELL)
    if process.stdin is not None:
        process.stdin.close()
