"""Renders frames of houses in one thread of the process, which owns the OpenGL context.

EGL contexts cannot change threads, so every frame is rendered by that thread. After a fork, the
child process starts its own thread and context. If OpenGL would be EGL and the process uses CUDA, a
child process renders instead (`visenv.envs.embodied.world.render.apart`).
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from visenv.errors import ConfigurationError
from visenv.packages import install_command
from visenv.simulators.opengl import OpenGLError, draws_apart

from ..house import FurnishedHouse
from ..state import HouseState
from .camera import Camera, camera_of
from .scene import LARGEST_FRAME, HouseScene

T = TypeVar("T")
Frame = NDArray[np.uint8]

_SCENES = 4
"""Number of houses that are kept open."""

ANTIALIASING = 4
"""Samples per pixel of antialiased frames."""

_lock = threading.Lock()
_threads: dict[int, _GLThread] = {}


class _Target(NamedTuple):
    """Holds a rendering context for frames of one size."""

    context: Any
    viewport: Any


class _Opened(NamedTuple):
    """Holds a house in MuJoCo, and the scene from which its frames are rendered."""

    scene: HouseScene
    drawn: Any


class _GLThread:
    """Owns the OpenGL context and its objects in a thread."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="visenv-opengl")
        self._gl: Any = None
        self._targets: dict[tuple[int, int], _Target] = {}
        # cachetools is not used here, because it is missing in the interpreter of the simulators.
        self._scenes: OrderedDict[int, _Opened] = OrderedDict()

    def run(self, work: Callable[[], T]) -> T:
        """Run a function in the thread and return its result."""
        return self._pool.submit(work).result()

    def opened(self, house: FurnishedHouse) -> _Opened:
        """Return the scene of a house; must be called in the thread."""
        key = id(house)  # each entry keeps its house alive, so that ids are unique
        if key not in self._scenes:
            self._scenes[key] = _open(house)
            while len(self._scenes) > _SCENES:
                self._scenes.popitem(last=False)
        self._scenes.move_to_end(key)
        return self._scenes[key]

    def release(self) -> None:
        """Free the contexts, if there are any; must be called in the thread."""
        if self._gl is not None:
            atexit.unregister(self._free)
            self._free()

    def _free(self) -> None:
        """Free the contexts when the process ends."""
        self._scenes.clear()
        for target in self._targets.values():
            target.context.free()
        self._targets.clear()
        self._gl.free()
        self._gl = None  # its finalizer runs now

    def target(self, model: Any, side: int, samples: int) -> _Target:
        """Return the context for frames of a size; must be called in the thread."""
        import mujoco

        if self._gl is None:
            # Mesa starts a thread for each core by default. With several processes and small
            # frames, these threads compete for cores. With any thread, a process that is forked
            # after the first frame waits for ever for the threads of its parent. A number that the
            # user has set is kept.
            os.environ.setdefault("LP_NUM_THREADS", "0")
            self._gl = mujoco.GLContext(LARGEST_FRAME, LARGEST_FRAME)
            self._gl.make_current()
            atexit.register(self._free)  # before the modules that it needs are unloaded
        key = (side, samples)
        if key not in self._targets:
            model.vis.quality.offsamples = samples
            model.vis.global_.offwidth = model.vis.global_.offheight = side
            context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_50)
            self._targets[key] = _Target(context, mujoco.MjrRect(0, 0, side, side))
        return self._targets[key]


def _thread() -> _GLThread:
    """Return the thread of this process."""
    with _lock:
        return _threads.setdefault(os.getpid(), _GLThread())


def _leaves_process() -> bool:
    """Return whether a child must render; free the contexts of this process if so."""
    if not draws_apart():
        return False
    thread = _threads.get(os.getpid())
    if thread is not None:  # CUDA was initialized after the first frame
        thread.run(thread.release)
    return True


class HouseRenderer:
    """Renders one house. OpenGL objects belong to the process, so that the renderer pickles.

    Raises:
        ConfigurationError: If MuJoCo or OpenGL is not installed; the message names the packages.
    """

    def __init__(self, house: FurnishedHouse) -> None:
        self.house = house

    def frame(self, state: HouseState, side: int, antialias: bool = False) -> Frame:
        """Return the view of the agent, uint8 ``[side, side, 3]``.

        Args:
            state: The state of the house.
            side: Side in pixels, at most 500.
            antialias: Whether edges are smoothed.
        """
        if _leaves_process():
            from .apart import render_process

            return render_process().frame(state, side, antialias)
        camera = camera_of(state)
        return _thread().run(
            lambda: self._draw(state, camera, side, ANTIALIASING if antialias else 0, False)
        )

    def ids(self, state: HouseState, side: int) -> tuple[NDArray[np.int32], list[str]]:
        """Return the object that each pixel shows.

        Returns:
            Indices into the names, int32 ``[side, side]``, and the names of fixtures and objects;
            index 0 has the name ``""`` for walls, floors and the sky.
        """
        if _leaves_process():
            from .apart import render_process

            return render_process().ids(state, side)
        camera = camera_of(state)
        colors, geoms, owners = _thread().run(lambda: self._draw_ids(state, camera, side))
        numbers = colors.astype(np.int32) @ np.array([1, 256, 65536], np.int32)
        names = ["", *self.house.fixtures, *self.house.items]
        index = {name: place for place, name in enumerate(names)}
        owner_of_geom = np.array([*(index[name] for name in owners), 0], np.int32)
        return owner_of_geom[geoms[numbers]], names

    def visible(self, state: HouseState, side: int, pixels: int = 1) -> dict[str, tuple[int, ...]]:
        """Return the boxes of all objects and fixtures in the frame.

        Args:
            state: The state of the house.
            side: Side in pixels.
            pixels: Minimum number of pixels of a visible object.

        Returns:
            By name, left, top, right and bottom in pixels; right and bottom are exclusive.
        """
        ids, names = self.ids(state, side)
        boxes = {}
        for index in np.unique(ids):
            rows, columns = np.nonzero(ids == index)
            if index and len(rows) >= pixels:
                box = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
                boxes[names[index]] = tuple(int(each) for each in box)
        return boxes

    def _draw_ids(
        self, state: HouseState, camera: Camera, side: int
    ) -> tuple[Frame, NDArray[np.int32], list[str]]:
        """Return colors that represent ids; the geom of each, -1 for the background; and its owner.

        The method must be called in the OpenGL thread.
        """
        colors = self._draw(state, camera, side, 0, True)
        import mujoco  # after the first frame, which chooses the OpenGL backend

        scene, drawn = _thread().opened(self.house)
        geoms = np.full(drawn.ngeom + 1, -1, np.int32)
        for geom in drawn.geoms[: drawn.ngeom]:
            if geom.objtype == mujoco.mjtObj.mjOBJ_GEOM:
                geoms[geom.segid + 1] = geom.objid
        return colors, geoms, scene.owners

    def _draw(
        self, state: HouseState, camera: Camera, side: int, samples: int, as_ids: bool
    ) -> Frame:
        """Render a frame, or colors that represent ids; must be called in the OpenGL thread."""
        thread = _thread()
        scene, drawn = thread.opened(self.house)
        import mujoco

        scene.update(state, camera)
        view = mujoco.MjvCamera()
        view.type = mujoco.mjtCamera.mjCAMERA_FREE
        view.lookat[:] = camera.target
        view.distance = camera.distance
        view.azimuth, view.elevation = camera.azimuth, camera.elevation
        options = mujoco.MjvOption()
        options.geomgroup[:] = 0
        options.geomgroup[scene.rooms_in_view(camera)] = 1
        every = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(scene.model, scene.data, options, None, view, every, drawn)
        flags = mujoco.mjtRndFlag
        for flag in (flags.mjRND_SEGMENT, flags.mjRND_IDCOLOR):
            drawn.flags[flag] = as_ids
        for flag in (flags.mjRND_SHADOW, flags.mjRND_REFLECTION, flags.mjRND_HAZE):
            drawn.flags[flag] = False
        target = thread.target(scene.model, side, samples)
        # Several contexts share one OpenGL context: each frame binds its own buffer.
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, target.context)
        pixels = np.empty((side, side, 3), np.uint8)
        mujoco.mjr_render(target.viewport, drawn, target.context)
        mujoco.mjr_readPixels(pixels, None, target.viewport, target.context)
        return np.ascontiguousarray(pixels[::-1])


def _open(house: FurnishedHouse) -> _Opened:
    """Return the scene of a house."""
    try:
        scene = HouseScene(house)
        import mujoco
    except (ImportError, OpenGLError) as error:
        raise ConfigurationError(
            f"Frames of a house need MuJoCo and OpenGL: {install_command('mujoco')} and `make "
            f"osmesa` (or apt-get install libosmesa6). {error}"
        ) from error
    room = int(scene.model.ngeom) + 100
    return _Opened(scene, mujoco.MjvScene(scene.model, maxgeom=room))
