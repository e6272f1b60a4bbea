"""Separates the process groups of the engines in this process from those of the trainer.

vLLM uses torch's default process group. If a trainer of several processes has one, vLLM would use
the trainer's group. If there is none yet, vLLM makes one with this process only, which the trainer
would then use as its own, without its partners. Engines therefore have a separate world of one
process, which is the default only while an engine starts; afterwards vLLM uses its stored
references. The trainer may make its group before or after that.

PyTorch has one world for each process. This module exchanges the default group and the counter for
group names; the attribute names are those of PyTorch 2.11 to 2.13.
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
"""First number of group names. Names are counted equally in all processes, and must not collide."""


class EngineProcessGroups:
    """Manages the default group of this process's engines, and the other groups that vLLM makes.

    All engines of a process share these groups, as vLLM requires; they are destroyed with the last
    engine.

    Args:
        first_name: First number of group names; two worlds of a process must not use the same
            names.
    """

    def __init__(self, first_name: int = _FIRST_NAME) -> None:
        self._lock = threading.Lock()
        self._default: Any = None
        self._next_name = first_name
        self._made: list[Any] = []
        self._engines = 0

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Return a context in which an engine starts; if it does not fail, the engine is counted.

        Raises:
            ConfigurationError: If PyTorch lacks a private name that is used here.
        """
        check_private_names(WORLD_NAMES)
        with self._lock:
            known = set(c10d._world.pg_map)  # noqa: SLF001 - see the module
            if self._default is not None and self._default not in known:
                self._end()  # a trainer has destroyed all groups
            try:
                with self._exchanged():
                    yield
                self._engines += 1
            finally:
                self._made += [each for each in c10d._world.pg_map if each not in known]  # noqa: SLF001
                if not self._engines:
                    self._end()

    def leave(self) -> None:
        """Decrease the number of engines, and destroy the groups with the last one."""
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
        """Destroy the groups, unless the trainer did so; reset vLLM's references to them."""
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
"""The groups of this process."""
