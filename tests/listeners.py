"""Finds the sockets at which processes listen, and compares them with the table of SECURITY.md."""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from tests.security import table

PRIVATE, UNIX = "Unix socket, folder 0700", "Unix socket"
LOOPBACK, EVERY, NAMED, OWN = "127.0.0.1", "all addresses", "host name", "own address"
NONE = "none"
"""Addresses in the table."""

_LISTENING = "0A"
_ACCEPTING = 0x10000  # the flag of /proc/net/unix


class Listener(NamedTuple):
    """Describes a socket at which a process listens.

    Attributes:
        place: The path of a Unix socket, or the IP address.
        port: The TCP port; 0 for a Unix socket.
    """

    place: str
    port: int = 0

    @property
    def address(self) -> str:
        """Return the address in the words of the table."""
        if not self.port:
            folders = Path(self.place).parents if self.place.startswith("/") else []
            return PRIVATE if any(_is_private(folder) for folder in folders) else UNIX
        if self.place in ("127.0.0.1", "::1"):
            return LOOPBACK
        return EVERY if self.place in ("0.0.0.0", "::") else NAMED


def listeners(pids: Iterable[int]) -> set[Listener]:
    """Return the sockets at which these processes listen."""
    inodes = set()
    for pid in pids:
        with suppress(OSError):  # the process has ended
            for link in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    inodes.update(re.findall(r"^socket:\[(\d+)\]$", str(link.readlink())))
    return {found for inode, found in _all() if inode in inodes}


def family(pid: int) -> set[int]:
    """Return a process, its descendants, and the processes of its session."""
    parents, sessions = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended
            words = (folder / "stat").read_text().rpartition(")")[2].split()
            parents[int(folder.name)], sessions[int(folder.name)] = int(words[1]), int(words[3])
    found = {pid} | {other for other, session in sessions.items() if session == pid}
    while more := {other for other, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def rows(component: str) -> list[str]:
    """Return the addresses of a component in the table of SECURITY.md."""
    return [row[2] for row in table("component") if row[0] == component]


def require_listed(component: str, found: set[Listener]) -> None:
    """Check that the table lists exactly the addresses of these listeners for a component."""
    listed = rows(component)
    assert listed, f"SECURITY.md has no row of {component!r}"
    if listed == [NONE]:
        assert not found, found
        return
    unlisted = {one for one in found if not any(_is_at(one, address) for address in listed)}
    assert not unlisted, f"not in SECURITY.md: {unlisted}"
    missing = absent(component, found)
    assert not missing, f"only in SECURITY.md: {missing} of {found}"


def absent(component: str, found: set[Listener]) -> set[str]:
    """Return the addresses in the table of a component at which none of these listeners is."""
    return {
        address for address in rows(component) if not any(_is_at(one, address) for one in found)
    }


def _is_at(one: Listener, address: str) -> bool:
    if address == NAMED and one.port:  # the name may be that of 127.0.0.1
        return one.place in {entry[4][0] for entry in socket.getaddrinfo(socket.gethostname(), 0)}
    if address == OWN and one.port:
        interfaces = psutil.net_if_addrs().values()
        return one.place in {entry.address for interface in interfaces for entry in interface}
    return one.address == address


def _is_private(folder: Path) -> bool:
    found = folder.stat()
    return stat.S_IMODE(found.st_mode) == 0o700 and found.st_uid == os.geteuid()


def _all() -> Iterable[tuple[str, Listener]]:
    for version, kind in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == _LISTENING:
                place, port = words[1].split(":")
                yield words[9], Listener(_decoded(version, place), int(port, 16))
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        words = line.split(maxsplit=7)
        if int(words[3], 16) & _ACCEPTING:
            yield words[6], Listener(words[7] if len(words) > 7 else "")


def _decoded(version: socket.AddressFamily, place: str) -> str:
    """Return an address of /proc/net/tcp, whose words of 32 bits have the order of the machine."""
    packed = bytes.fromhex(place)
    words = [packed[at : at + 4][::-1] for at in range(0, len(packed), 4)]
    return socket.inet_ntop(version, b"".join(words))
