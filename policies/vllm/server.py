"""VLLMServer: vLLM's own server as a process of ours."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
import torch

from visenv.errors import PolicyError

from . import environment
from .launch import narrowed, own_gpu
from .settings import EngineSettings, as_flags
from .transfer import free_port, is_split
from .videos import loaded_by_us

_FLAGS = ("--enable-scale-out", "--disable-uvicorn-access-log")
"""The first offers the token-in, token-out endpoint (vLLM 0.31)."""

_FAREWELL = 20.0
_GLANCE = 0.25
_SHOWN = 2000
"""Characters of the log that an error shows."""


class VLLMServer:
    """Starts, watches and stops a server; a context manager.

    It computes on this process's GPU (with `tensor_parallel_size` on as many as that says), and
    ends with this process, also if that is killed.

    Args:
        settings: Of its engine.
        transfer: How it will be sent weights; see `transfer`.
        port: Where it listens on this machine; None picks a free one.
        timeout: Most seconds a start may take.
        log: Where it writes what it says; None is a temporary file.

    Attributes:
        url: Where it answers.
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
        self._port = free_port() if port is None else port
        self._timeout = timeout
        self._log = log or Path(tempfile.mkstemp(prefix="visenv-vllm-", suffix=".log")[1])
        self._process: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize[[subprocess.Popen[bytes]], VLLMServer] | None = None
        self.url = f"http://127.0.0.1:{self._port}"

    @property
    def alive(self) -> bool:
        """Return whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            PolicyError: If it ends or takes too long; shows the end of its log.
        """
        codec = self._settings.codec()
        arguments = self._settings.arguments(codec, self._transfer)
        loader = {} if codec.media.videos is None else loaded_by_us()
        flags = as_flags(loader | arguments)
        command = [sys.executable, "-m", "visenv.policies.vllm.serve", *flags]
        command += ["--port", str(self._port), "--host", "127.0.0.1", *_FLAGS]
        variables = environment.wanted(
            on_cpu=not torch.cuda.is_available(), server=True, ipc=self._transfer == "ipc"
        )
        gpu = None if is_split(self._settings.options) else own_gpu()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # never written to; it ends with this process
                stdout=log,
                stderr=subprocess.STDOUT,
                env=narrowed(os.environ, gpu) | variables,
                start_new_session=True,  # its children can then be ended with it
            )
        # Also without a call of `stop`, and at the interpreter's end.
        self._end = weakref.finalize(self, _end, self._process)
        self._wait()

    def stop(self) -> None:
        """End it and its children."""
        if self._end is not None:
            self._end()
        self._process = self._end = None

    def restart(self) -> None:
        """Stop what is left of it, and restart it with the checkpoint's weights."""
        self.stop()
        self.start()

    def _wait(self) -> None:
        end = time.monotonic() + self._timeout
        while time.monotonic() < end:
            if not self.alive:
                raise PolicyError(f"The vLLM server ended while starting:\n{self._last_words()}")
            with suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/health", timeout=5.0).is_success:
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


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its children."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_FAREWELL)
    if process.stdin is not None:
        process.stdin.close()
