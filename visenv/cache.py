"""This module provides a cache of recently used values, shared by the threads of a process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from cachetools import LRUCache
from typing_extensions import override

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class SharedCache(Generic[KeyT, ValueT]):
    """Holds a `cachetools.LRUCache` and a lock, for objects that threads share or that are pickled.

    A pickled cache is empty when it is loaded. The cache of a forked process is also empty, because
    another thread may have held the lock or changed the values during the fork.

    Args:
        maxsize: Maximum sum of the sizes (`getsizeof`) of all values.
        getsizeof: Returns the size of a value; by default 1, so that `maxsize` is a number of
            values. It must be a function of a module, so that the cache can be pickled.
    """

    def __init__(self, maxsize: int, getsizeof: Callable[[ValueT], int] | None = None) -> None:
        self._maxsize = maxsize
        self._getsizeof = getsizeof
        self._reset()

    def _reset(self) -> None:
        self._values: LRUCache[KeyT, ValueT] = LRUCache(self._maxsize, self._getsizeof)
        self._lock = threading.Lock()
        self._process = os.getpid()

    def get(self, key: KeyT, make: Callable[[], ValueT]) -> ValueT:
        """Return the value of `key`; if it is not in the cache, create it with `make`.

        A value larger than the whole cache is returned but not stored. Exceptions of `make` are
        raised. Two threads that request the same missing key may both create it, so that no thread
        waits for another.
        """
        if self._process != os.getpid():
            self._reset()
        with self._lock:
            if key in self._values:
                return self._values[key]
        value = make()
        with self._lock, suppress(ValueError):  # raised for a value larger than the cache
            self._values.setdefault(key, value)
        return value

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._values.clear()

    def __len__(self) -> int:
        return len(self._values)

    @property
    def size(self) -> float:
        """Return the sum of the sizes of all values in the cache."""
        return self._values.currsize

    @override
    def __getstate__(self) -> dict[str, Any]:
        return {"maxsize": self._maxsize, "getsizeof": self._getsizeof}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
