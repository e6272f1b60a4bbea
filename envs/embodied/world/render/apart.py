"""Renders frames of houses in a child process, for a process in which OpenGL must not run.

EGL and CUDA in one process can abort it (`visenv.simulators.opengl.draws_apart`). The child uses
the same interpreter and has one OpenGL thread, so that its frames equal those of `HouseRenderer` in
this process.
"""

from __future__ import annotations

import atexit
import io
import os
import pickle
import threading
from collections import OrderedDict
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from visenv.child_process.host import ChildError, ChildLimits, ChildProcess
from visenv.errors import ConfigurationError, ServiceError

if TYPE_CHECKING:
    from ..house import FurnishedHouse
    from ..state import HouseState

HOUSES = 8
"""Number of houses that the child keeps."""

_TARGET = "visenv.envs.embodied.world.render.child:RenderTarget"


class RenderProcess:
    """Renders in a child process, which all threads of this process share.

    The first frame starts the child. If the child ends, the next frame starts another one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: ChildProcess | None = None
        # A key is never used twice, and an entry keeps its house alive, so that ids are unique.
        self._keys: OrderedDict[int, tuple[int, FurnishedHouse]] = OrderedDict()
        self._numbers = count()

    @property
    def pid(self) -> int:
        """Return the process id of the child, 0 if none was started."""
        return 0 if self._child is None else self._child.pid

    def frame(self, state: HouseState, side: int, antialias: bool) -> NDArray[np.uint8]:
        """Return the frame of `HouseRenderer.frame`.

        Raises:
            ConfigurationError: If MuJoCo or OpenGL is not installed; the message names the
                packages.
            ServiceError: If the child fails.
        """
        _, arrays = self._call("frame", state, {"side": side, "antialias": antialias})
        return np.array(arrays["frame"], np.uint8)

    def ids(self, state: HouseState, side: int) -> tuple[NDArray[np.int32], list[str]]:
        """Return the result of `HouseRenderer.ids`; the errors are those of `frame`."""
        result, arrays = self._call("ids", state, {"side": side})
        return np.array(arrays["ids"], np.int32), list(result["names"])

    def close(self) -> None:
        """End the child."""
        with self._lock:
            if self._child is not None:
                self._child.close()
                self._child = None

    def disown(self) -> None:
        """Forget the child in a forked process, to which it does not belong."""
        if self._child is not None:
            self._child.disown()
        self._child = None
        self._lock = threading.Lock()

    def _call(
        self, method: str, state: HouseState, request: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        with self._lock:
            message = {**request, "house": self._key_of(state.house)}
            arrays = {"state": _bytes_of(state)}
            try:
                result, found = self._exchange(method, message, arrays)
                if result.get("unknown"):
                    arrays["house"] = np.frombuffer(pickle.dumps(state.house), np.uint8)
                    result, found = self._exchange(method, message, arrays)
            except ChildError as error:
                if error.report and error.report["kind"] == "setup":
                    raise ConfigurationError(str(error)) from error
                raise ServiceError("simulator", f"the renderer of House: {error}") from error
        if "setup" in result:
            raise ConfigurationError(result["setup"])
        return result, found

    def _exchange(
        self, method: str, message: Mapping[str, Any], arrays: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        if self._child is None or not self._child.is_alive():
            if self._child is None:
                atexit.register(self.close)
            else:
                self._child.end()
            self._child = ChildProcess(_TARGET, {}, limits=ChildLimits(), is_light=True)
            self._child.start()
        try:
            (result,), found = self._child.call([(method, message)], arrays)
        except BaseException:  # after Ctrl-C the reply is still to come
            self._child.end()
            raise
        return result, found

    def _key_of(self, house: FurnishedHouse) -> int:
        entry = self._keys.get(id(house))
        if entry is None:
            entry = self._keys[id(house)] = (next(self._numbers), house)
            while len(self._keys) > HOUSES:
                self._keys.popitem(last=False)
        self._keys.move_to_end(id(house))
        return entry[0]


class _Writer(pickle.Pickler):
    """Pickles a state without its house, which the child has."""

    def __init__(self, file: io.BytesIO, house: Any) -> None:
        super().__init__(file)
        self._house = house

    @override
    def persistent_id(self, obj: Any) -> str | None:
        return "house" if obj is self._house else None


def _bytes_of(state: HouseState) -> NDArray[np.uint8]:
    file = io.BytesIO()
    _Writer(file, state.house).dump(state)
    return np.frombuffer(file.getvalue(), np.uint8)


_processes: dict[int, RenderProcess] = {}
_lock = threading.Lock()


def render_process() -> RenderProcess:
    """Return the render process of this process."""
    with _lock:
        return _processes.setdefault(os.getpid(), RenderProcess())


def _after_fork_in_child() -> None:
    global _lock  # noqa: PLW0603  another thread may hold the lock that the fork copies
    _lock = threading.Lock()
    for process in _processes.values():
        process.disown()
    _processes.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
