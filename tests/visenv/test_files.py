"""Tests that a written file appears whole, or not at all, and never through a link."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.errors import ConfigurationError, DataError
from visenv.files import (
    check_no_links_in,
    empty_folder,
    file_inside,
    image_name,
    is_image_name,
    open_output,
    output_folder,
    replacing,
    write_text,
)

LINKS = pytest.mark.attack("files: nothing is written through a link")
NAMES = pytest.mark.attack("files: a name in a file stays below its folder")


def test_file_appears_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with replacing(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
        assert partial.parent == tmp_path
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing(path) as partial:  # noqa: PT012
        partial.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_new_file_has_the_permissions_of_other_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "a.txt", "new")
    finally:
        os.umask(before)
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640


def test_file_with_the_longest_name_is_written(tmp_path: Path) -> None:
    write_text(tmp_path / ("a" * 255), "new")
    assert (tmp_path / ("a" * 255)).read_text() == "new"


# ------------------------------------------------------------------------------------------- links


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Return a folder outside of the received one, with one file."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "notes.txt").write_text("keep")
    return folder


def unchanged(victim: Path) -> bool:
    names = [each.name for each in victim.iterdir()]
    return names == ["notes.txt"] and (victim / "notes.txt").read_text() == "keep"


@LINKS
def test_temporary_names_cannot_be_foreseen(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with replacing(path) as one, replacing(path) as other:
        assert one != other
        assert all(str(os.getpid()) not in each.name.split(".") for each in (one, other))
        assert all(each.is_file() and not each.is_symlink() for each in (one, other))


WRITERS: dict[str, Callable[[Path], object]] = {
    "replacing": lambda path: write_text(path, "new"),
    "append": lambda path: open_output(path, "ab"),
    "read and append": lambda path: open_output(path, "a+b"),
    "folder": output_folder,
    "empty folder": empty_folder,
    "folder for others": check_no_links_in,
}


@LINKS
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("target", ["notes.txt", ".", "missing", "../received/name"])
def test_output_that_is_a_link_is_refused(
    target: str, writer: str, tmp_path: Path, victim: Path
) -> None:
    (tmp_path / "received").mkdir()
    link = tmp_path / "received" / "name"
    link.symlink_to(victim / target if target != "../received/name" else link)
    with pytest.raises(ConfigurationError, match=r"name is a link.*Name the real path"):
        WRITERS[writer](link)
    assert unchanged(victim)


@LINKS
def test_link_inside_a_folder_for_another_package_is_refused(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "received/deep/er").mkdir(parents=True)
    (tmp_path / "received/deep/er/data.bin").symlink_to(victim / "notes.txt")
    with pytest.raises(ConfigurationError, match=r"data\.bin is a link"):
        check_no_links_in(tmp_path / "received")


@LINKS
def test_link_that_appears_after_the_check_is_not_followed(
    tmp_path: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "name"
    link.symlink_to(victim / "notes.txt")
    monkeypatch.setattr("visenv.files.check_no_link", lambda path: None)
    with pytest.raises(OSError, match="symbolic links"):
        open_output(link, "ab")
    write_text(link, "new")  # replaces the link itself
    assert not link.is_symlink()
    assert unchanged(victim)


@LINKS
@pytest.mark.parametrize("mode", ["ab", "a+b"])
def test_pipe_is_refused_and_does_not_block(mode: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises((ConfigurationError, OSError)):
        open_output(tmp_path / "pipe", mode)


def test_folder_below_a_link_that_the_person_names_is_written(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "disk")
    write_text(output_folder(tmp_path / "runs" / "mine") / "a.txt", "new")
    assert (tmp_path / "disk/mine/a.txt").read_text() == "new"


# ------------------------------------------------------------------------------------------- names


@NAMES
@pytest.mark.parametrize(
    "name",
    [
        *("/etc/passwd", "../secret", "a/../../secret", "a/..", "..", ".", "", "a\0b", "\ud800"),
        *(None, 3, ["a"], {"a": 1}, True, b"a"),
    ],
)
def test_name_that_is_no_path_below_the_folder_is_refused(name: object, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="must be a path below"):
        file_inside(tmp_path, name)


@NAMES
@pytest.mark.parametrize("link", ["link", "folder", "folder/deep/link"])
def test_link_to_another_folder_is_refused(link: str, tmp_path: Path, victim: Path) -> None:
    root = tmp_path / "received"
    (root / link).parent.mkdir(parents=True)
    (root / link).symlink_to(victim)
    with pytest.raises(DataError, match="is a link to a place outside"):
        file_inside(root, f"{link}/notes.txt")


@NAMES
@given(st.lists(st.sampled_from(["a", "..", ".", "", "/", "link", "~", "b.png"]), max_size=5))
def test_no_name_leaves_the_folder(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str]
) -> None:
    root = tmp_path_factory.getbasetemp() / "names"
    root.mkdir(exist_ok=True)
    if not (root / "link").is_symlink():
        (root / "link").symlink_to("..")
    try:
        path = file_inside(root, "/".join(parts))
    except DataError:
        return
    assert Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def test_link_inside_the_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs/1").write_text("content")
    (tmp_path / "a.txt").symlink_to("blobs/1")
    assert file_inside(tmp_path, "a.txt").read_text() == "content"
    assert file_inside(tmp_path, "no/such/file") == tmp_path / "no/such/file"


@NAMES
@pytest.mark.parametrize(
    "name",
    ["../other.html?x", "A" * 64, "0" * 63, "0" * 65, f"{'0' * 64}\n", f"{'0' * 63}/", "", 7, None],
)
def test_image_is_named_by_its_sha256(name: object) -> None:
    with pytest.raises(DataError, match="SHA-256"):
        image_name(name)
    assert image_name("0a" * 32) == f"{'0a' * 32}.png"
    assert is_image_name(f"{'0a' * 32}.png")
    assert not is_image_name(f"{'0a' * 32}.jpg")
