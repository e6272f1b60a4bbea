"""Tests the pixels of pictures of many modes and formats, each written by Pillow."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import PIL.Image
import PIL.ImageOps
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from visenv.decoding.pictures import BACKGROUND
from visenv.errors import ConfigurationError, ImageError
from visenv.types import Image

SIZE = (8, 4)
ORIENTATION = 0x0112
RED, GREEN, BLUE = (200, 30, 40), (20, 180, 60), (10, 50, 220)
WHITE, BLACK = (255, 255, 255), (0, 0, 0)

Picture = PIL.Image.Image


def flat(mode: str, color: Any) -> Picture:
    """Return a picture of one color."""
    return PIL.Image.new(mode, SIZE, color)


def array(values: Any, dtype: Any) -> Picture:
    """Return a gray picture whose pixels all have this value."""
    return PIL.Image.fromarray(np.full(SIZE[::-1], values, dtype))


def palette(transparent: int | bytes | None = None) -> Picture:
    """Return a picture with a palette of red and green; all pixels are the first color."""
    picture = PIL.Image.new("P", SIZE, 0)
    picture.putpalette([*RED, *GREEN])
    if transparent is not None:
        picture.info["transparency"] = transparent
    return picture


def encode(picture: Picture, form: str, **options: Any) -> bytes:
    """Return a picture as a file."""
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


def gray(level: int) -> tuple[int, int, int]:
    return (level, level, level)


LOSSLESS: dict[str, Any] = {"lossless": True}
TABLE: dict[str, tuple[Callable[[], Picture], str, dict[str, Any], tuple[int, int, int], int]] = {
    # name: picture, format, options, expected color, tolerance
    "PNG RGB": (lambda: flat("RGB", RED), "PNG", {}, RED, 0),
    "PNG L": (lambda: flat("L", 90), "PNG", {}, gray(90), 0),
    "PNG 1": (lambda: flat("1", 1), "PNG", {}, WHITE, 0),
    "PNG P": (palette, "PNG", {}, RED, 0),
    "PNG P, 1 bit": (palette, "PNG", {"bits": 1}, RED, 0),
    "PNG P, transparent": (lambda: palette(0), "PNG", {"transparency": 0}, WHITE, 0),
    "PNG P, other transparent": (lambda: palette(1), "PNG", {"transparency": 1}, RED, 0),
    "PNG P, half": (palette, "PNG", {"transparency": bytes([128])}, (227, 142, 147), 1),
    "PNG RGBA, opaque": (lambda: flat("RGBA", (*RED, 255)), "PNG", {}, RED, 0),
    "PNG RGBA, transparent": (lambda: flat("RGBA", (*BLACK, 0)), "PNG", {}, WHITE, 0),
    "PNG RGBA, half": (lambda: flat("RGBA", (*BLACK, 128)), "PNG", {}, gray(127), 1),
    "PNG LA, transparent": (lambda: flat("LA", (0, 0)), "PNG", {}, WHITE, 0),
    "PNG LA, opaque": (lambda: flat("LA", (70, 255)), "PNG", {}, gray(70), 0),
    "PNG RGB, one color transparent": (
        *(lambda: flat("RGB", GREEN), "PNG"),
        *({"transparency": GREEN}, WHITE, 0),
    ),
    "PNG RGB, other transparent": (
        *(lambda: flat("RGB", GREEN), "PNG"),
        *({"transparency": RED}, GREEN, 0),
    ),
    "PNG L, one level transparent": (lambda: flat("L", 9), "PNG", {"transparency": 9}, WHITE, 0),
    "PNG 16 bit, white": (lambda: array(65535, np.uint16), "PNG", {}, WHITE, 0),
    "PNG 16 bit, middle": (lambda: array(128 * 257, np.uint16), "PNG", {}, gray(128), 0),
    "PNG 16 bit, dark": (lambda: array(257, np.uint16), "PNG", {}, gray(1), 0),
    "PNG 16 bit, rounded": (lambda: array(300, np.uint16), "PNG", {}, gray(1), 0),
    "PNG 16 bit, one level transparent": (
        *(lambda: array(300, np.uint16), "PNG"),
        *({"transparency": 300}, WHITE, 0),
    ),
    "PNG 16 bit, other level transparent": (
        *(lambda: array(300, np.uint16), "PNG"),
        *({"transparency": 301}, gray(1), 0),
    ),
    "JPEG RGB": (lambda: flat("RGB", RED), "JPEG", {"quality": 95}, RED, 3),
    "JPEG L": (lambda: flat("L", 90), "JPEG", {}, gray(90), 2),
    "JPEG CMYK": (lambda: flat("CMYK", (0, 255, 255, 0)), "JPEG", {"quality": 95}, (255, 0, 0), 3),
    "JPEG progressive": (lambda: flat("RGB", BLUE), "JPEG", {"progressive": True}, BLUE, 4),
    "MPO": (lambda: flat("RGB", GREEN), "MPO", {"quality": 95}, GREEN, 3),
    "WebP RGB": (lambda: flat("RGB", RED), "WEBP", LOSSLESS, RED, 0),
    "WebP RGBA, transparent": (lambda: flat("RGBA", (*RED, 0)), "WEBP", LOSSLESS, WHITE, 0),
    "WebP RGBA, opaque": (lambda: flat("RGBA", (*RED, 255)), "WEBP", LOSSLESS, RED, 0),
    "GIF P": (palette, "GIF", {}, RED, 0),
    "GIF P, transparent": (palette, "GIF", {"transparency": 0}, WHITE, 0),
    "BMP RGB": (lambda: flat("RGB", BLUE), "BMP", {}, BLUE, 0),
    "BMP L": (lambda: flat("L", 17), "BMP", {}, gray(17), 0),
    "BMP P": (palette, "BMP", {}, RED, 0),
    "BMP 1": (lambda: flat("1", 0), "BMP", {}, BLACK, 0),
    "PPM RGB": (lambda: flat("RGB", RED), "PPM", {}, RED, 0),
    "PPM L": (lambda: flat("L", 200), "PPM", {}, gray(200), 0),
    "PPM 1": (lambda: flat("1", 1), "PPM", {}, WHITE, 0),
    "PPM 16 bit": (lambda: array(128 * 257, np.int32), "PPM", {}, gray(128), 0),
    "TIFF RGB": (lambda: flat("RGB", GREEN), "TIFF", {}, GREEN, 0),
    "TIFF RGBA": (lambda: flat("RGBA", (*GREEN, 0)), "TIFF", {}, WHITE, 0),
    "TIFF CMYK": (lambda: flat("CMYK", (0, 0, 0, 0)), "TIFF", {}, WHITE, 0),
    "TIFF 16 bit": (lambda: array(65535, np.uint16), "TIFF", {}, WHITE, 0),
    "TIFF 16 bit, 0 is white": (
        *(lambda: array(0, np.uint16), "TIFF"),
        *({"tiffinfo": {262: 0}}, WHITE, 0),
    ),
    "TIFF float, 0 is white": (
        *(lambda: array(1.0, np.float32), "TIFF"),
        *({"tiffinfo": {262: 0}}, BLACK, 0),
    ),
    "TIFF 8 bit, 0 is white": (lambda: flat("L", 90), "TIFF", {"tiffinfo": {262: 0}}, gray(90), 0),
    "TIFF float 1": (lambda: array(1.0, np.float32), "TIFF", {}, WHITE, 0),
    "TIFF float 0.5": (lambda: array(0.5, np.float32), "TIFF", {}, gray(128), 0),
    "TIFF 1": (lambda: flat("1", 1), "TIFF", {}, WHITE, 0),
    "TIFF LAB": (lambda: flat("LAB", (255, 128, 128)), "TIFF", {}, WHITE, 2),
    "TIFF YCbCr": (lambda: flat("YCbCr", (128, 128, 128)), "TIFF", {}, gray(128), 1),
}


OLD = int(PIL.__version__.partition(".")[0]) < 13
"""Whether Pillow cannot read the YCbCr TIFF files that it writes."""


@pytest.mark.parametrize("name", [name for name in TABLE if name != "TIFF YCbCr" or not OLD])
def test_colors_of_modes_and_formats(name: str) -> None:
    picture, form, options, color, tolerance = TABLE[name]
    image = Image.from_bytes(encode(picture(), form, **options))
    assert image.size == SIZE
    assert image.pixels.shape == (SIZE[1], SIZE[0], 3)
    assert image.pixels.dtype == np.uint8
    difference = np.abs(image.pixels.astype(int) - np.array(color))
    assert difference.max() <= tolerance, image.pixels[0, 0]


def test_table_has_forty_rows_or_more() -> None:
    assert len(TABLE) >= 40


OPENCV = [
    "PNG RGB",
    "PNG L",
    "PNG P",
    "JPEG RGB",
    "JPEG L",
    "WebP RGB",
    "BMP RGB",
    "BMP P",
    "PPM RGB",
]


def opencv_pixels(encoded: bytes) -> NDArray[np.uint8]:
    """Return the pixels that OpenCV decodes, RGB."""
    decoded = cv2.imdecode(np.frombuffer(encoded, np.uint8), cv2.IMREAD_COLOR)
    assert decoded is not None
    return np.asarray(decoded[:, :, ::-1], np.uint8)


@pytest.mark.component("opencv")
@pytest.mark.parametrize("name", OPENCV)
def test_pixels_equal_those_of_opencv(name: str, tmp_path: Path) -> None:
    picture, form, options, *_ = TABLE[name]
    path = tmp_path / f"picture.{form.lower()}"
    path.write_bytes(encode(picture(), form, **options))
    theirs = opencv_pixels(path.read_bytes())
    difference = np.abs(Image.from_file(path).pixels.astype(int) - theirs.astype(int))
    assert difference.max() <= (1 if form == "JPEG" else 0)


def test_color_of_the_background_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = encode(flat("RGBA", (*BLACK, 0)), "PNG")
    monkeypatch.setenv(BACKGROUND, "0a0B0c")
    assert tuple(Image.from_bytes(encoded).pixels[0, 0]) == (10, 11, 12)
    monkeypatch.setenv(BACKGROUND, "white")
    with pytest.raises(ConfigurationError, match=r"VISENV_IMAGE_BACKGROUND must be a color"):
        _ = Image.from_bytes(encoded).pixels


# -------------------------------------------------------------------------------------- orientation


def corners() -> Picture:
    """Return a picture with a different color in each corner."""
    values = np.zeros((40, 80, 3), np.uint8)
    values[:20, :40], values[:20, 40:], values[20:, :40] = RED, GREEN, BLUE
    return PIL.Image.fromarray(values)


def with_orientation(form: str, orientation: int) -> bytes:
    exif = PIL.Image.Exif()
    exif[ORIENTATION] = orientation
    options: dict[str, Any] = {"JPEG": {"quality": 95}, "WEBP": LOSSLESS}.get(form, {})
    return encode(corners(), form, exif=exif, **options)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_orientation_is_applied(form: str, orientation: int) -> None:
    encoded = with_orientation(form, orientation)
    image = Image.from_bytes(encoded)
    # OpenCV 4.10 does not apply the orientation of WebP; both forms are lossless.
    theirs = opencv_pixels(with_orientation("PNG" if form == "WEBP" else form, orientation))
    assert image.size == ((40, 80) if orientation >= 5 else (80, 40))
    assert image.pixels.shape == theirs.shape
    difference = np.abs(image.pixels.astype(int) - theirs.astype(int))
    assert difference.max() <= (4 if form == "JPEG" else 0)


@pytest.mark.component("trl")  # which depends on the datasets library
@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_orientation_equals_that_of_the_datasets_library(form: str, orientation: int) -> None:
    import datasets

    encoded = with_orientation(form, orientation)
    theirs = datasets.Image().decode_example({"bytes": encoded, "path": None})
    assert np.array_equal(Image.from_bytes(encoded).pixels, np.asarray(theirs.convert("RGB")))


def test_orientation_after_the_pixels_of_a_png_is_applied() -> None:
    encoded = with_orientation("PNG", 6)
    start = encoded.index(b"eXIf") - 4
    length = 12 + int.from_bytes(encoded[start : start + 4])
    chunk = encoded[start : start + length]
    end = encoded.index(b"IEND") - 4
    late = encoded[:start] + encoded[start + length : end] + chunk + encoded[end:]
    image = Image.from_bytes(late)
    assert image.size == (40, 80)
    assert image.pixels.shape == (80, 40, 3)
    assert np.array_equal(image.pixels, Image.from_bytes(encoded).pixels)


@given(st.binary(max_size=60))
def test_damaged_exif_data_do_not_matter(data: bytes) -> None:
    image = Image.from_bytes(encode(flat("RGB", RED), "JPEG", exif=b"Exif\0\0" + data))
    assert {*image.size} == {*SIZE}
    assert image.pixels.shape == (image.size[1], image.size[0], 3)


# ------------------------------------------------------------------------- frames, pages, refusals


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG", "TIFF"])
def test_first_frame_of_an_animation_is_read(form: str) -> None:
    others = [flat("RGB", GREEN), flat("RGB", BLUE)]
    options = LOSSLESS if form == "WEBP" else {}
    encoded = encode(flat("RGB", RED), form, save_all=True, append_images=others, **options)
    assert tuple(Image.from_bytes(encoded).pixels[0, 0]) == RED


REFUSED: dict[str, tuple[Picture, str]] = {
    "float above 1": (array(1.5, np.float32), r"floats from 1\.5 to 1\.5; only floats from 0 to 1"),
    "float below 0": (array(-0.1, np.float32), "only floats from 0 to 1"),
    "nan": (array(np.nan, np.float32), "only floats from 0 to 1"),
    "32-bit integers": (array(70_000, np.int32), "32-bit integers, whose range is not known"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_values_without_a_defined_color_are_refused(name: str) -> None:
    picture, message = REFUSED[name]
    with pytest.raises(ImageError, match=message):
        _ = Image.from_bytes(encode(picture, "TIFF")).pixels


def test_ramp_of_16_bits_is_scaled() -> None:
    ramp = np.arange(256, dtype=np.uint16)[None].repeat(4, 0) * 257
    image = Image.from_bytes(encode(PIL.Image.fromarray(ramp), "PNG"))
    assert np.array_equal(image.pixels[0, :, 0], np.arange(256))
