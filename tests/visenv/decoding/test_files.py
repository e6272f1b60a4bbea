"""Tests that only regular files of a limited size are opened."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from visenv.data.open import open_data
from visenv.decoding.files import check_folder, open_regular, read_lines, read_regular, read_text
from visenv.documents.pdf import PdfDocument
from visenv.episodes import read_episodes
from visenv.errors import DataError, FileRefusedError, ImageError
from visenv.types import Image
from visenv.types.frames import video_facts

ATTACK = pytest.mark.attack("decoders: only regular files of a limited size are opened")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def terminal(path: Path) -> None:
    path.symlink_to("/dev/tty")


def folder(path: Path) -> None:
    path.mkdir()


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


KINDS: dict[Callable[[Path], None], str] = {
    pipe: "a named pipe",
    device: "a device",
    terminal: "a device",
    folder: "a folder",
    bind: "a socket",
}
kinds = pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)


@pytest.fixture
def odd(make: Callable[[Path], None], tmp_path: Path) -> Path:
    """Return the path of a file that is not regular."""
    path = tmp_path / "odd"
    make(path)
    return path


@ATTACK
@kinds
def test_file_that_is_not_regular_is_refused_at_once(
    make: Callable[[Path], None], odd: Path
) -> None:
    for read in (open_regular, read_regular, read_text, lambda path: list(read_lines(path))):
        with pytest.raises(FileRefusedError, match=f"odd is not a regular file but {KINDS[make]}"):
            read(odd)


@ATTACK
@kinds
def test_images_documents_videos_and_episodes_are_read_from_regular_files(
    make: Callable[[Path], None], odd: Path
) -> None:
    kind = KINDS[make]
    with pytest.raises(ImageError, match=kind):
        _ = Image.from_file(odd).size
    with pytest.raises(ImageError, match=kind):
        Image.from_file(odd).in_memory()
    with pytest.raises(ImageError, match=kind):
        video_facts(str(odd))
    document = PdfDocument.open(odd, "odd")
    for read in (lambda: len(document), lambda: document.sha256):
        with pytest.raises(DataError, match=kind):
            read()
    with pytest.raises(DataError, match=kind):
        list(read_episodes(odd))


@ATTACK
@pytest.mark.parametrize("name", ["hr_bench_4k.parquet", "HRBench4K.tsv"])
def test_data_set_in_a_pipe_is_refused(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match="a named pipe"):
        open_data(f"hrbench:{tmp_path}")


@ATTACK
def test_file_that_becomes_a_pipe_after_the_check_does_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    os.mkfifo(path)
    monkeypatch.setattr("visenv.decoding.files.regular_state", lambda path: None)
    with pytest.raises(FileRefusedError, match="a named pipe"):
        open_regular(path)


@ATTACK
def test_sparse_file_is_refused_before_memory_is_allocated(tmp_path: Path) -> None:
    path = tmp_path / "sparse.json"
    with path.open("wb") as file:
        file.truncate(2**40)  # needs no space on the disk
    with pytest.raises(FileRefusedError, match=r"1,099,511,627,776 bytes; at most 4,294,967,296"):
        read_regular(path)


def test_file_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert read_regular(path, 5) == b"12345"
    with pytest.raises(FileRefusedError, match="has 5 bytes; at most 4 are read"):
        read_regular(path, 4)


def test_links_to_regular_files_are_followed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert read_regular(tmp_path / "link") == b"x"


def test_text_has_plain_line_ends(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("é\r\nb\rc\n".encode())
    assert read_text(tmp_path / "a") == "é\nb\nc\n"


def test_lines_after_a_line_that_is_too_long_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\n" + b"x" * 1000 + b"\ntwo\n\nend")
    # The first 11 bytes show the reader that the line has more than 10.
    assert list(read_lines(path, 10)) == [b"one\n", b"x" * 11, b"two\n", b"\n", b"end"]


def test_lines_of_the_limit_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"123456789\n1234567890\n12345678901\nx")
    assert list(read_lines(path, 10)) == [b"123456789\n", b"1234567890\n", b"12345678901", b"x"]


@ATTACK
@kinds
def test_folder_of_a_model_contains_only_regular_files(
    make: Callable[[Path], None], odd: Path
) -> None:
    (odd.parent / "config.json").write_text("{}")
    if make is folder:
        check_folder(odd.parent)
    else:
        with pytest.raises(FileRefusedError, match=f"odd is not a regular file but {KINDS[make]}"):
            check_folder(odd.parent)
    check_folder("owner/name")


@ATTACK
def test_long_line_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.truncate(2**31)  # one line of 2 GiB of zeros
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_DATA, (2**28, 2**28))
from pathlib import Path
from visenv.decoding.files import read_lines
print([len(line) for line in read_lines(Path({str(path)!r}), 1000)])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[1001]\n", "")


def test_refused_file_is_an_error_of_the_system_and_pickles() -> None:
    error = FileRefusedError("a/b", "is not a regular file but a folder")
    assert isinstance(error, OSError)
    assert error.strerror == "is not a regular file but a folder"
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error) == "a/b is not a regular file but a folder."
