from __future__ import annotations

import os
import pickle
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.cache import SharedCache


def test_value_is_made_once_while_it_is_kept() -> None:
    made: list[str] = []
    cache: SharedCache[str, str] = SharedCache(2)

    def make(key: str) -> str:
        made.append(key)
        return key

    for key in "aab":
        cache.get(key, partial(make, key))
    assert made == ["a", "b"]


def test_cache_drops_the_least_recently_used_first() -> None:
    cache: SharedCache[str, str] = SharedCache(2)
    for key in ("a", "b", "a", "c"):  # a was requested after b, so c replaces b
        cache.get(key, partial(str, key))
    assert cache.get("a", lambda: "made anew") == "a"
    assert cache.get("b", lambda: "made anew") == "made anew"


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30))))
def test_cache_never_exceeds_the_budget(asked: list[tuple[int, int]]) -> None:
    cache: SharedCache[int, bytes] = SharedCache(40, len)
    for key, size in asked:
        cache.get(key, partial(bytes, size))
        assert cache.size <= 40


def test_value_larger_than_the_cache_is_returned_and_not_kept() -> None:
    cache: SharedCache[str, bytes] = SharedCache(3, len)
    assert cache.get("a", lambda: b"1234") == b"1234"
    assert len(cache) == 0


def test_failure_is_raised_and_not_kept() -> None:
    cache: SharedCache[str, int] = SharedCache(3)
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: 1 // 0)
    assert cache.get("a", lambda: 5) == 5


def test_cache_pickles_empty() -> None:
    cache: SharedCache[str, bytes] = SharedCache(3, len)
    cache.get("a", lambda: b"1")
    again = pickle.loads(pickle.dumps(cache))
    assert len(again) == 0
    again.get("a", lambda: b"12")
    assert again.size == 2


def test_forked_child_can_use_it_though_another_thread_held_the_lock() -> None:
    cache: SharedCache[str, str] = SharedCache(3)
    cache.get("a", lambda: "parent's")
    with cache._lock:
        child = os.fork()
        if child == 0:
            os._exit(0 if cache.get("a", lambda: "child's") == "child's" else 1)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert cache.get("a", lambda: "anew") == "parent's"
