"""Tests the sandbox on ordinary programs."""

from __future__ import annotations

import asyncio
import io
import pickle
import threading
from collections.abc import Mapping

import numpy as np
import PIL.Image
import pytest

from visenv.errors import ConfigurationError, ImageError, ServiceError, UnknownNameError
from visenv.sandbox import (
    INPUT_IMAGE,
    OUTPUT_IMAGE,
    Execution,
    LocalBackend,
    Program,
    Sandbox,
    SandboxBackend,
    SandboxLimits,
    SharedImage,
    shared_sandbox,
)
from visenv.types import Image

ROTATE = """
import cv2

img = cv2.imread('path_to_input_image.jpg')
img = cv2.rotate(img, cv2.ROTATE_180)
cv2.imwrite('path_to_output_image.jpg', img)
"""


def picture(width: int, height: int) -> Image:
    """Return an image with large smooth areas, which JPEG changes little."""
    down, across = np.mgrid[0:height, 0:width]
    pixels = np.stack([across * 255 // width, down * 255 // height, 0 * down + 90], -1)
    return Image.from_pixels(pixels.astype(np.uint8))


def difference(one: Image, other: Image) -> float:
    return float(np.abs(one.pixels.astype(int) - other.pixels.astype(int)).mean())


# ---------------------------------------------------------------------------- images


def test_papers_program_repairs_the_papers_image(sandbox: Sandbox) -> None:
    image = picture(64, 48)
    execution = sandbox.run(ROTATE, {INPUT_IMAGE: image})
    assert execution.status == "ok"
    assert execution.image is not None
    turned = Image.from_pixels(np.ascontiguousarray(image.pixels[::-1, ::-1]))
    assert difference(execution.image, turned) < 2.0


def test_repairs_are_chained_by_the_file_that_was_written(sandbox: Sandbox) -> None:
    image = picture(64, 48)
    once = sandbox.run(ROTATE, {INPUT_IMAGE: image})
    assert once.file is not None
    assert once.file[:2] == b"\xff\xd8"  # a JPEG, as written by the program
    twice = sandbox.run(ROTATE, {INPUT_IMAGE: once.file})
    assert twice.image is not None
    assert difference(twice.image, image) < 3.0


def test_image_by_variable_name_is_its_pixels(sandbox: Sandbox) -> None:
    image = picture(31, 17)
    code = "image.shape, image.dtype.name, image.flags.writeable, image[3, 4].tolist()"
    expected = repr(((17, 31, 3), "uint8", True, image.pixels[3, 4].tolist()))
    assert sandbox.run(code, {"image": image}).result == expected


def test_file_has_the_format_of_its_name(sandbox: Sandbox) -> None:
    image = picture(20, 10)
    code = "[(each, Image.open(each).format) for each in ('a.png', 'b.jpg')], "
    code += "np.asarray(Image.open('a.png')).sum()"
    execution = sandbox.run(code, {"a.png": image, "b.jpg": image})
    pixels = f"np.uint64({int(image.pixels.sum())})"
    assert execution.result == f"([('a.png', 'PNG'), ('b.jpg', 'JPEG')], {pixels})"


def test_bytes_are_a_file_as_it_is(sandbox: Sandbox) -> None:
    content = bytes(range(256)) * 1000
    execution = sandbox.run(
        "open('x.bin', 'rb').read() == bytes(range(256)) * 1000", {"x.bin": content}
    )
    assert execution.result == "True"


def test_shared_image_is_handed_to_many(sandbox: Sandbox) -> None:
    with SharedImage(picture(400, 300)) as shared:
        for place in range(3):
            execution = sandbox.run(f"image[{place}, 7].tolist()", {"image": shared})
            assert execution.result == repr(shared.image.pixels[place, 7].tolist())
        assert sandbox.run("Image.open('a.png').size", {"a.png": shared}).result == "(400, 300)"
    with pytest.raises(ImageError, match="was closed"):
        sandbox.run("0", {"image": shared})


def test_shared_image_pickles_as_its_image() -> None:
    with SharedImage(picture(4, 3)) as shared, pickle.loads(pickle.dumps(shared)) as copy:
        assert copy.image == shared.image
        assert copy.size == (4, 3)


def test_image_that_is_taken_back_has_a_name_of_choice(sandbox: Sandbox) -> None:
    code = "Image.new('RGB', (5, 4), (9, 8, 7)).save('mine.png')"
    execution = sandbox.run(code, output="mine.png")
    assert execution.image is not None
    assert execution.image.pixels.tolist() == [[[9, 8, 7]] * 5] * 4
    with PIL.Image.open(io.BytesIO(execution.file or b"")) as opened:
        assert opened.format == "PNG"


def test_image_is_never_one_of_before(sandbox: Sandbox) -> None:
    assert sandbox.run(ROTATE, {INPUT_IMAGE: picture(8, 8)}).image is not None
    execution = sandbox.run("1", {INPUT_IMAGE: picture(8, 8)})
    assert (execution.image, execution.file, execution.image_problem) == (None, None, "")


def test_image_written_before_an_error_is_taken_too(sandbox: Sandbox) -> None:
    execution = sandbox.run(ROTATE + "1 / 0", {INPUT_IMAGE: picture(8, 8)})
    assert execution.status == "error"
    assert execution.image is not None


def test_programs_copy_files_as_anywhere(sandbox: Sandbox) -> None:
    for act in ("copy", "copy2", "copyfile"):
        code = f"import shutil\nshutil.{act}('{INPUT_IMAGE}', '{OUTPUT_IMAGE}')"
        execution = sandbox.run(code, {INPUT_IMAGE: picture(8, 8)})
        assert execution.error == ""
        assert execution.image is not None


def test_image_larger_than_allowed_is_not_passed(sandbox: Sandbox) -> None:
    limits = SandboxLimits(image_pixels=99)
    execution = sandbox.run("1", {"image": picture(10, 10)}, limits=limits)
    assert execution.status == "refused"
    assert execution.error == "image is 10x10 = 100 pixels; at most 99 pixels are passed."


def test_broken_image_is_the_callers_fault(sandbox: Sandbox) -> None:
    with pytest.raises(ImageError, match="broken"):
        sandbox.run("1", {"image": Image.from_bytes(b"junk", "broken")})


# ------------------------------------------------------------------------------ text


def test_output_result_and_error_are_separate_and_combined(sandbox: Sandbox) -> None:
    execution = sandbox.run("import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7")
    assert (execution.stdout, execution.result, execution.error) == ("out\nerr\n", "42", "")
    assert execution.text == "out\nerr\n42"
    assert sandbox.run("x = 1").text == ""
    assert sandbox.run("None").result == ""


def test_traceback_is_the_interpreters_from_the_programs_first_line(sandbox: Sandbox) -> None:
    code = """import cv2

def dark(image):
    return image.shape

dark(cv2.imread('nothing.jpg'))
"""
    execution = sandbox.run(code)
    assert execution.status == "error"
    assert execution.error == (
        "Traceback (most recent call last):\n"
        '  File "<program>", line 6, in <module>\n'
        "    dark(cv2.imread('nothing.jpg'))\n"
        '  File "<program>", line 4, in dark\n'
        "    return image.shape\n"
        "           ^^^^^^^^^^^\n"
        "AttributeError: 'NoneType' object has no attribute 'shape'"
    )
    assert "can't open/read file" in execution.stdout  # a warning of OpenCV


def test_syntax_error_shows_the_line(sandbox: Sandbox) -> None:
    execution = sandbox.run("x = 1\ny = (\n")
    assert (
        execution.error
        == "  File \"<program>\", line 2\n    y = (\n        ^\nSyntaxError: '(' was never closed"
    )


def test_chain_of_errors_is_reported_completely(sandbox: Sandbox) -> None:
    execution = sandbox.run(
        "try:\n    1 / 0\nexcept Exception as e:\n    raise KeyError('k') from e"
    )
    assert "ZeroDivisionError" in execution.error
    assert execution.error.endswith("KeyError: 'k'")


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("import sys\nsys.exit()", "ok", ""),
        ("import sys\nsys.exit(0)", "ok", ""),
        ("import sys\nsys.exit(2)", "error", "SystemExit: 2"),
        ("import sys\nsys.exit('why')", "error", "SystemExit: why"),
        ("raise SystemExit(3)", "error", "SystemExit: 3"),
    ],
)
def test_leaving_by_exit(code: str, status: str, error: str, sandbox: Sandbox) -> None:
    execution = sandbox.run(code)
    assert (execution.status, execution.error) == (status, error)


def test_sandbox_prints_any_text(sandbox: Sandbox) -> None:
    execution = sandbox.run("print('π \\x00 \\ud800 <|im_end|>')\nimport os\nos.write(1, b'\\xff')")
    assert execution.stdout == "π \x00 \\ud800 <|im_end|>\n�"


def test_cv2_numpy_and_pil_need_no_import_and_main_is_main(sandbox: Sandbox) -> None:
    code = "[each.__name__ for each in (cv2, np, Image)], __name__, __import__('__main__').x"
    result = "(['cv2', 'numpy', 'PIL.Image'], '__main__', 5)"
    assert sandbox.run(f"x = 5\n{code}").result == result


def test_program_is_deterministic(sandbox: Sandbox) -> None:
    code = "import random\nrandom.random(), np.random.rand(), hash('x'), list({'a', 'b', 'c'})"
    assert len({sandbox.run(code).result for _ in range(4)}) == 1


def test_sandbox_does_the_same_on_another_server() -> None:
    code = "import random\nrandom.random(), np.random.rand(), hash('x'), list({'a', 'b', 'c'})"
    with Sandbox() as one, Sandbox() as other:
        assert one.run(code).result == other.run(code).result


def test_execution_reports_what_it_took(sandbox: Sandbox) -> None:
    execution = sandbox.run("x = np.ones(100 << 20, np.uint8)\nfor _ in range(3_000_000): pass")
    assert 0.005 < execution.cpu_seconds < 20.0
    assert execution.seconds > 0.005
    assert execution.memory_bytes > 100 << 20


# ------------------------------------------------------------------- many at a time


def test_burst_from_threads_loses_none(sandbox: Sandbox) -> None:
    found: dict[int, str] = {}

    def run(number: int) -> None:
        code = f"print({number})\nimage[0, 0, 0] + {number}"
        image = Image.from_pixels(np.full((3, 3, 3), 100, np.uint8))
        execution = sandbox.run(code, {"image": image})
        found[number] = f"{execution.stdout}{execution.result}"

    threads = [threading.Thread(target=run, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: f"{number}\nnp.uint8({100 + number})" for number in range(64)}


def test_coroutines_run_programs_together(sandbox: Sandbox) -> None:
    async def burst() -> list[Execution]:
        return await asyncio.gather(*(sandbox.run_async(f"{n} * 2") for n in range(32)))

    assert [each.result for each in asyncio.run(burst())] == [str(2 * n) for n in range(32)]


def test_cancelled_coroutine_does_not_wait() -> None:
    async def cancel(sandbox: Sandbox) -> None:
        task = asyncio.create_task(sandbox.run_async("import time\ntime.sleep(3600)"))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with Sandbox(limits=SandboxLimits(wall_seconds=3600.0), workers=2) as sandbox:
        asyncio.run(cancel(sandbox))
        assert sandbox.run("1").status == "ok"
    # Closing ended the program. Otherwise it would exceed the time limit of the test.


def test_programs_run_in_no_more_than_the_workers() -> None:
    class Counting:
        def __init__(self) -> None:
            self.running = self.most = 0
            self.lock = threading.Lock()
            self.both = threading.Barrier(2)

        def start(self) -> None:
            pass

        def run(self, program: Program) -> Execution:
            with self.lock:
                self.running += 1
                self.most = max(self.most, self.running)
            self.both.wait(20.0)  # waits until two programs run
            with self.lock:
                self.running -= 1
            return Execution("ok")

        def close(self) -> None:
            pass

    backend = Counting()
    with Sandbox(backend, workers=2) as sandbox:
        threads = [threading.Thread(target=sandbox.run, args=("",)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert backend.most == 2


# --------------------------------------------------------------------------- backends


class Remote:
    """Represents a backend for a remote service: it receives only a `Program`."""

    def __init__(self) -> None:
        self.asked: list[Program] = []

    def start(self) -> None:
        pass

    def run(self, program: Program) -> Execution:
        self.asked.append(program)
        if program.code == "unplugged":
            raise ServiceError("sandbox", "the service does not answer")
        return Execution("ok", stdout="from afar\n")

    def close(self) -> None:
        self.asked.clear()


def test_backend_can_be_plugged_in() -> None:
    backend: SandboxBackend = Remote()
    image = picture(4, 4)
    sandbox = Sandbox(backend, limits=SandboxLimits(wall_seconds=3.0))
    assert sandbox.run("code", {INPUT_IMAGE: image}).stdout == "from afar\n"
    assert isinstance(backend, Remote)
    assert backend.asked == [
        Program("code", {INPUT_IMAGE: image}, OUTPUT_IMAGE, SandboxLimits(wall_seconds=3.0))
    ]
    with pytest.raises(ServiceError, match="does not answer"):
        sandbox.run("unplugged")
    sandbox.close()
    assert backend.asked == []


def test_environments_share_one_sandbox() -> None:
    assert shared_sandbox() is shared_sandbox()
    assert shared_sandbox().run("1 + 1").result == "2"


def test_sandbox_pickles_and_restarts(sandbox: Sandbox) -> None:
    copy = pickle.loads(pickle.dumps(sandbox))
    with copy:
        assert copy.workers == sandbox.workers
        assert copy.limits == sandbox.limits
        assert copy.backend.hello().mode == sandbox.backend.hello().mode  # type: ignore[attr-defined]
        assert copy.run("1 + 1").result == "2"


def test_closed_sandbox_restarts() -> None:
    sandbox = Sandbox()
    assert sandbox.run("1").result == "1"
    sandbox.close()
    assert sandbox.run("2").result == "2"
    sandbox.close()
    sandbox.close()


# ---------------------------------------------------------------------------- options


BAD_PROGRAMS: dict[str, tuple[Mapping[str, Image | bytes], str]] = {
    "path": ({"../a.jpg": b""}, "file name"),
    "hidden": ({".jpg": b""}, "file name"),
    "dots": ({"..": b""}, "file name"),
    "keyword": ({"import": picture(2, 2)}, "file name"),
    "bytes for a variable": ({"image": b""}, "bytes need a file name"),
    "empty": ({"": b""}, "file name"),
    "line break": ({"a\n.jpg": b""}, "file name"),
    "long": ({"a" * 101 + ".jpg": b""}, "file name"),
    "many": ({f"{n}.jpg": b"" for n in range(17)}, "At most 16"),
    "output": ({OUTPUT_IMAGE: b""}, "not that of an input"),
}


@pytest.mark.parametrize("name", BAD_PROGRAMS)
def test_names_that_cannot_be_are_refused(name: str) -> None:
    images, complaint = BAD_PROGRAMS[name]
    with pytest.raises(ConfigurationError, match=complaint):
        Program("", images)


@pytest.mark.parametrize("output", ["", "noextension", "a/b.jpg", "/etc/a.jpg"])
def test_outputs_that_cannot_be_are_refused(output: str) -> None:
    with pytest.raises(ConfigurationError, match="The output needs"):
        Program("", output=output)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("wall_seconds", 0),
        ("wall_seconds", float("nan")),
        ("wall_seconds", float("inf")),
        ("cpu_seconds", 1.5),
        ("memory_bytes", -1),
        ("threads", 0),
        ("image_pixels", 1 << 62),
    ],
)
def test_limits_that_cannot_be_are_refused(name: str, value: float) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} must be"):
        SandboxLimits(**{name: value})  # type: ignore[arg-type]


def test_options_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="at least 1 worker"):
        Sandbox(workers=0)
    with pytest.raises(UnknownNameError, match="'namespaces'"):
        LocalBackend(isolation="namespace")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="ahead"):
        LocalBackend(ahead=-1)


def test_package_that_is_not_there_is_named() -> None:
    with (
        Sandbox(LocalBackend(packages=("numpy", "nowhere"))) as sandbox,
        pytest.raises(ConfigurationError, match="No module named 'nowhere'"),
    ):
        sandbox.start()


def test_packages_can_be_offered() -> None:
    packages = ("numpy", "PIL", "scipy.ndimage", "skimage.filters")  # skimage loads lazily
    code = "from skimage.filters import gaussian\nfloat(gaussian(np.ones((5, 5))).sum())"
    with Sandbox(LocalBackend(packages=packages)) as sandbox:
        assert sandbox.run(code).result == "25.0"
        assert "ModuleNotFoundError" in sandbox.run("import cv2").error


def test_workers_need_not_be_kept_ready() -> None:
    with Sandbox(LocalBackend(ahead=0)) as sandbox:
        assert [sandbox.run(f"{n}").result for n in range(3)] == ["0", "1", "2"]
