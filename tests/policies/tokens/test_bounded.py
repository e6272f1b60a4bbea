"""A cache that is bounded in bytes."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")  # its package imports it
pytest.importorskip("transformers")

from visenv.policies.tokens import bounded


def test_the_least_recently_used_go_first() -> None:
    cache = bounded.BoundedCache(10, len)
    cache.put("a", "xxxx")
    cache.put("b", "yyyy")
    assert cache.get("a") == "xxxx"
    cache.put("c", "zzzz")  # 12 bytes: b goes
    assert [cache.get(key) for key in "abc"] == ["xxxx", None, "zzzz"]


def test_what_is_too_large_is_not_kept_and_drives_nothing_out() -> None:
    cache = bounded.BoundedCache(10, len)
    cache.put("a", "xxxx")
    cache.put("b", "y" * 11)
    assert (cache.get("a"), cache.get("b"), len(cache)) == ("xxxx", None, 1)


def test_a_value_takes_the_place_of_its_forerunner() -> None:
    """4 bytes, then 9 in their place: 9 of 10, so that one more fits and two do not."""
    cache = bounded.BoundedCache(10, len)
    cache.put("a", "xxxx")
    cache.put("a", "x" * 9)
    cache.put("b", "y")
    assert len(cache) == 2
    cache.put("c", "z")
    assert cache.get("a") is None


def test_nothing_is_kept_after_it_is_cleared() -> None:
    cache = bounded.BoundedCache(10, len)
    cache.put("a", "x" * 10)
    cache.clear()
    cache.put("b", "y" * 10)
    assert (cache.get("a"), len(cache)) == (None, 1)
