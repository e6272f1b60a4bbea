"""The process groups of the engines in this process, apart from the trainer's.

vLLM computes on torch's default process group. Where a trainer of several processes has one, it
would take that for its own; where there is none yet, it makes one of this process alone, which the
trainer would then take for its own and believe that it has no partners. So engines have a world of
their own, of one process, which is the default only while one of them starts: afterwards vLLM uses
what it has kept of it. The trainer may make its group before or after.

PyTorch has one world for each process. What is exchanged here, the default group and the number
that names the next one, are the names of 2.11 to 2.13.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from visenv.private_names import check_private_names

from .private_names import WORLD_NAMES

_FIRST_NAME = 1_000_000
"""Groups are named by counting, alike in all processes: ours must not be counted among those."""


class EngineProcessGroups:
    """The default group of this process's engines, and all others that vLLM has made for them.

    All engines of a process share them, as vLLM has it; the last one to leave takes them away.

    Args:
        first_name: Groups are named by counting from here; no two worlds of a process may meet.
    """

    def __init__(self, first_name: int = _FIRST_NAME) -> None:
        self._lock = threading.Lock()
        self._default: Any = None
        self._next_name = first_name
        self._made: list[Any] = []
        self._engines = 0

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Give a context in which an engine starts; the engine then counts, unless it failed.

        Raises:
            ConfigurationError: If PyTorch lacks a private name that is used here.
        """
        check_private_names(WORLD_NAMES)
        with self._lock:
            known = set(c10d._world.pg_map)  # noqa: SLF001 - see above
            if self._default is not None and self._default not in known:
                self._end()  # a trainer has ended all groups there were
            try:
                with self._exchanged():
                    yield
                self._engines += 1
            finally:
                self._made += [each for each in c10d._world.pg_map if each not in known]  # noqa: SLF001
                if not self._engines:
                    self._end()

    def leave(self) -> None:
        """Count an engine less, and end the group with the last one."""
        with self._lock:
            self._engines -= 1
            if not self._engines:
                self._end()

    @contextmanager
    def _exchanged(self) -> Iterator[None]:
        world: Any = c10d._world  # noqa: SLF001
        trainers = world.default_pg, world.group_count
        c10d._update_default_pg(self._default)  # noqa: SLF001
        world.group_count = self._next_name
        try:
            yield
        finally:
            self._default, self._next_name = world.default_pg, world.group_count
            c10d._update_default_pg(trainers[0])  # noqa: SLF001
            world.group_count = trainers[1]

    def _end(self) -> None:
        """Destroy the groups, unless the trainer has ended all there were; vLLM forgets them."""
        state: Any = sys.modules.get("vllm.distributed.parallel_state")
        for name, value in [*vars(state).items()] if state else ():
            if isinstance(value, state.GroupCoordinator):
                setattr(state, name, None)
        for group in reversed(self._made):
            if group in c10d._world.pg_map:  # noqa: SLF001
                dist.destroy_process_group(group)
        self._made.clear()
        self._default = None


WORLD = EngineProcessGroups()
"""That of this process."""
