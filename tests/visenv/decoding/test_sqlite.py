"""Tests that a SQLite file that somebody sent runs no program of SQL."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from visenv.decoding.sqlite import open_database
from visenv.errors import DataError, FileRefusedError, ServiceError, VisenvError
from visenv.search.corpus import Passage
from visenv.search.words import FILE, WordSearch, build

pytestmark = pytest.mark.attack("decoders: rows cannot end or stop the process")

ENDLESS = (
    "WITH RECURSIVE r(format, passages) AS (SELECT 3, 2 UNION ALL SELECT 3, passages + 1 FROM r) "
    "SELECT * FROM r WHERE passages < 0"
)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    build(tmp_path, [Passage("a", "red ball", "u"), Passage("b", "blue box", "v")])
    return tmp_path


def change(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / FILE)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize(
    "statements",
    [
        ["DROP TABLE facts", f"CREATE VIEW facts AS {ENDLESS}"],
        ["CREATE VIRTUAL TABLE other USING fts5 (text)"],
        ["CREATE TRIGGER other AFTER INSERT ON facts BEGIN DELETE FROM passages; END"],
    ],
    ids=["view", "virtual table", "trigger"],
)
def test_file_with_more_than_tables_is_refused(statements: list[str], index: Path) -> None:
    change(index, *statements)
    with pytest.raises(DataError, match="must contain tables only"):
        WordSearch(index)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE passages SET title = x'ff'", "the index lacks a passage"),
        ("UPDATE passages SET text = NULL", "the index lacks a passage"),
        ("UPDATE postings SET numbers = x'ffffffff'", "out of bounds"),
        ("UPDATE postings SET numbers = 'abcd'", "bytes-like"),
    ],
)
def test_damaged_index_gives_an_error_of_the_search(
    statement: str, problem: str, index: Path
) -> None:
    change(index, statement)
    with pytest.raises(ServiceError, match=problem):
        WordSearch(index).search("ball", 2)


def test_index_announces_no_more_passages_than_its_file_can_hold(index: Path) -> None:
    many = 4_000_000_000
    change(index, f"UPDATE facts SET passages = {many}")
    change(index, f"UPDATE passages SET id = {many} WHERE id = 2")
    with pytest.raises(DataError, match=f"too small for {many} passages"):
        WordSearch(index)


def test_value_that_a_column_computes_is_limited(tmp_path: Path) -> None:
    path = tmp_path / "file.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE rows (id INTEGER, big AS (hex(zeroblob(id))))")
        connection.execute("INSERT INTO rows VALUES (140000000)")
        connection.commit()
    with (
        closing(open_database(path)) as connection,
        pytest.raises(sqlite3.Error, match="too big"),
    ):
        connection.execute("SELECT big FROM rows").fetchone()


def test_link_to_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).symlink_to("/dev/zero")
    with pytest.raises(FileRefusedError, match="a device"):
        WordSearch(tmp_path)
    (tmp_path / "text").write_text("no database " * 100)
    with pytest.raises((sqlite3.Error, VisenvError)):
        open_database(tmp_path / "text")
