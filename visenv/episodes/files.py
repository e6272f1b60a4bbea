"""Reads and writes files of episodes, and their images.

Each line ends with a field ``crc32``, the checksum of the text before it; reading compares it. A
line without this field, which an earlier version or another program wrote, is read too. Every chunk
of a PNG file has a checksum, so damage by a disk, a transfer or a power cut is found without
decoding the image (`is_whole_png`).
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from visenv.decoding.files import open_regular, read_lines
from visenv.decoding.json_text import read_json
from visenv.disk import disk_errors, sync
from visenv.errors import DataError, EpisodeError, FileRefusedError
from visenv.files import append, check_no_link, open_output, output_folder, replacing
from visenv.types import Episode, Image

from .decode import BROKEN, ImageFolder, decode
from .record import TIMES, episode_to_json

_CHECKSUM = re.compile(rb',"crc32":"[0-9a-f]{8}"\}')
_CHECKSUM_LENGTH = 20

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_END = b"IEND"
"""The type of the last chunk."""

_BLOCK = 2**20


def write_episodes(path: str | Path, episodes: Iterable[Episode]) -> None:
    """Write a file of episodes and the images that do not exist yet; replace an old file.

    The file appears under its name only when it and its images are complete and on the disk.

    Args:
        path: The file. Its folder is created, and images are written to ``images/`` in it.
        episodes: The episodes.

    Raises:
        EpisodeError: If a field that must be JSON-like holds something else.
        DiskError: If the disk is full or fails.
    """
    path = Path(path)
    images = path.parent / "images"
    saved: set[Path] = set()
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, durable=True) as partial:
        with partial.open("wb") as file:
            for episode in episodes:
                file.write(_line(episode))
                saved.update(save_images(images, _all_images(episode)))
        for each in (*sorted(saved), *({images} if saved else ())):
            sync(each)


def append_episode(path: str | Path, episode: Episode) -> None:
    """Append an episode to a file, which is created if it does not exist.

    Images are written before the line that refers to them. A process that is killed while it writes
    leaves at most an incomplete last line; if the disk is full, the file remains unchanged.

    Args:
        path: The file. Its folder is created, and images are written to ``images/`` in it.
        episode: The episode to add.

    Raises:
        EpisodeError: If a field that must be JSON-like holds something else.
        DiskError: If the disk is full or fails.
    """
    path = Path(path)
    line = _line(episode)
    save_images(path.parent / "images", _all_images(episode))
    with open_output(path, "ab", buffering=0) as file:
        append(file, path, line)


def read_episodes(
    path: str | Path, *, messages: bool = True, check_pixels: bool = True, required: bool = False
) -> Iterator[Episode]:
    """Read the episodes of a file, one at a time.

    Args:
        path: The file.
        messages: Whether to read messages, hidden frames and segments as well. Without them no
            image is opened, and episodes are as `Episode.without_messages` returns them.
        check_pixels: Whether the pixels of each image are compared with the hash in the episode. If
            False, no image is opened: a changed file is not noticed, and a missing or broken file
            raises `ImageError` when its pixels or size are read.
        required: Whether a file without episodes is an error.

    Raises:
        DataError: If a line is broken or violates an invariant, or with `check_pixels` if one of
            its images is missing; the message contains the file and the line number. With
            `required`, if the file is empty.
    """
    count = 0
    for line in read_episode_lines(path, messages=messages, check_pixels=check_pixels):
        if line.episode is None:
            raise DataError(line.problem)
        yield line.episode
        count += 1
    if required and not count:
        raise DataError(f"{path} contains no episodes: it is empty.")


class EpisodeLine(NamedTuple):
    """Holds a line of a file of episodes.

    Attributes:
        number: The number of the line, from 1.
        episode: The episode, or None if the line is broken.
        problem: Why it is broken, with the file and the line, otherwise ``""``.
    """

    number: int
    episode: Episode | None
    problem: str = ""


def read_episode_lines(
    path: str | Path, *, messages: bool = True, check_pixels: bool = True
) -> Iterator[EpisodeLine]:
    """Read the lines of a file of episodes, one at a time; those after a broken line are read, too.

    Args:
        path: The file.
        messages: See `read_episodes`.
        check_pixels: See `read_episodes`.

    Raises:
        DataError: If the file cannot be read.
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"There is no file of episodes {path}.")
    # Episodes share an image while one of them is in use; so the memory use remains small if the
    # caller keeps no episode.
    images = ImageFolder(path.parent / "images", WeakValueDictionary(), check_pixels)
    for number, line in enumerate(_lines(path), start=1):
        try:
            _check_line(line.rstrip())
            record = read_json(line.decode("utf-8", "surrogatepass"))
            if not messages:
                _drop_messages(record)
            yield EpisodeLine(number, decode(record, images))
        except BROKEN as error:
            reason = f"{type(error).__name__}: {error}"
            problem = f"{path}, line {number} holds no episode: {reason}"
            yield EpisodeLine(number, None, problem)


def _lines(path: Path) -> Iterator[bytes]:
    try:
        yield from read_lines(path)
    except FileRefusedError:
        raise
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def save_images(folder: Path, images: Iterable[Image]) -> list[Path]:
    """Write the missing images to ``folder/<sha256>.png``, lossless, and return all paths.

    Raises:
        ConfigurationError: If the folder or one of the files is a link.
        DiskError: If the disk is full or fails.
    """
    output_folder(folder)
    paths: list[Path] = []
    for image in images:
        path = folder / f"{image.sha256}.png"
        _write_image(path, image)
        paths.append(path)
    return paths


def _line(episode: Episode) -> bytes:
    """Return the line of an episode, with its checksum."""
    record = episode_to_json(episode)
    for turn, saved in zip(episode.turns, record["turns"], strict=True):
        saved |= {name: getattr(turn, name) for name in TIMES}
    try:
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))[:-1]
    except TypeError as error:
        name = f"{episode.env_id} {episode.sample_id} (seed {episode.seed})"
        raise EpisodeError(f"The episode {name} cannot be written as JSON: {error}.") from error
    # Half of a surrogate pair is written and read back as it is, because Python encodes each code
    # point separately.
    encoded = text.encode("utf-8", "surrogatepass")
    return encoded + _checksum(encoded) + b"\n"


def _checksum(text: bytes) -> bytes:
    """Return the end of a line with the checksum of the text before it."""
    return b',"crc32":"%08x"}' % zlib.crc32(text)


def _check_line(line: bytes) -> None:
    """Raise `DataError` if a line ends with a checksum that differs from its text."""
    text, end = line[:-_CHECKSUM_LENGTH], line[-_CHECKSUM_LENGTH:]
    if _CHECKSUM.fullmatch(end) and end != _checksum(text):
        raise DataError(
            "its text differs from its checksum, so it is damaged. If you edited the line, remove "
            "its field crc32."
        )


def _all_images(episode: Episode) -> Iterator[Image]:
    yield from episode.images
    yield from episode.hidden_frames


def _write_image(path: Path, image: Image) -> None:
    check_no_link(path)
    if is_whole_png(path):
        return
    with replacing(path) as partial:
        partial.write_bytes(image.png())


def _drop_messages(record: dict[str, Any]) -> None:
    for turn in record["turns"]:
        turn.update(messages=[], hidden_frames=[])
    record.update(closing=[], segments=[])


def is_whole_png(path: Path) -> bool:
    """Return whether a file exists and is a PNG whose chunks agree with their checksums.

    Raises:
        OSError: If the file cannot be read.
        FileRefusedError: If it is not a regular file.
    """
    try:
        with open_regular(path) as file:
            if file.read(len(_SIGNATURE)) != _SIGNATURE:
                return False
            while len(head := file.read(8)) == 8:
                left, kind = struct.unpack(">I4s", head)
                found = zlib.crc32(kind)
                while left and (block := file.read(min(left, _BLOCK))):
                    found = zlib.crc32(block, found)
                    left -= len(block)
                if left or file.read(4) != struct.pack(">I", found):
                    return False
                if kind == _END:
                    return True
    except FileNotFoundError:
        pass
    return False
