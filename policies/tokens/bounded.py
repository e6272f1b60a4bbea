"""What was computed and may be asked for again, bounded in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class BoundedCache(Generic[Value]):
    """Values by key; the least recently used go first.

    Args:
        capacity: Most bytes kept.
        size: Bytes of a value.
    """

    def __init__(self, capacity: int, size: Callable[[Value], int]) -> None:
        self._capacity = capacity
        self._size = size
        self._values: OrderedDict[str, Value] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: str) -> Value | None:
        """The value, or None if it is not kept (any more)."""
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key]

    def put(self, key: str, value: Value) -> None:
        """Keep a value, if it alone does not exceed the capacity."""
        self.drop(key)
        if self._size(value) > self._capacity:
            return
        self._values[key] = value
        self._bytes += self._size(value)
        while self._bytes > self._capacity:
            self.drop(next(iter(self._values)))

    def drop(self, key: str) -> None:
        """Forget a value, if it is kept."""
        if key in self._values:
            self._bytes -= self._size(self._values.pop(key))

    def clear(self) -> None:
        """Forget all."""
        self._values.clear()
        self._bytes = 0
