"""Saves and restores the complete state of a LIBERO environment.

A snapshot contains MuJoCo's integration state, the poses and colors in the model that LIBERO
changes, and the plain attributes of controller, gripper, robot, environment and object states. A
restored environment continues bitwise equally, also in another process with the same model.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

_LENGTH = struct.Struct("<I")
_SCALARS = (bool, int, float, str, type(None))
_MODEL_ARRAYS = ("body_pos", "body_quat", "site_rgba", "geom_rgba")
_BUFFERS = ("DeltaBuffer", "RingBuffer")
_ENV_ATTRIBUTES = ("timestep", "cur_time", "done")

Saved = dict[str, Any]


def save(env: Any) -> bytes:
    """Return the snapshot of a LIBERO environment (`BDDLBaseDomain`)."""
    arrays: dict[str, Any] = {"integration": _integration(env)}
    for name in _MODEL_ARRAYS:
        arrays[f"model.{name}"] = np.array(getattr(env.sim.model._model, name))
    scalars: Saved = {}
    for path, owner in _owners(env):
        for name, value in _plain(path, owner):
            key = f"{path}.{name}"
            if isinstance(value, np.ndarray):
                arrays[key] = value
            else:
                scalars[key] = value
    return _pack(scalars, arrays)


def load(env: Any, snapshot: bytes) -> None:
    """Restore the state of a snapshot of the same task.

    Raises:
        ValueError: If the bytes are not a snapshot of this task.
    """
    import mujoco  # after `packages.import_libero`, which chooses the OpenGL backend

    scalars, arrays = _unpack(snapshot)
    model, data = env.sim.model._model, env.sim.data._data
    state = arrays.pop("integration", None)
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    if state is None or state.size != mujoco.mj_stateSize(model, kind):
        raise ValueError("The snapshot belongs to another task.")
    for name in _MODEL_ARRAYS:
        getattr(model, name)[...] = arrays[f"model.{name}"]
    mujoco.mj_setState(model, data, state, kind)
    refresh(env)
    for path, owner in _owners(env):
        for name, _ in list(_plain(path, owner)):
            key = f"{path}.{name}"
            if key in arrays:
                setattr(owner, name, arrays[key].copy())
            elif key in scalars:
                setattr(owner, name, scalars[key])


def refresh(env: Any) -> None:
    """Compute poses and contacts of the current state, without changing the state.

    A step of MuJoCo leaves the poses from before its integration. They are computed again before
    frames and facts are read, so that these are the same after a step as after `load`.
    """
    import mujoco

    state, kind = _integration(env), mujoco.mjtState.mjSTATE_INTEGRATION
    env.sim.forward()  # also overwrites the warm start of the solver
    mujoco.mj_setState(env.sim.model._model, env.sim.data._data, state, kind)


def _integration(env: Any) -> Any:
    import mujoco

    model, data = env.sim.model._model, env.sim.data._data
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    return state


def _owners(env: Any) -> Iterator[tuple[str, Any]]:
    """Yield the objects whose plain attributes are saved, with their paths."""
    yield "env", env
    for number, robot in enumerate(env.robots):
        path = f"robot{number}"
        yield path, robot
        yield f"{path}.controller", robot.controller
        yield f"{path}.gripper", robot.gripper
        for name, value in sorted(vars(robot).items()):
            if type(value).__name__ in _BUFFERS:
                yield f"{path}.{name}", value
    for name, state in sorted(env.object_states_dict.items()):
        yield f"object.{name}", state


def _plain(path: str, owner: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object that are numbers, texts or arrays."""
    attributes = vars(owner)
    names: list[str] = sorted(attributes)
    if path == "env":
        names = [name for name in _ENV_ATTRIBUTES if name in attributes]
    for name in names:
        value = attributes[name]
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            yield name, value
        elif isinstance(value, np.generic) and value.dtype.kind in "fiub":
            yield name, np.asarray(value)
        elif isinstance(value, _SCALARS):
            yield name, value


def _pack(scalars: Saved, arrays: Saved) -> bytes:
    solid = [(name, np.ascontiguousarray(array)) for name, array in arrays.items()]
    listed = [[name, array.dtype.str, list(np.shape(arrays[name]))] for name, array in solid]
    text = json.dumps([scalars, listed]).encode()
    return b"".join([_LENGTH.pack(len(text)), text, *(array.tobytes() for _, array in solid)])


def _unpack(snapshot: bytes) -> tuple[Saved, Saved]:
    (size,) = _LENGTH.unpack_from(snapshot)
    scalars, listed = json.loads(snapshot[_LENGTH.size : _LENGTH.size + size])
    arrays = {}
    start = _LENGTH.size + size
    for name, dtype, shape in listed:
        count = int(np.prod(shape, dtype=int))
        kind = np.dtype(dtype)
        arrays[name] = np.frombuffer(snapshot, kind, count, start).reshape(shape)  # [*shape]
        start += count * kind.itemsize
    return scalars, arrays
