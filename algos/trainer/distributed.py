"""The processes of a run: one, or as many as `accelerate launch` has started.

Objects travel between them by gloo, weights and gradients by what accelerate chose for the device.
"""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs, InitProcessGroupKwargs
from torch.distributed import distributed_c10d as c10d
from typing_extensions import override

from visenv.errors import RunError
from visenv.private_names import check_private_names
from visenv.types import Image

from .interrupt import stop_with_launcher
from .private_names import PROCESS_NAMES

Value = TypeVar("Value")


def is_first() -> bool:
    """Return whether this process writes; known before `DistributedContext` is made."""
    return os.environ.get("RANK", "0") == "0"


class DistributedContext:
    """The processes of a distributed run, seen from one of them.

    Args:
        timeout: Seconds that one waits for another before it gives up.

    Attributes:
        accelerator: Of this run; a run prepares one model, so each has an accelerator of its own.
        rank: The number of this process, from 0.
        count: How many there are.

    Raises:
        ConfigurationError: If PyTorch or accelerate lacks a private name that is used here.
        RunError: If the launcher has started more processes than have found one another.
    """

    def __init__(self, timeout: float) -> None:
        check_private_names(PROCESS_NAMES)
        self._timeout = timeout
        if _is_launched():
            stop_with_launcher(grace=timeout)
        self.accelerator = _accelerator(timedelta(seconds=timeout))
        if self.accelerator.deepspeed_plugin is not None:
            # As long as this is there, transformers loads every model in parts, any policy's too.
            self.accelerator.deepspeed_plugin.dschf = None
        self.rank: int = self.accelerator.process_index
        self.count: int = self.accelerator.num_processes
        started = int(os.environ.get("WORLD_SIZE", "1"))
        if started != self.count:
            raise RunError(
                f"{started} processes were started, but this one found {self.count - 1} others: "
                "they would train apart. Launch them by `accelerate launch --config_file …` with "
                "one of the files in configs/."
            )
        self._group = self._objects()

    @property
    def first(self) -> bool:
        """Return whether this is the process that writes and shows."""
        return self.rank == 0

    def gather(self, value: Value) -> list[Value]:
        """Return the values of all processes, in order of rank.

        Images become mere hashes on their way: only the process that has one needs its pixels.
        """
        if self.count == 1:
            return [value]
        received: list[Any] = [None] * self.count
        self._together(
            lambda: dist.all_gather_object(received, _without_images(value), group=self._group)
        )
        received = [pickle.loads(each) for each in received]  # noqa: S301 - our own processes
        received[self.rank] = value
        return received

    def collect(self, value: Value) -> list[Value]:
        """Return the values of all processes with their images on the first, nothing elsewhere."""
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

    def wait(self) -> None:
        """Wait until all processes have reached this call."""
        if self.count > 1:
            self._together(lambda: dist.barrier(group=self._group))

    def _objects(self) -> dist.ProcessGroup | None:
        """Return a group that needs no accelerator memory and whose failures are exceptions."""
        if self.count == 1:
            return None
        timeout = timedelta(seconds=self._timeout)
        if dist.get_backend() == "gloo":
            # It was made with the time-out of this process's first run.
            c10d._set_pg_timeout(timeout, dist.group.WORLD)  # noqa: SLF001 - nothing public does it
            return dist.group.WORLD  # by name, as a sampling engine that starts exchanges worlds
        group: dist.ProcessGroup = dist.new_group(backend="gloo", timeout=timeout)
        return group

    def _together(self, call: Callable[[], Any]) -> None:
        try:
            call()
        except RuntimeError as error:
            raise self.lost(error) from error

    def caused(self, error: RuntimeError) -> bool:
        """Return whether an error of PyTorch means that another process did not answer."""
        return self.count > 1 and (isinstance(error, dist.DistError) or "gloo" in str(error))

    def lost(self, error: Exception) -> RunError:
        """Return the error to raise when another process does not answer."""
        return RunError(
            f"Process {self.rank} of {self.count} lost another one, or waited for it longer than "
            f"the timeout of {self._timeout:g} s. What that one said comes first; start again with "
            f"resume. ({str(error).splitlines()[0]})"
        )


def _is_launched() -> bool:
    return "LOCAL_RANK" in os.environ


def _accelerator(timeout: timedelta) -> Accelerator:
    """Return an `Accelerator` that leaves the model on the device chosen by its policy."""
    if not _is_launched():  # any handler would ask for a group
        return Accelerator(device_placement=False)
    gloo = not torch.cuda.is_available()
    deepspeed = os.environ.get("ACCELERATE_USE_DEEPSPEED", "false") == "true"
    return Accelerator(
        device_placement=False,
        # Without `cpu` accelerate would not replicate on CPUs, with it it would not use DeepSpeed.
        cpu=gloo and not deepspeed,
        kwargs_handlers=[
            # Named, as accelerate knows no backend for CPUs and would then make worlds of one.
            InitProcessGroupKwargs(backend="gloo" if gloo else "nccl", timeout=timeout),
            # A step without images leaves the vision tower without gradients.
            DistributedDataParallelKwargs(find_unused_parameters=True, broadcast_buffers=False),
        ],
    )


class _Elsewhere(Image):
    """The hash and size of an image that another process holds."""

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
