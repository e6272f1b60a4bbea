"""Slots: the environments of a collector, those in use, those that are idle and those being made.

An episode takes whatever is available first: an environment that becomes idle, or a new one. A new
one may never become available: a Ray cluster has no room for it while idle ones keep their places.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping

from visenv.errors import ConfigurationError
from visenv.rollout.adapter import MakeEnv
from visenv.rollout.executor import EnvFailedError, EnvSlot, Executor

_PATIENCE = 2.0
"""Seconds that an episode waits for an environment before an idle one of another kind is closed."""


class Slots:
    """Hands out environments, and takes them back; usable from one event loop after another.

    Args:
        executor: Makes slots.
        make_envs: What makes an environment, by name.
    """

    def __init__(self, executor: Executor, make_envs: Mapping[str, MakeEnv]) -> None:
        self._executor = executor
        self._kinds = {name: _Kind(executor, make_env) for name, make_env in make_envs.items()}

    async def take(self, name: str) -> EnvSlot:
        """Return an idle environment of that name, or a new one.

        `EnvSlot.open` of a new one raises the failure if it could not be made.
        """
        kind = self._kinds[name]
        if kind.idle:
            slot = kind.idle.pop()
        else:
            new = None if kind.is_making_enough else kind.new()
            slot = new if new is not None and new.made else await self._first(kind, new)
        kind.playing += 1
        return slot

    def give(self, name: str, slot: EnvSlot, *, usable: bool) -> None:
        """Take an environment back; one that is not usable is closed."""
        kind = self._kinds[name]
        kind.playing -= 1
        if usable:
            kind.offer(slot)
        else:
            slot.close()

    def close(self) -> None:
        """Close the environments that are idle or being made."""
        for kind in self._kinds.values():
            kind.close()

    async def _first(self, kind: _Kind, new: EnvSlot | None) -> EnvSlot:
        """Wait for the environment of a kind that is available first, `new` or another."""
        if new is not None:
            kind.open(new)
        taken: asyncio.Future[EnvSlot] = asyncio.get_running_loop().create_future()
        kind.waiting.append(taken)
        try:
            while not taken.done():
                await asyncio.wait({taken}, timeout=_PATIENCE)
                if not taken.done() and self._executor.crowded:
                    self._make_room(kind)
        except asyncio.CancelledError:
            if not taken.cancel():  # it was handed an environment before it was cancelled
                kind.offer(taken.result())
            raise
        return taken.result()

    def _make_room(self, kind: _Kind) -> None:
        """Close an idle environment of the other kind that has the most."""
        others = [other.idle for other in self._kinds.values() if other is not kind and other.idle]
        if others:
            max(others, key=len).pop().close()


class _Kind:
    """The environments of one name.

    Attributes:
        idle: Those that nobody uses.
        waiting: The episodes that wait for one, the first to ask first.
        playing: How many are in use.
    """

    def __init__(self, executor: Executor, make_env: MakeEnv) -> None:
        self.idle: list[EnvSlot] = []
        self.waiting: deque[asyncio.Future[EnvSlot]] = deque()
        self.playing = 0
        self._executor = executor
        self._make_env = make_env
        self._opening: dict[asyncio.Task[None], EnvSlot] = {}

    @property
    def is_making_enough(self) -> bool:
        """Whether more are being made than episodes wait."""
        return len(self._opening) > sum(not each.done() for each in self.waiting)

    def new(self) -> EnvSlot:
        """Return a slot with a new environment, which may still have to be made."""
        return self._executor.slot(self._make_env)

    def open(self, slot: EnvSlot) -> None:
        """Wait for a new environment to be made; then offer it."""
        self._opening[asyncio.create_task(self._open(slot))] = slot

    def offer(self, slot: EnvSlot) -> None:
        """Give an environment to the first episode that waits; without one it is idle."""
        while self.waiting:
            taken = self.waiting.popleft()
            if not taken.done():  # otherwise its episode was cancelled
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
        except asyncio.CancelledError:  # the loop ends: nobody waits for it any more
            slot.close()
            raise
        except EnvFailedError as error:
            if error.failure.source == "timeout" and self.playing:
                # No room for it while others play: one of those becomes idle, or another try works.
                slot.close()
                self.open(self.new())
                return
        except ConfigurationError:
            pass  # whoever takes the slot is told
        finally:
            if task is not None:
                self._opening.pop(task, None)
        self.offer(slot)
