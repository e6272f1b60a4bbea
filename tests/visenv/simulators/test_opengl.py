"""Tests the choice of the OpenGL backend: by the user, by the GPU, by the installed libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from visenv.simulators import opengl

DRAW = """
import sys
sys.path.insert(0, sys.argv[1])
from opengl import prepare_opengl  # by itself: the interpreter need not have visenv
print(prepare_opengl())
import mujoco
model = mujoco.MjModel.from_xml_string(
    "<mujoco><worldbody><light pos='0 0 3'/>"
    "<geom type='sphere' size='.5' rgba='1 0 0 1'/></worldbody></mujoco>"
)
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
with mujoco.Renderer(model, 32, 32) as renderer:
    renderer.update_scene(data)
    pixel = renderer.render()[16, 16]
print(bool(pixel[0] > 2 * pixel[1]))
"""


@pytest.fixture(autouse=True)
def _no_choice_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.delenv("PYOPENGL_PLATFORM", raising=False)


@pytest.mark.parametrize("wanted", ["egl", "OSMesa", " glfw "])
def test_user_decides_the_backend(monkeypatch: pytest.MonkeyPatch, wanted: str) -> None:
    monkeypatch.setenv("MUJOCO_GL", wanted)
    assert opengl.choose_backend() == wanted.strip().lower()


def test_unknown_backend_is_refused_with_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "vulkan")
    with pytest.raises(opengl.OpenGLError, match=r"egl, glfw, osmesa, got 'vulkan'"):
        opengl.choose_backend()


@pytest.mark.parametrize(
    ("gpu", "egl", "backend"),
    [(True, True, "egl"), (True, False, "osmesa"), (False, True, "osmesa")],
)
def test_egl_is_chosen_only_with_a_gpu_and_its_library(
    monkeypatch: pytest.MonkeyPatch, gpu: bool, egl: bool, backend: str
) -> None:
    monkeypatch.setattr(opengl, "has_gpu", lambda: gpu)
    monkeypatch.setattr(opengl, "find_library", lambda name: "libEGL.so.1" if egl else None)
    assert opengl.choose_backend() == backend


def test_gpu_that_cuda_may_not_see_does_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    device = tmp_path / "nvidiactl"
    device.touch()
    monkeypatch.setattr(opengl, "_GPU_DEVICES", (str(device),))
    assert opengl.has_gpu()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert not opengl.has_gpu()


@pytest.mark.parametrize("backend", ["egl", "osmesa"])
def test_missing_library_is_an_error_with_its_apt_packages(
    monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.setenv("MUJOCO_GL", backend)
    monkeypatch.setattr(opengl, "find_library", lambda name: None)
    monkeypatch.delitem(sys.modules, "mujoco", raising=False)
    package = {"egl": "libegl1 libgl1 libgl1-mesa-dri", "osmesa": "libosmesa6"}[backend]
    with pytest.raises(opengl.OpenGLError, match=f"apt-get install {package} "):
        opengl.prepare_opengl()


def test_mujoco_imported_first_with_another_backend_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", pytest)
    monkeypatch.setattr(opengl, "has_gpu", lambda: False)
    with pytest.raises(opengl.OpenGLError, match="before the first `import mujoco`"):
        opengl.prepare_opengl()


def test_unpacked_library_is_found_before_an_installed_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    library = tmp_path / "osmesa/usr/lib/x86_64-linux-gnu/libOSMesa.so.8"
    library.parent.mkdir(parents=True)
    library.touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert opengl.find_library("osmesa") == str(library)


@pytest.mark.component("mujoco", "osmesa")
def test_mujoco_draws_with_the_chosen_backend(simulator_interpreter: str) -> None:
    environment = {"CUDA_VISIBLE_DEVICES": "-1", "MUJOCO_GL": "osmesa"}
    done = subprocess.run(
        [simulator_interpreter, "-c", DRAW, str(Path(opengl.__file__).parent)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.splitlines() == ["osmesa", "True"], done.stderr
