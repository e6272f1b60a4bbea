"""Manages the environments of a collector, which are in use, idle or being made.

An episode takes the environment that is available first: one that becomes idle, or a new one. A
full Ray cluster has no room for a new environment while idle environments keep their resources.
Therefore an idle environment of another name may have to be closed first.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from visenv.errors import ConfigurationError
from visenv.rollout.adapter import MakeEnv
from visenv.rollout.executor import EnvFailedError, EnvSlot, Executor

_PATIENCE = 2.0
"""Seconds that an episode waits before an idle environment of another name is closed for it."""

_LONGEST_START = 30.0
"""Seconds within which a new environment must start after another one was closed for it.

After that time, a further environment may be closed.
"""


class EnvSlots:
    """Assigns environments to episodes, and takes them back.

    The object can be used in several event loops, one after another.

    Args:
        executor: Makes slots.
        make_envs: The functions that make environments, by the names of the environments.
    """

    def __init__(self, executor: Executor, make_envs: Mapping[str, MakeEnv]) -> None:
        self._executor = executor
        # When an environment was closed to make room; -inf after a new environment has started.
        self._made_room = -math.inf
        self._kinds = {
            name: _Kind(executor, make_env, self._may_find_room, self._started)
            for name, make_env in make_envs.items()
        }

    async def take(self, name: str) -> EnvSlot:
        """Return an idle environment of that name, or a new one.

        If a new environment could not be made, `EnvSlot.open` raises the failure.
        """
        kind = self._kinds[name]
        if kind.idle:
            slot = kind.idle.pop()
        else:
            new = None if kind.is_making_enough else kind.new()
            if new is None or not new.made:
                return await self._first(kind, new)
            slot = new
        kind.playing += 1
        return slot

    def give(self, name: str, slot: EnvSlot, *, usable: bool) -> None:
        """Take an environment back.

        An environment that is not usable is closed. A usable environment is kept, unless the
        executor is crowded (`Executor.crowded`) and the episode with the longest wait needs an
        environment of another name. In that case `slot` is closed to make room.
        """
        kind = self._kinds[name]
        kind.playing -= 1
        if not usable:
            slot.close()
        elif self._may_make_room() and self._is_owed_to_another(kind):
            self._close_for_room(slot)
        else:
            kind.offer(slot)

    def close(self) -> None:
        """Close the environments that are idle or being made."""
        for kind in self._kinds.values():
            kind.close()

    async def _first(self, kind: _Kind, new: EnvSlot | None) -> EnvSlot:
        """Return the environment of a kind that is available first: `new`, or one given back."""
        if new is not None:
            kind.open(new)
        taken: asyncio.Future[EnvSlot] = asyncio.get_running_loop().create_future()
        kind.waiting.append(_Waiter(time.monotonic(), taken))
        try:
            while not taken.done():
                await asyncio.wait({taken}, timeout=_PATIENCE)
                if not taken.done() and self._may_make_room():
                    self._make_room(kind)
        except asyncio.CancelledError:
            if not taken.cancel():  # the episode had an environment before it was cancelled
                kind.playing -= 1
                kind.offer(taken.result())
            raise
        return taken.result()

    def _make_room(self, kind: _Kind) -> None:
        """Close an idle environment of another kind, of the one with the most idle environments."""
        others = [other.idle for other in self._kinds.values() if other is not kind and other.idle]
        if others:
            self._close_for_room(max(others, key=len).pop())

    def _may_make_room(self) -> bool:
        """Return whether an environment may be closed to make room for a new one.

        After one was closed, no further one is closed until a new environment has started, or until
        `_LONGEST_START` seconds have passed.
        """
        return self._executor.crowded and not self._is_room_made

    @property
    def _is_room_made(self) -> bool:
        return time.monotonic() - self._made_room < _LONGEST_START

    def _close_for_room(self, slot: EnvSlot) -> None:
        self._made_room = time.monotonic()
        slot.close()

    def _started(self) -> None:
        """Note that an environment was made, or could not be made."""
        self._made_room = -math.inf

    def _is_owed_to_another(self, kind: _Kind) -> bool:
        """Return whether the episode with the longest wait needs an environment of another kind.

        False if that episode has not waited for more than `_PATIENCE` seconds.
        """
        longest = min(self._kinds.values(), key=lambda each: each.waits_since)
        waited = time.monotonic() - longest.waits_since
        return longest.waits_since < kind.waits_since and waited > _PATIENCE

    def _may_find_room(self) -> bool:
        """Return whether room for a new environment was just made, or may become free later."""
        held = any(kind.playing or kind.idle for kind in self._kinds.values())
        return held or self._is_room_made


class _Waiter(NamedTuple):
    """Represents an episode that waits for an environment."""

    since: float
    taken: asyncio.Future[EnvSlot]


class _Kind:
    """Manages all environments with one name.

    `may_find_room` tells whether a new environment may find room after an attempt to make one
    exceeded its time limit. `started` is called when an attempt succeeded or failed.
    """

    def __init__(
        self,
        executor: Executor,
        make_env: MakeEnv,
        may_find_room: Callable[[], bool],
        started: Callable[[], None],
    ) -> None:
        self.idle: list[EnvSlot] = []  # not in use
        self.waiting: deque[_Waiter] = deque()  # in the order of their requests
        self.playing = 0  # environments in use
        self._executor = executor
        self._make_env = make_env
        self._may_find_room = may_find_room
        self._started = started
        self._opening: dict[asyncio.Task[None], EnvSlot] = {}

    @property
    def is_making_enough(self) -> bool:
        """Return whether the environments being made outnumber the waiting episodes."""
        return len(self._opening) > sum(not each.taken.done() for each in self.waiting)

    @property
    def waits_since(self) -> float:
        """Return when the first waiting episode began to wait, by `time.monotonic`.

        The result is infinite if no episode waits.
        """
        return min((each.since for each in self.waiting if not each.taken.done()), default=math.inf)

    def new(self) -> EnvSlot:
        """Return a slot with a new environment, which may not be made yet."""
        return self._executor.slot(self._make_env)

    def open(self, slot: EnvSlot) -> None:
        """Start a task that waits until a new environment is made, and then offers it."""
        self._opening[asyncio.create_task(self._open(slot))] = slot

    def offer(self, slot: EnvSlot) -> None:
        """Give an environment to the first episode that waits; if none waits, it becomes idle."""
        while self.waiting:
            taken = self.waiting.popleft().taken
            if not taken.done():  # otherwise its episode was cancelled
                self.playing += 1
                taken.set_result(slot)
                return
        if slot.usable:
            self.idle.append(slot)
        else:
            slot.close()

    def close(self) -> None:
        """Close the environments that are idle or being made."""
        for slot in (*self.idle, *self._opening.values()):
            slot.close()
        self.idle.clear()
        self._opening.clear()

    async def _open(self, slot: EnvSlot) -> None:
        task = asyncio.current_task()
        try:
            await slot.open()
        except asyncio.CancelledError:  # the event loop ends, and no episode waits any more
            slot.close()
            raise
        except EnvFailedError as error:
            is_wanted = self.waits_since < math.inf
            if error.failure.source == "timeout" and is_wanted and self._may_find_room():
                # There was no room. Try again, because an environment in use may become idle, or
                # may be closed.
                slot.close()
                self.open(self.new())
                return
        except ConfigurationError:
            pass  # `open` raises it again in the episode that takes the slot
        finally:
            if task is not None:
                self._opening.pop(task, None)
        self._started()
        self.offer(slot)
