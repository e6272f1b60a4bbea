"""Watches the processes of several machines while they connect, and ends all of them on a failure.

Gloo connects every process with every other one, at the addresses of the network interfaces that it
finds. If one address cannot be reached, that process fails after its time-out, and the processes of
other machines wait for theirs.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

from visenv.errors import RunError
from visenv.launcher import rank, world_size
from visenv.terminal import printable_lines

PATIENCE = 45.0
"""Seconds in which processes must connect after all of them have started."""

_BETWEEN_CHECKS = 1.0
_FAILED = "failed"


@contextmanager
def watched_rendezvous() -> Iterator[None]:
    """Connect processes inside this context, which ends all of them if some cannot connect.

    It does nothing for the processes of a single machine.

    Raises:
        RunError: If this process cannot connect; the message names the settings to check.
    """
    if int(os.environ.get("GROUP_WORLD_SIZE", "1")) < 2:
        yield
        return
    watch = RendezvousWatch(_store(), rank(), world_size())
    try:
        yield
    except (RuntimeError, ValueError) as error:
        raise watch.failed(error) from error
    finally:
        watch.end()


class RendezvousWatch:
    """Checks in a thread whether all processes have connected, and ends this one if they do not.

    Args:
        store: A store of PyTorch that all processes share.
        rank: The number of this process.
        count: The number of processes.
        leave: Ends this process; a thread cannot raise an error in a call of Gloo.
    """

    def __init__(
        self, store: Any, rank: int, count: int, leave: Callable[[int], Any] = os._exit
    ) -> None:
        self._store = store
        self._rank = rank
        self._count = count
        self._leave = leave
        self._connected = threading.Event()
        store.set(f"started/{rank}", "")
        self._thread = threading.Thread(target=self._watch, name="visenv-rendezvous", daemon=True)
        self._thread.start()

    def failed(self, error: Exception | str) -> RunError:
        """Tell the other processes that this one cannot connect, and return the error to raise."""
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        self._connected.set()
        with suppress(RuntimeError):  # the machine with the store has ended
            self._store.set(_FAILED, f"process {self._rank}: {reason}")
        return _error(self._rank, self._count, reason)

    def end(self) -> None:
        """End the watch."""
        self._connected.set()
        self._thread.join()

    def _watch(self) -> None:
        started = [f"started/{rank}" for rank in range(self._count)]
        all_started = 0.0
        while not self._connected.wait(_BETWEEN_CHECKS):
            try:
                if self._store.check([_FAILED]):
                    self._stop(self._store.get(_FAILED).decode(errors="replace"))
                    return
                if not all_started and self._store.check(started):
                    all_started = time.monotonic()
            except RuntimeError as error:
                self._stop(f"the first machine has ended ({error})")
                return
            if all_started and time.monotonic() - all_started > PATIENCE:
                reason = f"not connected {PATIENCE:g} s after all processes have started"
                with suppress(RuntimeError):
                    self._store.set(_FAILED, f"process {self._rank}: {reason}")
                self._stop(reason)
                return

    def _stop(self, reason: str) -> None:
        if not self._connected.is_set():
            sys.stderr.write(f"{printable_lines(_error(self._rank, self._count, reason))}\n")
            sys.stderr.flush()
            self._leave(1)


def _store() -> Any:
    """Return the store of the launcher, with keys of its own."""
    import torch.distributed as dist

    store = dist.TCPStore(  # type: ignore[attr-defined]  # public, but not listed
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        is_master=False,
        wait_for_workers=False,
        timeout=timedelta(seconds=60),
    )
    # Each start of the launcher has its own keys.
    return dist.PrefixStore(  # type: ignore[attr-defined]
        f"visenv/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store
    )


def _error(rank: int, count: int, reason: str) -> RunError:
    return RunError(
        f"Process {rank} of {count} cannot connect with the others: {reason}. If a machine has "
        "several network interfaces, set GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME on every "
        "machine to the one that the others reach (`ip -brief address` lists them)."
    )
