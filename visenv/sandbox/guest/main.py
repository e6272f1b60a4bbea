"""Starts the server process, up to its loop."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import kernel, landlock, libraries, lockdown, namespaces, probe, root, seccomp, wire
from .cell import CellSettings
from .preload import load
from .server import CellServer


def main(control: int) -> None:
    """Start the server, report the result to the client, and serve.

    Args:
        control: Descriptor of the socket to the client. Its first message has ``isolation``
            (``"auto"`` or a mode), ``unsafe``, ``packages`` to load, ``installed`` (directories
            of packages), and ``only_probe``.
    """
    channel = socket.socket(fileno=control)
    configuration = wire.decode(wire.receive(channel)[0])
    try:
        setting, hello = _start(configuration)
    except Exception:  # noqa: BLE001  the client raises the error
        wire.send(channel, wire.encode({"error": traceback.format_exc()[-4000:]}))
        return
    wire.send(channel, wire.encode(hello))
    if setting is not None:
        CellServer(channel, setting).run()


def _start(configuration: Mapping[str, Any]) -> tuple[CellSettings | None, dict[str, Any]]:
    """Return the settings, None if layers are missing, and the hello message for the client."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    proc = namespaces.open_proc()
    findings = probe.probe(proc)
    layers = {each.layer for each in findings if each.there}
    mode = _mode(configuration, layers)
    hello: dict[str, Any] = {"mode": mode, "layers": findings}
    if mode is None or configuration["only_probe"]:
        return None, hello
    sys.path += configuration["installed"]
    load(configuration["packages"])
    found = libraries.find(proc)
    sys.path[:] = libraries.search_path()
    if mode != "namespaces":
        libraries.read_all(libraries.without_hidden(found))
    setting = CellSettings(
        namespaces=mode == "namespaces",
        landlock=probe.LANDLOCK in layers,
        seccomp=probe.SECCOMP in layers,
        proc=proc,
        libraries=(*found.paths, *found.packages),
        scratch="" if mode == "namespaces" else root.make_scratch(),
        capabilities=0,
        address_space=_address_space(proc),
    )
    hello |= {"paths": _private(found), "scratch": setting.scratch}
    _die_first(proc)
    kernel.leave_keyring()
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if setting.namespaces:
        seccomp.cached_program(1, private=True)  # cached here: every cell is process 1
        namespaces.leave_host(proc, lambda: root.build(found, proc))
        return setting, hello
    return setting._replace(capabilities=_confine(setting, found)), hello


def _mode(configuration: Mapping[str, Any], layers: set[str]) -> str | None:
    """Return the strongest isolation that is available and not excluded by the configuration."""
    wanted, unsafe = configuration["isolation"], configuration["unsafe"]
    if {probe.SECCOMP, probe.PRIVILEGES} <= layers or unsafe:
        for mode, needed in (("namespaces", probe.NAMESPACES), ("landlock", probe.LANDLOCK)):
            if needed in layers and wanted in (mode, "auto"):
                return mode
    return "none" if unsafe else None


def _private(found: libraries.Libraries) -> list[str]:
    """Return paths of the host that may occur in a traceback."""
    paths = {*found.hidden, *found.paths, *(path for path, _ in found.aliases)}
    paths |= {str(Path(path).parent) for path in (*found.packages, sys.executable, __file__)}
    paths |= {sys.prefix, sys.base_prefix, str(Path(__file__).parents[1])}
    return [path for path in paths if path.count("/") > 1 and not path.startswith("/usr/")]


def _die_first(proc: int) -> None:
    """Let the kernel kill a sandbox before the training process if memory runs out."""
    with contextlib.suppress(OSError):
        file = os.open("self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC, dir_fd=proc)
        with os.fdopen(file, "w", encoding="ascii") as score:
            score.write("1000")


def _confine(setting: CellSettings, found: libraries.Libraries) -> int:
    """Apply the restrictions that cells inherit from the server.

    Return the capabilities they must keep.

    Without namespaces, these are an ordinary user instead of root, and Landlock, which can list the
    libraries exactly here. Each cell adds a second ruleset, for its own directory only.
    """
    kept = 0
    if os.geteuid() == 0 and not probe.in_child(namespaces.become_nobody):
        os.chown(setting.scratch, namespaces.NOBODY, namespaces.NOBODY)
        kept = _needed_to_read(setting.libraries)
        namespaces.become_nobody(kept_capabilities=kept)
    kernel.keep_capabilities(kept)
    if setting.landlock:
        rules = lockdown.library_rules(libraries.without_hidden(found))
        landlock.enforce(landlock.ruleset([*rules, (setting.scratch, landlock.OWN)]))
    return kept


def _needed_to_read(paths: tuple[str, ...]) -> int:
    """Return the capability that an ordinary user needs to read the libraries, or 0.

    Landlock still restricts the files; capabilities do not override it.
    """

    def read_all() -> None:
        namespaces.become_nobody()
        for path in paths:
            os.close(os.open(path, os.O_RDONLY))

    return 1 << kernel.CAP_DAC_READ_SEARCH if probe.in_child(read_all) else 0


def _address_space(proc: int) -> int:
    """Return the size of the address space of this process, bytes."""
    file = os.open("self/statm", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
    with os.fdopen(file, encoding="ascii") as numbers:
        return int(numbers.read().split()[0]) * resource.getpagesize()
