"""Runs ai2thor's `Controller` and the player that it started."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from visenv.simulators.protocol import SetupError

from . import launch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PLAYER_ENDED = 70
"""Exit status of a child process whose player has ended."""

_PREFIX = "visenv-thor-"
_STALE_S = 600.0
"""Age in seconds at which the folder of a start is stale; a start is faster."""

_LOG_BYTES = 2000

_END_S = 5.0
"""Seconds in which a player whose pipe is broken ends; otherwise the broken pipe is reported."""


class PlayerProcess:
    """Starts a player with ai2thor, and sends actions to it.

    The pipes and the log are deleted as soon as both sides have opened them, so that no file
    remains, whichever side ends first. If the player ends, this process ends, too, because ai2thor
    would wait for its time-out.

    Args:
        options: ``command`` (the program of the player with its arguments), ``environment``
            (variables of its environment), ``server`` (``"fifo"``, or ``"wsgi"`` for players before
            2.7), ``scene`` (the first scene), ``side`` (side of a frame in pixels), ``quality``
            (one of ai2thor's), ``start_s`` and ``call_s`` (seconds of the start and of an action).

    Raises:
        ImportError: If ai2thor is not installed.
        SetupError: If there is no such program.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        from ai2thor.controller import Controller
        from ai2thor.fifo_server import FifoServer
        from ai2thor.wsgi_server import WsgiServer

        command = options["command"]
        if shutil.which(command[0]) is None:
            raise SetupError(f"The player of AI2-THOR is not a program: {command[0]!r}.")
        _remove_stale_folders()
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        self._is_closing = False
        watch = self._watch

        class PlayerController(Controller):  # type: ignore[misc, unused-ignore]
            base_dir = folder  # ai2thor's default is in the home folder

            def _start_unity_thread(self, *arguments: Any) -> None:
                super()._start_unity_thread(*arguments)
                watch(self.server.unity_proc, Path(self.log_dir) / "unity.log")

        # If this variable is set, ai2thor requires Vulkan, even for a given program.
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
        environment = json.dumps(dict(options["environment"]))
        started = [sys.executable, launch.__file__, environment, *command]
        tempfile.tempdir = folder  # for the pipes
        try:
            self._controller = PlayerController(
                local_executable_path=shlex.join(started),
                server_class=WsgiServer if options["server"] == "wsgi" else FifoServer,
                x_display=os.environ.get("DISPLAY", ":0"),
                width=options["side"],
                height=options["side"],
                quality=options["quality"],
                scene=options["scene"],
                server_timeout=options["call_s"],
                server_start_timeout=options["start_s"],
                gridSize=0.25,
                visibilityDistance=1.5,
            )
        finally:
            tempfile.tempdir = None
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def pid(self) -> int:
        """Return the process id of the player."""
        return int(self._controller.server.unity_proc.pid)

    def load(self, scene: Any) -> Mapping[str, Any]:
        """Load a scene by its name, or a house; return the metadata."""
        with self._waiting_for_end():
            return self._metadata(self._controller.reset(scene))

    def do(self, action: str, **arguments: Any) -> Mapping[str, Any]:
        """Execute an action without rendering, and return the metadata of its event.

        If the player refuses the action, ``lastActionSuccess`` is False.
        """
        with self._waiting_for_end():
            try:
                event = self._controller.step(action=action, renderImage=False, **arguments)
            except ValueError:  # ai2thor raises it if a player reports an invalid action
                event = self._controller.last_event
        return self._metadata(event)

    def frame(self) -> NDArray[np.uint8]:
        """Return the view of the agent, uint8 ``[side, side, 3]``."""
        import numpy as np

        with self._waiting_for_end():
            frame = self._controller.step(action="Pass", renderImage=True).frame
        if frame is None:
            raise RuntimeError("the player sent no frame")
        return np.ascontiguousarray(frame)

    def close(self) -> None:
        """End the player."""
        self._is_closing = True
        self._controller.stop()

    def _metadata(self, event: Any) -> Mapping[str, Any]:
        metadata: Mapping[str, Any] = event.metadata
        return metadata

    def _watch(self, process: subprocess.Popen[bytes], log: Path) -> None:
        """Wait for the end of the player in a thread."""
        said = log.open("rb")

        def wait() -> None:
            status = process.wait()
            if self._is_closing:
                return
            said.seek(max(0, os.fstat(said.fileno()).st_size - _LOG_BYTES))
            tail = said.read().decode(errors="replace").strip().splitlines()[-2:]
            lines = [*tail, f"the player of AI2-THOR ended with status {status}"]
            os.write(2, "\n".join(lines).encode() + b"\n")
            os._exit(PLAYER_ENDED)

        self._watcher = threading.Thread(target=wait, name="visenv-player", daemon=True)
        self._watcher.start()

    @contextmanager
    def _waiting_for_end(self) -> Iterator[None]:
        """Wait, if a pipe breaks, until the thread of `_watch` has reported the end of the player.

        The pipe can break before that thread has seen the end.
        """
        try:
            yield
        except OSError:
            self._watcher.join(_END_S)
            raise


def _remove_stale_folders() -> None:
    """Remove the folders of starts whose process was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            is_stale = time.time() - folder.stat().st_mtime > _STALE_S
        except OSError:
            continue
        if is_stale:
            shutil.rmtree(folder, ignore_errors=True)
