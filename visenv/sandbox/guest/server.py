"""Implements the loop of the fork server: one thread makes cells, kills them and reaps them.

The server never receives a program, an image or an output; client and cell exchange them directly.
The memory from which every cell is copied therefore contains no data of earlier cells.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
from typing import NamedTuple

from . import cell, kernel, namespaces, wire


class _Running(NamedTuple):
    """Holds the life socket and the name of a cell that has not been reaped."""

    life: socket.socket
    name: str


class CellServer:
    """Serves one client until the client ends, then waits for the remaining cells.

    Args:
        control: The socket to the client.
        setting: Settings that all cells share.
    """

    def __init__(self, control: socket.socket, setting: cell.CellSettings) -> None:
        self._control = control
        self._setting = setting
        self._cells: dict[int, _Running] = {}  # by process id
        self._killed: set[int] = set()
        self._woken, waker = socket.socketpair()  # receives a byte when a child ends
        waker.setblocking(False)
        self._waker = waker
        self._open = True

    def run(self) -> None:
        """Serve requests until the client closes the connection."""
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while self._open or self._cells:
            ready = self._wait()
            if self._woken.fileno() in ready:
                self._reap()
            for pid, running in self._cells.items():
                if running.life.fileno() in ready:  # the client has closed its end
                    os.kill(pid, signal.SIGKILL)
                    self._killed.add(pid)
            if self._open and self._control.fileno() in ready:
                self._listen()

    def _wait(self) -> set[int]:
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        if self._open:
            poll.register(self._control, select.POLLIN)
        for pid, running in self._cells.items():
            if pid not in self._killed:
                poll.register(running.life, select.POLLIN)
        return {descriptor for descriptor, _ in poll.poll()}

    def _listen(self) -> None:
        message, _ = wire.receive(self._control)
        if not message:
            self._open = False
            return
        try:
            self._spawn()
        except OSError as error:
            wire.send(self._control, wire.FAILED + str(error).encode())

    def _spawn(self) -> None:
        """Fork a cell, and send the client the other ends of its sockets and its pipe."""
        name = os.urandom(16).hex()  # unguessable, because it would reveal file sizes
        theirs, life = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        asks, request = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        printed, output = os.pipe2(os.O_CLOEXEC)
        try:
            pid = kernel.fork_into(namespaces.CELL) if self._setting.namespaces else os.fork()
            if pid == 0:
                cell.live(self._setting, request, output, name)
            self._cells[pid] = _Running(life, name)
            wire.send(self._control, wire.CELL, (asks.fileno(), theirs.fileno(), printed))
        finally:
            for end in (theirs, asks, request):
                end.close()
            os.close(printed)
            os.close(output)

    def _reap(self) -> None:
        self._woken.recv(4096)  # a byte for each signal
        while self._cells:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            running = self._cells.pop(pid)
            self._killed.discard(pid)
            end = wire.CellEnd(status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
            with contextlib.suppress(OSError):  # the client may not wait for it
                wire.send(running.life, end.pack())
            running.life.close()
            if not self._setting.namespaces:
                shutil.rmtree(f"{self._setting.scratch}/{running.name}", ignore_errors=True)
