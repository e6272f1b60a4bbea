"""Tests the cache on disk: processes share it, and it never returns a wrong value."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import resource
import signal
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from visenv.errors import ConfigurationError
from visenv.scorers.cache import DiskCache, MemoryCache

SPAWN = multiprocessing.get_context("spawn")


def filled(folder: Path, count: int = 200) -> DiskCache:
    cache = DiskCache(folder)
    for number in range(count):
        cache.put(f"key {number}", {"number": number, "text": os.urandom(500).hex()})
    return cache


def test_get_returns_what_put_was_given(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "new" / "folder")
    assert cache.get("a") is None
    cache.put("a", None)
    cache.put("b", {"mask": np.ones((2, 3), bool), "bytes": b"\x00"})
    cache.close()
    other = DiskCache(tmp_path / "new" / "folder")
    assert other.get("a") == (None,)
    found = other.get("b")
    assert found is not None
    assert found[0]["mask"].tolist() == [[True] * 3] * 2
    assert found[0]["bytes"] == b"\x00"
    other.put("a", 2.5)
    assert other.get("a") == (2.5,)


def cut(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def overwrite(path: Path) -> None:
    path.write_bytes(b"<html>not a database</html>" * 100)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for place in range(4096, len(data), 97):
        data[place] ^= 0xFF
    path.write_bytes(bytes(data))


@pytest.mark.slow
@pytest.mark.parametrize("opened", [False, True], ids=["closed", "open"])
@pytest.mark.parametrize("damage", [cut, empty, overwrite, flip])
def test_damaged_file_never_gives_a_wrong_value_and_is_replaced(
    damage: Callable[[Path], None], opened: bool, tmp_path: Path
) -> None:
    cache = filled(tmp_path)
    expected = {f"key {number}": cache.get(f"key {number}") for number in range(200)}
    if not opened:
        cache.close()
    damage(cache.path)
    for key, value in expected.items():
        assert cache.get(key) in (None, value)
    for key, value in expected.items():
        assert value is not None
        cache.put(key, value[0])
    assert {key: cache.get(key) for key in expected} == expected
    cache.close()
    again = DiskCache(tmp_path)
    for key, value in expected.items():
        # SQLite had pages in memory, and did not see that they were damaged on the disk.
        assert again.get(key) in ((None, value) if damage is flip and opened else (value,))


@pytest.mark.parametrize("damage", [cut, overwrite])
def test_damaged_file_is_kept_under_another_name_with_one_warning(
    damage: Callable[[Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = filled(tmp_path)
    cache.close()
    damage(cache.path)
    content = cache.path.read_bytes()
    for number in range(200):
        cache.get(f"key {number}")
    [kept] = tmp_path.glob("verdicts.damaged-*.sqlite")
    assert kept.read_bytes() == content
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert kept.name in record.getMessage()


def test_damaged_entry_costs_that_entry_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = filled(tmp_path, 3)
    with sqlite3.connect(cache.path) as connection:
        connection.execute("UPDATE verdicts SET value = x'00' WHERE key = 'key 1'")
    connection.close()
    assert cache.get("key 1") is None
    assert "entry key 1 is damaged" in caplog.text
    assert cache.get("key 0") is not None
    cache.put("key 1", 5)
    assert cache.get("key 1") == (5,)


def test_file_that_another_process_replaced_is_opened_again(tmp_path: Path) -> None:
    one, other = filled(tmp_path, 3), DiskCache(tmp_path)
    assert other.get("key 0") is not None
    one.path.unlink()
    one.put("x", 1)
    other.put("y", 2)
    assert (one.get("y"), other.get("x")) == ((2,), (1,))


def _write(folder: str, start: int, barrier: Any) -> None:
    cache = DiskCache(Path(folder))
    barrier.wait(60)
    for number in range(start, start + 200):
        cache.put(f"{number}", number)
        assert cache.get(f"{number}") == (number,)
    cache.put("shared", "the same")


@pytest.mark.slow
def test_processes_share_one_file(tmp_path: Path) -> None:
    barrier = SPAWN.Barrier(2)
    children = [
        SPAWN.Process(target=_write, args=(str(tmp_path), start, barrier)) for start in (0, 200)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(120)
        assert child.exitcode == 0
    cache = DiskCache(tmp_path)
    assert [cache.get(f"{number}") for number in range(400)] == [(n,) for n in range(400)]
    assert cache.get("shared") == ("the same",)


def _write_until_killed(folder: str, begun: Any) -> None:
    cache = DiskCache(Path(folder))
    number = 0
    while True:
        cache.put(f"{number}", {"number": number, "noise": os.urandom(3000).hex()})
        number += 1
        if number == 50:
            begun.set()


@pytest.mark.slow
def test_killed_process_leaves_a_usable_file(tmp_path: Path) -> None:
    for _ in range(3):
        begun = SPAWN.Event()
        child = SPAWN.Process(target=_write_until_killed, args=(str(tmp_path), begun))
        child.start()
        assert begun.wait(60)
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join(60)
        cache = DiskCache(tmp_path)
        for number in range(50):
            found = cache.get(f"{number}")
            assert found is not None
            assert found[0]["number"] == number
        cache.close()


def _full_disk(folder: str, results: Any) -> None:
    # Writes beyond this size fail, as on a full disk.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    cache = DiskCache(Path(folder))
    for number in range(100):
        cache.put(f"{number}", os.urandom(5000).hex())
    results.put([cache.get(f"{number}") is not None for number in range(100)])


@pytest.mark.slow
def test_full_disk_costs_the_cache_and_nothing_else(tmp_path: Path) -> None:
    results = SPAWN.Queue()
    child = SPAWN.Process(target=_full_disk, args=(str(tmp_path), results))
    child.start()
    kept = results.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0
    assert kept[0]
    assert not all(kept)
    cache = DiskCache(tmp_path)  # the disk has space again
    cache.put("after", 1)
    assert (cache.get("after"), cache.get("0") is not None) == ((1,), True)


def test_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="cannot be made"):
        DiskCache(tmp_path / "file" / "cache")


def test_locked_file_costs_the_cache_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("visenv.scorers.cache._SECONDS_TO_WAIT", 0.01)
    cache = filled(tmp_path, 1)
    cache.close()
    blocker = sqlite3.connect(cache.path, isolation_level=None)
    blocker.execute("BEGIN EXCLUSIVE")
    assert cache.get("key 0") is None
    cache.put("x", 1)
    blocker.execute("ROLLBACK")
    blocker.close()
    assert cache.get("key 0") is not None
    assert caplog.text.count("database is locked") == 1


def test_oldest_values_go_when_the_file_is_too_large(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, max_bytes=1 << 20)
    for number in range(1025):
        cache.put(f"{number}", os.urandom(4000))
    kept = [number for number in range(1025) if cache.get(f"{number}") is not None]
    assert kept == list(range(kept[0], 1025))  # the newest ones
    # 1 MiB holds at most 262 entries, and the size is checked after every 256.
    assert 100 <= len(kept) <= 262
    assert cache.path.stat().st_size < 3 << 20


def test_cache_serves_many_threads(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)

    def use(number: int) -> bool:
        cache.put(f"{number}", number)
        return cache.get(f"{number}") == (number,)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(use, range(200)))


def test_connection_is_closed_when_the_cache_is_deleted(tmp_path: Path) -> None:
    cache = filled(tmp_path, 1)
    [connection] = cache._open
    del cache
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        connection.execute("SELECT 1")


def test_memory_cache_drops_the_value_that_was_used_longest_ago() -> None:
    cache = MemoryCache(3 * (64 + 100))
    for key in "abc":
        cache.put(key, key * 100)
    assert cache.get("a") == ("a" * 100,)
    cache.put("d", "d" * 100)
    assert [cache.get(key) is not None for key in "abcd"] == [True, False, True, True]
    cache.put("large", "x" * 1000)
    assert cache.get("large") is None
    assert cache.get("d") is not None
