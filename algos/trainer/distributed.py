"""Connects the processes of a run: a single one, or all that `accelerate launch` started.

Processes exchange objects by gloo. Weights and gradients are exchanged by the backend that
accelerate selects for the device.
"""

from __future__ import annotations

import atexit
import io
import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import cache
from importlib import import_module
from typing import Any, TypeVar
from weakref import WeakSet

import torch
import torch.distributed as dist
from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs, InitProcessGroupKwargs
from torch.distributed import distributed_c10d as c10d
from typing_extensions import override

from visenv.errors import RunError, VisenvError
from visenv.garbage import heavy_imports
from visenv.launcher import is_launched, world_size
from visenv.private_names import check_private_names
from visenv.types import Image

from .extension_locks import clear_stale_locks
from .interrupt import stop_with_launcher
from .private_names import KERNEL_NAMES, PROCESS_NAMES
from .rendezvous import watched_rendezvous

Value = TypeVar("Value")


class DistributedContext:
    """Connects a process to the other processes of its run.

    Args:
        timeout: Seconds that a process waits for another before it raises an error.

    Attributes:
        accelerator: The `Accelerator` of this run; each run has its own, for its model.
        rank: The number of this process, from 0.
        count: The number of processes.

    Raises:
        ConfigurationError: If PyTorch or accelerate lacks a private name that is used here.
        RunError: If the launcher started more processes than are connected.
    """

    def __init__(self, timeout: float) -> None:
        check_private_names(PROCESS_NAMES)
        self._timeout = timeout
        if is_launched():
            stop_with_launcher(grace=timeout)
        with heavy_imports(), watched_rendezvous():  # imports DeepSpeed
            self.accelerator = _accelerator(timedelta(seconds=timeout))
        if self.accelerator.deepspeed_plugin is not None:
            # While this attribute is set, transformers shards every model that it loads.
            self.accelerator.deepspeed_plugin.dschf = None
        self.rank: int = self.accelerator.process_index
        self.count: int = self.accelerator.num_processes
        started = world_size()
        if started != self.count:
            raise RunError(
                f"{started} processes were started, but this one found {self.count - 1} others: "
                "they would train separately. Start them by `accelerate launch --config_file …` "
                "with one of the files in configs/."
            )
        self._group = self._objects()
        if self._group is not None:
            _contexts().add(self)

    @property
    def first(self) -> bool:
        """Return whether this is the first process, which writes files and shows progress."""
        return self.rank == 0

    def gather(self, value: Value) -> list[Value]:
        """Return the values of all processes, in the order of their ranks.

        Images of other processes contain only hash and size, because their pixels are not needed.
        """
        if self.count == 1:
            return [value]
        received = self.exchange(_without_images(value))
        values = [pickle.loads(each) for each in received]  # noqa: S301 - our own processes
        values[self.rank] = value
        return values

    def exchange(self, value: Value) -> list[Value]:
        """Return the values of all processes with their images, in the order of their ranks."""
        if self.count == 1:
            return [value]
        received: list[Any] = [None] * self.count
        self._together(lambda: dist.all_gather_object(received, value, group=self._group))
        received[self.rank] = value
        return received

    def collect(self, value: Value) -> list[Value]:
        """Return, on the first process, the values of all processes with their images."""
        if self.count == 1:
            return [value]
        received: list[Any] | None = [None] * self.count if self.first else None
        self._together(lambda: dist.gather_object(value, received, group=self._group))
        return received or []

    def broadcast(self, value: Value, source: int = 0) -> Value:
        """Return the value of one process on all processes."""
        if self.count == 1:
            return value
        held = [value if self.rank == source else None]
        self._together(lambda: dist.broadcast_object_list(held, src=source, group=self._group))
        return held[0]  # type: ignore[return-value]

    def in_first(self, work: Callable[[], Value]) -> Value:
        """Call a function in the first process, and return its value in all processes.

        Raises:
            VisenvError: In all processes, if the function raises such an error.
        """
        if self.count == 1:
            return work()
        value: Any = None
        problem: VisenvError | None = None
        if self.first:
            try:
                value = work()
            except VisenvError as error:
                problem = error
        value, problem = self.broadcast((value, problem))
        if problem is not None:
            raise problem
        return value  # type: ignore[no-any-return]

    def wait(self) -> None:
        """Wait until all processes have reached this call."""
        if self.count > 1:
            self._together(lambda: dist.barrier(group=self._group))

    def _objects(self) -> dist.ProcessGroup | None:
        """Return a group that uses no accelerator memory and raises exceptions on failures."""
        if self.count == 1:
            return None
        timeout = timedelta(seconds=self._timeout)
        if dist.get_backend() == "gloo":
            # The group was created with the timeout of the first run of this process.
            c10d._set_pg_timeout(timeout, dist.group.WORLD)  # noqa: SLF001 - nothing public does it
            return dist.group.WORLD  # not stored: a sampling engine replaces it when it starts
        group: dist.ProcessGroup = dist.new_group(backend="gloo", timeout=timeout)
        return group

    def _together(self, call: Callable[[], Any]) -> None:
        try:
            call()
        except RuntimeError as error:
            raise self.lost(error) from error

    def caused(self, error: RuntimeError) -> bool:
        """Return whether an error of PyTorch means that another process did not reply."""
        return self.count > 1 and (isinstance(error, dist.DistError) or "gloo" in str(error))

    def lost(self, error: Exception) -> RunError:
        """Return the error to raise if another process does not reply."""
        return RunError(
            f"Process {self.rank} of {self.count} lost another one, or waited for it longer than "
            f"the timeout of {self._timeout:g} s. See the first error of the other process, and "
            f"continue with --resume. ({str(error).splitlines()[0]})"
        )

    def disconnect(self) -> None:
        """Destroy the group of this context; the context cannot exchange objects afterwards."""
        group, self._group = self._group, None
        if group is not None and dist.is_initialized():
            with suppress(ValueError):  # another context had the same group and destroyed it
                dist.destroy_process_group(group)


@cache
def _contexts() -> WeakSet[DistributedContext]:
    """Return the set of connected contexts, whose groups are destroyed when the process ends.

    The threads of a group of Gloo run until it is destroyed. A thread that frees tensors while the
    interpreter ends aborts the process (https://github.com/pytorch/pytorch/pull/179291).
    """
    contexts: WeakSet[DistributedContext] = WeakSet()
    atexit.register(_disconnect, contexts)
    return contexts


def _disconnect(contexts: WeakSet[DistributedContext]) -> None:
    for context in tuple(contexts):
        context.disconnect()


def _accelerator(timeout: timedelta) -> Accelerator:
    """Return an `Accelerator` that leaves the model on the device of its policy."""
    if not is_launched():  # a handler would need a process group
        return Accelerator(device_placement=False)
    gloo = not torch.cuda.is_available()
    deepspeed = os.environ.get("ACCELERATE_USE_DEEPSPEED", "false") == "true"
    if deepspeed:
        clear_stale_locks()
    if deepspeed and gloo:
        _leave_out_inference_kernel()
    return Accelerator(
        device_placement=False,
        # Data parallelism on CPUs needs `cpu`; DeepSpeed needs `cpu` to be False.
        cpu=gloo and not deepspeed,
        kwargs_handlers=[
            # Without a backend, accelerate would create groups of one process on CPUs.
            InitProcessGroupKwargs(backend="gloo" if gloo else "nccl", timeout=timeout),
            # In a step without images, the vision tower has no gradients.
            DistributedDataParallelKwargs(find_unused_parameters=True, broadcast_buffers=False),
        ],
    )


def _leave_out_inference_kernel() -> None:
    """Keep DeepSpeed from compiling, for a minute, a kernel that only its inference on CPUs uses.

    PyTorch could not link the kernel if the path of the installed packages contains a space.
    """
    check_private_names(KERNEL_NAMES)
    # An `import` statement would find PyTorch, which is also an attribute of `deepspeed.comm`.
    backend: Any = import_module("deepspeed.comm.torch")
    backend.build_shm_op = lambda: None


class _Elsewhere(Image):
    """Holds the hash and size of an image of another process."""

    __slots__ = ()

    def __init__(self, sha256: str, size: tuple[int, int], name: str) -> None:
        super().__init__(path=None, encoded=None, pixels=None, name=f"{name} (of another process)")
        self._sha256 = sha256
        self._size = size


class _Pickler(pickle.Pickler):
    @override
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Image):
            return _Elsewhere, (value.sha256, value.size, value.name)
        return NotImplemented


def _without_images(value: Any) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()
