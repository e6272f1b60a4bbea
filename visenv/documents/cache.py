"""A bounded memory of what was made last: rendered pages, statistics of documents."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


def _one(_: Any) -> int:
    return 1


class LruCache(Generic[KeyT, ValueT]):
    """Keeps the values used last, as many as fit the budget.

    Threads may share it. Pickling drops the values. So does a fork: another thread may have been
    changing them, and holding the lock, when it happened.

    Args:
        budget: Most that all values together may cost.
        cost: What a value costs; by default 1, so that the budget is a number of values. A module's
            function, so that the cache pickles.
    """

    def __init__(self, budget: int, cost: Callable[[ValueT], int] = _one) -> None:
        self._budget = budget
        self._cost = cost
        self._start()

    def _start(self) -> None:
        self._values: OrderedDict[KeyT, tuple[ValueT, int]] = OrderedDict()
        self._spent = 0
        self._lock = threading.Lock()
        self._process = os.getpid()

    def get(self, key: KeyT, make: Callable[[], ValueT]) -> ValueT:
        """The value of `key`, made by `make` if it is not there; what `make` raises passes.

        A value dearer than the whole budget is returned and not kept.
        """
        if self._process != os.getpid():
            self._start()
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][0]
        value = make()  # outside the lock: two threads may make it twice, none waits for another
        with self._lock:
            self._keep(key, value)
        return value

    def _keep(self, key: KeyT, value: ValueT) -> None:
        cost = self._cost(value)
        if key in self._values or cost > self._budget:
            return
        self._values[key] = (value, cost)
        self._spent += cost
        while self._spent > self._budget:
            self._spent -= self._values.popitem(last=False)[1][1]

    def __len__(self) -> int:
        return len(self._values)

    @property
    def spent(self) -> int:
        """What the values kept now cost together."""
        return self._spent

    def __getstate__(self) -> dict[str, Any]:
        return {"budget": self._budget, "cost": self._cost}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._budget, self._cost = state["budget"], state["cost"]
        self._start()
