"""Tests that imports run without garbage collections, and that many objects are left out later."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from visenv.garbage import MANY_MODULES, heavy_imports


@pytest.fixture(autouse=True)
def collections_as_before() -> Iterator[None]:
    frozen = gc.get_freeze_count()
    yield
    gc.enable()
    if not frozen:
        gc.unfreeze()


def _import(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(count):
        name = f"heavy_{number}"
        monkeypatch.setitem(sys.modules, name, ModuleType(name))


@pytest.mark.parametrize("enabled", [True, False])
def test_imports_pause_collections(enabled: bool) -> None:
    if not enabled:
        gc.disable()
    with heavy_imports():
        assert not gc.isenabled()
    assert gc.isenabled() == enabled
    with pytest.raises(ImportError), heavy_imports():
        raise ImportError
    assert gc.isenabled() == enabled


@pytest.mark.parametrize("missing", [0, 1])
def test_objects_of_many_modules_are_left_out_of_later_collections(
    missing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[list[int]] = []
    with heavy_imports():
        _import(MANY_MODULES - missing, monkeypatch)
        kept.append([0])
    searched = any(each is kept[0] for each in gc.get_objects())  # without what is left out
    assert searched == bool(missing)
