"""Tests hostile images: other formats, too many pixels, tiles and scans, and damaged bytes."""

from __future__ import annotations

import io
import resource
import struct
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from visenv.decoding.pictures import FORMATS, MAX_PIXELS
from visenv.errors import ImageError
from visenv.types import Image

ATTACK = pytest.mark.attack("decoders: an image or a video cannot end or stop the process")

PIXELS = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)


def encoded(kind: str, pixels: Any = PIXELS, **options: Any) -> bytes:
    buffer = io.BytesIO()
    PIL.Image.fromarray(pixels).save(buffer, kind, **options)
    return buffer.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, data: bytes = b"", *extra: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = [
        chunk(b"IHDR", header),
        *extra,
        chunk(b"IDAT", zlib.compress(data)),
        chunk(b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def webp(width: int, height: int) -> bytes:
    """Return an animation without frames, whose canvas has this size."""
    canvas = (struct.pack("<I", side - 1)[:3] for side in (width, height))
    chunks = b"VP8X" + struct.pack("<I", 10) + bytes([2, 0, 0, 0]) + b"".join(canvas)
    chunks += b"ANIM" + struct.pack("<I", 6) + bytes(6)
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WEBP" + chunks


def tiff(side: int, tile: int) -> bytes:
    """Return a TIFF of `side` pixels in one deflated tile of `tile` pixels."""
    data = zlib.compress(bytes(10_000))
    entries = [
        (256, 4, side), (257, 4, side), (258, 3, 8), (259, 3, 8), (262, 3, 1), (277, 3, 1),
        (322, 4, tile), (323, 4, tile), (324, 4, 8), (325, 4, len(data)),
    ]  # fmt: skip
    directory = struct.pack("<H", len(entries))
    directory += b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in entries)
    return b"II*\0" + struct.pack("<I", 8 + len(data)) + data + directory + bytes(4)


def progressive(side: int, scans: int) -> bytes:
    """Return a progressive JPEG whose last scan is repeated up to a number of scans."""
    whole = encoded("JPEG", np.zeros((side, side), np.uint8), progressive=True)
    last = whole[whole.rindex(b"\xff\xda") : -2]
    return whole[:-2] + last * (scans - whole.count(b"\xff\xda")) + whole[-2:]


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "BMP", "TIFF", "PPM"])
def test_lossless_formats_are_read(kind: str) -> None:
    options = {"lossless": True} if kind == "WEBP" else {}
    assert (Image.from_bytes(encoded(kind, **options)).pixels == PIXELS).all()


@pytest.mark.parametrize("kind", ["JPEG", "GIF", "MPO"])
def test_lossy_formats_are_read(kind: str) -> None:
    more = {"save_all": True, "append_images": [PIL.Image.new("RGB", (7, 5))]}
    image = Image.from_bytes(encoded(kind, **(more if kind == "MPO" else {})))
    assert image.size == (7, 5)
    assert image.pixels.shape == (5, 7, 3)


@ATTACK
@pytest.mark.parametrize("kind", ["ICNS", "ICO", "EPS", "JPEG2000", "TGA", "PCX", "SGI", "DDS"])
def test_other_formats_are_refused_with_the_list(kind: str, tmp_path: Path) -> None:
    content = encoded(kind, np.zeros((64, 64, 3), np.uint8))
    (tmp_path / "a.png").write_bytes(content)
    for image in (Image.from_bytes(content, "a.png"), Image.from_file(tmp_path / "a.png")):
        for name in ("size", "pixels"):
            with pytest.raises(ImageError, match=rf"a\.png is not .* formats {', '.join(FORMATS)}"):
                getattr(image, name)


@ATTACK
def test_postscript_starts_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "started"
    program = tmp_path / "gs"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    box = b"%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n%%EOF\n"
    preview = b"\xc5\xd0\xd3\xc6" + struct.pack("<II", 30, 90) + bytes(18)  # a binary header of DOS
    for start in (b"%!PS-Adobe-3.0 EPSF-3.0\n", preview + b"%!PS-Adobe-3.0 EPSF-3.0\n"):
        with pytest.raises(ImageError):
            _ = Image.from_bytes(start + box).pixels
    assert not mark.exists()


BOMBS = {
    "png": png(30_000, 30_000),
    "png of the largest size": png(2**31 - 1, 2**31 - 1),
    "webp": webp(16_384, 16_384),
    "bmp": encoded("BMP")[:18] + struct.pack("<ii", 30_000, 30_000) + encoded("BMP")[26:],
    "gif": b"GIF89a" + struct.pack("<HH", 65_535, 65_535) + bytes(3) + b",",
    "ppm": b"P6 30000 30000 255\n",
    "tiff": tiff(30_000, 16),
}


@ATTACK
@pytest.mark.parametrize("name", BOMBS)
def test_image_with_too_many_pixels_is_refused_before_it_is_decoded(name: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    image = Image.from_bytes(BOMBS[name], name)
    for read in (lambda: image.size, lambda: image.pixels):
        with pytest.raises(ImageError, match=f"{name} is"):
            read()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


@ATTACK
def test_large_tiles_of_a_small_image_are_refused() -> None:
    assert Image.from_bytes(tiff(64, 64)).size == (64, 64)
    with pytest.raises(ImageError, match=rf"tiles of 40000x40000 pixels; at most {MAX_PIXELS:,}"):
        _ = Image.from_bytes(tiff(64, 40_000)).pixels


@ATTACK
def test_jpeg_of_many_exif_segments_is_refused() -> None:
    whole = encoded("JPEG")
    for segment, count in ((b"", 1_000_000), (b"a" * 60_000, 1_000)):
        exif = b"\xff\xe1" + struct.pack(">H", 8 + len(segment)) + b"Exif\0\0" + segment
        with pytest.raises(ImageError, match=f"{count:,} segments of EXIF data; at most 256"):
            Image.from_bytes(whole[:2] + exif * count + whole[2:]).size  # noqa: B018
    few = Image.from_bytes(whole[:2] + exif * 20 + whole[2:])
    assert few.size == (7, 5)


@ATTACK
def test_progressive_jpeg_of_many_scans_is_refused(tmp_path: Path) -> None:
    usual, many = progressive(64, 20), progressive(64, 500)
    assert Image.from_bytes(usual).pixels.shape == (64, 64, 3)
    (tmp_path / "a.jpg").write_bytes(many)
    for image in (Image.from_bytes(many), Image.from_file(tmp_path / "a.jpg")):
        with pytest.raises(ImageError, match="progressive JPEG of 500 scans; at most 100"):
            _ = image.pixels


@ATTACK
@pytest.mark.parametrize("kind", [b"zTXt", b"iCCP"])
def test_text_of_a_png_that_expands_is_no_fault(kind: bytes) -> None:
    bomb = chunk(kind, b"a\0\0" + zlib.compress(bytes(200_000_000), 1))
    before = time.process_time()
    try:
        assert Image.from_bytes(png(1, 1, b"\0\0", bomb)).size == (1, 1)
    except ImageError as error:
        assert "is not an image that can be read" in str(error)  # noqa: PT017 - both are right
    assert time.process_time() - before < 30


@ATTACK
@settings(max_examples=200)
@given(data=st.data())
def test_damaged_image_is_read_or_refused(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM"]))
    content = bytearray(encoded(kind))
    edits = st.tuples(st.integers(0, len(content) - 1), st.binary(min_size=1, max_size=4))
    for place, new in data.draw(st.lists(edits, max_size=6)):
        content[place : place + len(new)] = new
    image = Image.from_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]), "damaged")
    try:
        assert image.pixels.shape == (*image.size[::-1], 3)
    except ImageError as error:
        assert "damaged" in str(error)  # noqa: PT017 - both outcomes are right
