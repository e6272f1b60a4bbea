"""Tests attacks by inputs and outputs: images, files, descriptors, forged results."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.visenv.sandbox.probing import chunk
from visenv.sandbox import Execution, Sandbox, SandboxLimits
from visenv.sandbox.guest import wire
from visenv.types import Image

pytestmark = pytest.mark.attack(
    "sandbox: your process takes a result once, and decodes no file that a program wrote"
)

Attack = Callable[..., Execution]

LIMITS = SandboxLimits(wall_seconds=30.0, memory_bytes=512 << 20, image_pixels=1_000_000)
SHORT = replace(LIMITS, wall_seconds=0.4)

NO_FILE = {
    "symbolic link": "denied(os.symlink, '/etc/passwd', 'path_to_output_image.jpg')",
    "hard link": "denied(os.link, os.__file__, 'path_to_output_image.jpg')",
    "named pipe": "denied(os.mkfifo, 'output')",
    "device": "denied(os.mknod, 'output', 0o20666, os.makedev(1, 5))",
    "socket": "denied(os.mknod, 'output', 0o140666)",
}


@pytest.mark.parametrize("name", NO_FILE)
def test_programs_can_make_only_files_and_directories(name: str, attack: Attack) -> None:
    execution = attack(NO_FILE[name])
    assert execution.image is None


def test_directory_is_no_image(sandbox: Sandbox, mode: str) -> None:
    code = "import os\nos.unlink(o) if os.path.exists(o) else 0\nos.mkdir(o)"
    execution = sandbox.run("o = 'path_to_output_image.jpg'\n" + code)
    assert execution.image is None
    if mode == "namespaces":
        assert execution.image_problem == "it cannot be decoded: IsADirectoryError"
    else:
        assert "PermissionError" in execution.error


def png_bomb(width: int, height: int) -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    content = chunk(b"IDAT", zlib.compress(bytes(1_000_000), 9))
    return b"\x89PNG\r\n\x1a\n" + header + content + chunk(b"IEND", b"")


def encoded(kind: str, mode: str = "RGB", size: tuple[int, int] = (40, 30)) -> bytes:
    buffer = io.BytesIO()
    PIL.Image.new(mode, size, 200).save(buffer, kind)
    return buffer.getvalue()


BAD_FILES = {
    "nothing": (b"", ""),
    "junk": (b"junk", "it cannot be decoded: UnidentifiedImageError"),
    "text": (b"<svg onload=alert(1)>", "it cannot be decoded: UnidentifiedImageError"),
    "half a PNG": (encoded("PNG")[:60], "it cannot be decoded: OSError"),
    "half a JPEG": (encoded("JPEG")[:400], "it cannot be decoded: OSError"),
    "a program for Ghostscript": (
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n%%EOF\n",
        "it cannot be decoded: OSError",
    ),
    "a bomb": (
        png_bomb(60_000, 60_000),
        "it is 60000x60000 = 3,600,000,000 pixels; at most 1,000,000 are taken",
    ),
    "one row too many": (
        encoded("PNG", size=(1000, 1001)),
        "it is 1000x1001 = 1,001,000 pixels; at most 1,000,000 are taken",
    ),
    "a header that lies": (png_bomb(900, 900), "it cannot be decoded: OSError"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_file_that_is_no_image_is_not_taken(name: str, sandbox: Sandbox) -> None:
    content, problem = BAD_FILES[name]
    code = f"open('path_to_output_image.jpg', 'wb').write({content!r})"
    execution = sandbox.run(code, limits=LIMITS)
    assert execution.status == "ok"
    assert execution.image_problem == problem
    assert problem in execution.text
    assert execution.image is None
    assert execution.file is None


def test_sparse_files_are_cut_and_large_ones_not_taken(sandbox: Sandbox) -> None:
    code = """
import errno
with open("path_to_output_image.jpg", "wb") as file:
    try:
        file.truncate(1 << 40)
    except OSError as error:
        print(errno.errorcode[error.errno])
    file.truncate(40 << 20)
"""
    execution = sandbox.run(code, limits=LIMITS)
    assert execution.stdout == "EFBIG\n"
    assert execution.image_problem == "it has 41,943,040 bytes; at most 33,554,432 are taken"


_SIDEWAYS = PIL.Image.Exif()
_SIDEWAYS[0x0112] = 6  # orientation
UPRIGHT = f"exif={_SIDEWAYS.tobytes()!r}"
"""EXIF data with the orientation 6: the picture is stored sideways."""

KINDS: dict[str, tuple[str, str, tuple[int, int, int]]] = {
    "palette": ("Image.new('P', (7, 5), 3)", "'PNG'", (5, 7, 3)),
    "16 bit": ("Image.fromarray(np.full((5, 7), 40000, np.uint16))", "'PNG'", (5, 7, 156)),
    "grey": ("Image.new('L', (7, 5), 100)", "'PNG'", (5, 7, 100)),
    "transparent": ("Image.new('RGBA', (7, 5), (1, 2, 3, 0))", "'PNG'", (5, 7, 255)),
    "two colours": ("Image.new('1', (7, 5), 1)", "'PNG'", (5, 7, 255)),
    "float": ("Image.fromarray(np.full((5, 7), 0.5, np.float32))", "'TIFF'", (5, 7, 128)),
    "sideways": ("Image.new('RGB', (7, 5), (9, 9, 9))", f"'JPEG', {UPRIGHT}", (7, 5, 9)),
}
"""The picture, how it is saved, and its height, width and red value."""


@pytest.mark.parametrize("name", KINDS)
def test_images_of_every_kind_come_back_as_visenv_reads_them(name: str, sandbox: Sandbox) -> None:
    made, saved, (height, width, red) = KINDS[name]
    execution = sandbox.run(f"{made}.save('path_to_output_image.jpg', {saved})")
    assert execution.image is not None, execution
    assert execution.file is not None
    assert execution.image.pixels.shape == (height, width, 3)
    assert np.array_equal(execution.image.pixels, Image.from_bytes(execution.file).pixels)
    if name != "palette":
        assert abs(int(execution.image.pixels[0, 0, 0]) - red) <= 2


def test_color_behind_transparent_images_is_that_of_visenv(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISENV_IMAGE_BACKGROUND", "0a0b0c")
    made = "Image.new('RGBA', (7, 5), (0, 0, 0, 0))"
    execution = sandbox.run(f"{made}.save('path_to_output_image.jpg', 'PNG')")
    assert execution.image is not None, execution
    assert tuple(execution.image.pixels[0, 0]) == (10, 11, 12)


def test_image_of_floats_above_1_is_explained(sandbox: Sandbox) -> None:
    code = (
        "Image.fromarray(np.full((5, 7), 7.5, np.float32)).save('path_to_output_image.jpg', 'TIFF')"
    )
    execution = sandbox.run(code)
    assert execution.image is None
    assert "only floats from 0 to 1 are read" in execution.image_problem


BAD_INPUTS = {
    "a bomb": png_bomb(60_000, 60_000),
    "junk": b"junk",
    "nothing": b"",
    "half a JPEG": encoded("JPEG")[:300],
}


@pytest.mark.parametrize("name", BAD_INPUTS)
def test_file_that_is_hostile_harms_only_the_program(name: str, sandbox: Sandbox) -> None:
    code = """
try:
    found = cv2.imread("path_to_input_image.jpg") is not None
except cv2.error:
    found = False
found
"""
    execution = sandbox.run(code, {"path_to_input_image.jpg": BAD_INPUTS[name]}, limits=LIMITS)
    assert execution.result == "False", execution


def test_array_handed_in_is_the_programs_own_copy(sandbox: Sandbox) -> None:
    pixels = np.full((4, 6, 3), 7, np.uint8)
    image = Image.from_pixels(pixels)
    content = encoded("JPEG")
    code = """
image[:] = 99
open("photo.jpg", "wb").write(b"gone")
int(image.sum())
"""
    for _ in range(2):
        execution = sandbox.run(code, {"image": image, "photo.jpg": content})
        assert execution.result == str(4 * 6 * 3 * 99)
    assert int(image.pixels.max()) == 7


# ------------------------------------------------------------------------------ descriptors


def test_program_has_its_streams_and_three_memory_files(attack: Attack) -> None:
    attack(
        """
def is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
[number for number in range(4096) if is_open(number)]
""",
        "[0, 1, 2, 3, 4, 5]",
    )


def test_memory_files_cannot_grow_or_shrink(attack: Attack) -> None:
    attack(
        """
sizes = [os.fstat(number).st_size for number in (3, 4, 5)]
outcomes = [denied(os.ftruncate, n, size + by) for n, size in zip((3, 4, 5), sizes)
            for by in (-1, 1)]
outcomes += [denied(os.pwrite, n, b"x", size) for n, size in zip((3, 4, 5), sizes)]
every(outcomes)
""",
        limits=SandboxLimits(disk_bytes=1 << 30),  # large, so that the seal refuses the writes
    )


@pytest.mark.parametrize("closed", ["1", "2", "0, 1, 2", "1, 2, 3", "3", "4, 5"])
def test_closing_descriptors_harms_only_itself(closed: str, sandbox: Sandbox) -> None:
    code = f"import os\nfor each in ({closed},): os.close(each)\n6 * 7"
    execution = sandbox.run(code)
    no_report = "3" in closed
    assert execution.status == ("crashed" if no_report else "ok"), execution
    assert execution.result == ("" if no_report else "42")


def test_writing_to_descriptors_it_has_not(attack: Attack) -> None:
    attack(
        """
def write(number):
    try:
        os.write(number, b"x" * 100)
    except OSError:
        return True
every(write(number) for number in range(6, 4096))
"""
    )


# --------------------------------------------------------------------------- forged results


def forged(**values: int | bytes) -> bytes:
    return wire.ProgramReport(**values).pack()  # type: ignore[arg-type]


HUGE = (1 << 64) - 1
REPORTS = {
    "no such image": forged(height=0, width=5, file=9),
    "an image too large": forged(height=1 << 20, width=1 << 20, file=9),
    "an image whose size overflows": forged(height=1 << 63, width=2, file=9),
    "a file too large": forged(height=2, width=2, file=HUGE),
    "no file": forged(height=2, width=2, file=0),
}


@pytest.mark.parametrize("name", REPORTS)
def test_numbers_that_cannot_be_are_not_believed(name: str, sandbox: Sandbox) -> None:
    code = f"import os\nos.pwrite(3, {REPORTS[name]!r}, 0)\nos._exit(0)"
    execution = sandbox.run(code)
    assert execution.status == "ok"
    assert execution.image is None
    assert execution.file is None


def test_forged_use_of_the_machine_is_cut_to_what_can_be(sandbox: Sandbox) -> None:
    report = forged(cpu=HUGE, memory=HUGE >> 10)
    execution = sandbox.run(f"import os\nos.pwrite(3, {report!r}, 0)\nos._exit(0)")
    assert execution.cpu_seconds <= sandbox.limits.cpu_seconds
    assert execution.memory_bytes <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("size", [0, 1 << 17, HUGE & 0xFFFF_FFFF])
def test_texts_longer_than_there_is_room_for_are_not_read(size: int, sandbox: Sandbox) -> None:
    report = struct.pack("=3I5Q", size, size, size, 0, 0, 0, 0, 0)
    execution = sandbox.run(f"import os\nos.pwrite(3, {report!r}, 0)\nos._exit(0)")
    assert execution.status == "crashed"


def test_image_of_its_own_making_is_but_pixels(sandbox: Sandbox) -> None:
    report = forged(height=2, width=2, file=4)
    code = f"import os\nos.pwrite(4, b'abcdefghijkl', 0)\nos.pwrite(3, {report!r}, 0)\nos._exit(0)"
    execution = sandbox.run(code)
    assert execution.image is not None
    assert execution.image.pixels.tobytes() == b"abcdefghijkl"
    assert execution.file == bytes(4)


def test_results_that_can_still_be_changed_are_not_taken(sandbox: Sandbox) -> None:
    code = f"""
import mmap, os, time
kept = mmap.mmap(4, 4096)
os.pwrite(3, {forged(height=1, width=1, file=1)!r}, 0)
os.closerange(0, 3)
while True:
    kept[:3] = b"new"
"""
    assert sandbox.run(code, limits=SHORT).status == "wall"


def test_process_is_killed_after_results_are_taken(sandbox: Sandbox) -> None:
    code = f"""
import os, time
os.pwrite(3, {forged(result=b"'forged'")!r}, 0)
os.closerange(0, 3)
while True:
    time.sleep(0.01)
"""
    # If the sandbox waited for the end of the program, the test would exceed its time limit.
    execution = sandbox.run(code, limits=SandboxLimits(wall_seconds=3600.0))
    assert (execution.status, execution.result) == ("ok", "'forged'")


@given(st.binary(max_size=400))
def test_report_of_any_kind_is_read(content: bytes) -> None:
    wire.ProgramReport.unpack(content.ljust(wire.REPORT_BYTES, b"\0"))


@given(
    st.binary(max_size=wire.RESULT_BYTES),
    st.binary(max_size=300),
    st.binary(max_size=wire.PROBLEM_BYTES),
    st.lists(st.integers(0, HUGE), min_size=5, max_size=5),
)
def test_report_is_read_as_it_was_written(
    result: bytes, error: bytes, problem: bytes, numbers: list[int]
) -> None:
    report = wire.ProgramReport(result, error, problem, *numbers)
    content = report.pack()
    assert len(content) <= wire.REPORT_BYTES
    assert wire.ProgramReport.unpack(content.ljust(wire.REPORT_BYTES, b"\0")) == report


def test_report_keeps_the_beginning_of_a_result_and_the_end_of_an_error() -> None:
    long = b"a" * 40_000 + b"z" * 40_000
    report = wire.ProgramReport.unpack(
        wire.ProgramReport(long, long).pack().ljust(wire.REPORT_BYTES, b"\0")
    )
    assert report is not None
    assert (report.result[:1], len(report.result)) == (b"a", 1 << 16)
    assert (report.error[-1:], len(report.error)) == (b"z", 1 << 16)


def test_open_files_of_the_client_are_as_many_as_before(
    sandbox: Sandbox, open_files: Callable[[], Counter[str]]
) -> None:
    code = "import os\nos._exit(1)"
    sandbox.run(code)
    before = open_files()
    for _ in range(20):
        sandbox.run(code, {"image": Image.from_pixels(np.zeros((9, 9, 3), np.uint8))})
    assert open_files() <= before
