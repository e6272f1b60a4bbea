"""Chooses the OpenGL backend of simulators, before MuJoCo is imported for the first time.

MuJoCo reads the environment variable ``MUJOCO_GL`` when it is imported, and cannot change its
backend afterwards. Call `prepare_opengl` first::

    prepare_opengl()
    import mujoco

A context is created and used in one thread. OSMesa contexts may be used in another thread, but EGL
contexts fail with ``EGL_BAD_ACCESS`` there. EGL and CUDA in one process can abort it, so House
renders in a child if OpenGL is EGL and the process uses CUDA (`draws_apart`). The other simulators
run in a child, unless a person chooses ``interpreter="in-process"``.

This module imports only the standard library, because children with other interpreters use it.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
from pathlib import Path

BACKENDS = ("egl", "glfw", "osmesa")
"""The values of ``MUJOCO_GL`` that name a backend."""

LIBRARIES = {"egl": "libEGL.so.1", "osmesa": "libOSMesa.so.8"}
"""Library that each backend without a display loads."""

APT_PACKAGES = {"egl": "libegl1 libgl1 libgl1-mesa-dri", "osmesa": "libosmesa6"}
"""Debian packages of the libraries."""

UNPACKED_FOLDERS = (".venv-simulators/osmesa", ".venv/osmesa")
"""Folders into which `make osmesa` unpacks the library without root, relative to a checkout."""

_GPU_DEVICES = ("/dev/nvidiactl", "/dev/dri/renderD128", "/dev/kfd")


class OpenGLError(RuntimeError):
    """Raised when OpenGL cannot be used on this machine; the message says what to install."""


def choose_backend() -> str:
    """Return the backend of this process: ``"egl"``, ``"osmesa"`` or ``"glfw"``.

    The user's ``MUJOCO_GL`` takes precedence, if it is set. Otherwise the backend is EGL if a GPU
    is visible and EGL is installed, else OSMesa.

    Raises:
        OpenGLError: If ``MUJOCO_GL`` is not the name of a backend.
    """
    wanted = os.environ.get("MUJOCO_GL", "").strip().lower()
    if wanted in BACKENDS:
        return wanted
    if wanted:
        raise OpenGLError(
            f"MUJOCO_GL must be one of {', '.join(BACKENDS)}, got {wanted!r}. Unset it to let "
            "visenv choose."
        )
    return "egl" if has_gpu() and find_library("egl") else "osmesa"


def has_gpu() -> bool:
    """Return whether a GPU is visible to this process."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    devices = [each for each in _GPU_DEVICES if Path(each).exists()]
    if hidden is not None and hidden.strip() in ("", "-1"):
        devices = [each for each in devices if "nvidia" not in each]
    return bool(devices)


def find_library(backend: str) -> str | None:
    """Return the library of a backend, or None if it is not installed.

    Args:
        backend: ``"egl"`` or ``"osmesa"``.

    Returns:
        A name that the dynamic linker finds, or the path of an unpacked library.
    """
    if backend == "osmesa":
        for folder in _unpacked_folders():
            found = sorted(folder.rglob(LIBRARIES[backend]))
            if found:
                return str(found[0])
    try:
        ctypes.CDLL(LIBRARIES[backend])
    except OSError:
        return None
    return LIBRARIES[backend]


def prepare_opengl() -> str:
    """Prepare this process for the import of MuJoCo and return the backend.

    This function sets ``MUJOCO_GL`` and ``PYOPENGL_PLATFORM``, loads the backend's library, and
    makes PyOpenGL use an unpacked library. Further calls have no effect.

    Raises:
        OpenGLError: If the library is not installed, or MuJoCo was imported with another backend.
    """
    backend = choose_backend()
    if "mujoco" in sys.modules and os.environ.get("MUJOCO_GL") != backend:
        raise OpenGLError(
            "MuJoCo was imported before its OpenGL backend was chosen. Call "
            "visenv.simulators.opengl.prepare_opengl() before the first `import mujoco`, or set "
            f"MUJOCO_GL={backend} for the process."
        )
    if backend in LIBRARIES:
        library = find_library(backend)
        if library is None:
            raise OpenGLError(missing_library(backend))
        if "/" in library:
            _use_unpacked(Path(library))
        # PyOpenGL and MuJoCo must load the same functions.
        os.environ["PYOPENGL_PLATFORM"] = backend
    os.environ["MUJOCO_GL"] = backend
    return backend


def missing_library(backend: str) -> str:
    """Return the error message for a backend whose library is not installed."""
    return (
        f"OpenGL cannot render here: {LIBRARIES[backend]}, which the backend {backend!r} needs, is "
        f"not installed. Install it with: apt-get install {APT_PACKAGES[backend]} (or run `make "
        "osmesa`, which needs no root)."
    )


def draws_apart() -> bool:
    """Return whether frames must be rendered in a child: EGL with CUDA can abort a process."""
    torch = sys.modules.get("torch")
    uses_cuda = torch is not None and torch.cuda.is_initialized()
    return bool(uses_cuda) and choose_backend() == "egl"


def _unpacked_folders() -> list[Path]:
    """Return the folders that may contain OSMesa, next to the interpreter or the code."""
    here = Path(__file__).absolute()
    roots = [here.parents[2], Path(sys.prefix).parent]
    folders = [root / each for root in roots for each in UNPACKED_FOLDERS]
    return [each for each in (Path(sys.prefix) / "osmesa", *folders) if each.is_dir()]


def _use_unpacked(library: Path) -> None:
    """Load an unpacked OSMesa with the libraries next to it, and make PyOpenGL find it by name.

    ``LD_LIBRARY_PATH`` is only read when a process starts. The libraries that OSMesa needs are
    therefore loaded first, by their paths: the linker uses a loaded library of the required name.
    """
    waiting = [each for each in sorted(library.parent.glob("*.so*")) if each != library]
    for _ in range(len(waiting) + 1):  # each round loads libraries whose dependencies are loaded
        waiting = [each for each in waiting if not _loads(each)]
    if not _loads(library):
        raise OpenGLError(f"{library} cannot be loaded; run `make osmesa` again.")
    original = ctypes.util.find_library

    def find(name: str) -> str | None:
        return str(library) if name == "OSMesa" else original(name)

    ctypes.util.find_library = find


def _loads(library: Path) -> bool:
    try:
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return False
    return True


if __name__ == "__main__":  # `make osmesa` checks with this whether the library exists
    sys.exit(0 if find_library("osmesa") else 1)
