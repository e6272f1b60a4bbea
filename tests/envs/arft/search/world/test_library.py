"""Tests the cache of worlds: it is pickled, shared by threads, and removed from the disk."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import tempfile
import threading
import weakref
from pathlib import Path

import pytest

from visenv.cache import SharedCache
from visenv.envs.arft.search.world import WorldEngine, library
from visenv.envs.arft.search.world.tokens import WORDS
from visenv.errors import ConfigurationError, UnknownNameError


def folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("visenv-world-*"))


def test_engine_is_a_name_and_a_seed() -> None:
    engine = WorldEngine("tiny", 3)
    title = engine.articles()[0].title
    found = engine.search(title, 2)
    assert found[0].title == title
    again = pickle.loads(pickle.dumps(engine))
    assert again.name == engine.name == "world:tiny:3"
    assert again.search(title, 2) == found
    assert again.world is engine.world
    engine.close()
    assert engine.search(title, 2) == found, "what is shared stays open"
    assert engine.search("", 2) == []


@pytest.mark.parametrize("seed", [-1, 10**9, 1.5, True, "1"])
def test_seeds_that_no_world_has(seed: object) -> None:
    with pytest.raises(ConfigurationError, match="The seed of a world must be 0 to"):
        WorldEngine("tiny", seed)  # type: ignore[arg-type]


def test_presets_that_there_are_not() -> None:
    with pytest.raises(UnknownNameError, match="default"):
        WorldEngine("defualt")


def test_threads_that_meet_at_a_new_world_all_find_it() -> None:
    engine = WorldEngine("tiny", 77_777)
    title = engine.articles()[0].title
    found: list[str] = []
    gate = threading.Barrier(6)

    def search() -> None:
        gate.wait()
        found.append(engine.search(title, 1)[0].title)

    threads = [threading.Thread(target=search) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [title] * 6


def test_index_that_is_not_kept_is_closed_and_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Check that the index is removed at once, and not at the next garbage collection."""
    # other tests make worlds in the shared folder
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(library, "_indices", SharedCache(2))
    before, opened = folders(), open_files()
    gc.disable()
    try:
        for seed in range(88_000, 88_005):
            WorldEngine("tiny", seed).search("red", 1)
        assert len(folders() - before) == 2
        assert open_files() == opened + 2
    finally:
        gc.enable()


def open_files() -> int:
    links = (str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink())
    return sum("visenv-world-" in link for link in links)


CHILD = """
import os
from visenv.envs.arft.search.world import WorldEngine
engine = WorldEngine("tiny", 3)
title = engine.articles()[0].title
assert engine.search(title, 1)
child = os.fork()
if not child:
    assert engine.search(title, 1)[0].title == title
    raise SystemExit(0)
assert os.waitpid(child, 0)[1] == 0
assert engine.search(title, 1)[0].title == title
"""


@pytest.mark.slow
def test_index_is_removed_by_a_process_and_its_fork(tmp_path: Path) -> None:
    """Check that the child makes an index of its own and does not remove that of its parent."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        env={"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_tiny_world_speaks_in_the_words_it_names() -> None:
    known = set(WORDS)
    for seed in range(20):
        for article in WorldEngine("tiny", seed).articles():
            assert set(f"{article.title} {article.text}".split()) <= known


def test_closing_the_last_engine_removes_all_indices(monkeypatch: pytest.MonkeyPatch) -> None:
    # Engines of other tests may be open in this process.
    monkeypatch.setattr(library, "_searching", weakref.WeakSet())
    before = folders()
    first, second = WorldEngine("tiny", 501), WorldEngine("tiny", 502)
    for engine in (first, second):
        engine.search("who", 1)
    made = folders() - before
    assert len(made) == 2
    first.close()
    assert made <= folders(), "the second engine may search again"
    second.close()
    assert not made & folders()
