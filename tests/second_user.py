"""Tries to use servers as another user of the machine, without any credential."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.listeners import Listener

ROOT: Final = Path(__file__).parents[1]
AS_USER: Final = ROOT / "tests/visenv/sandbox/as_user.py"

IS_POSSIBLE: Final = os.geteuid() == 0
"""Whether this process may become another user; otherwise this user tries without credential."""

# Connects to each listener and sends a request; prints the first bytes of the answer, or the error.
_PROGRAM = r"""
import json, os, socket, sys
def tried(place, port, request):
    kind = socket.AF_UNIX if not port else socket.AF_INET6 if ":" in place else socket.AF_INET
    with socket.socket(kind) as connection:
        connection.settimeout(300)
        try:
            connection.connect((place, port) if port else place)
            connection.sendall(request.encode("latin-1"))
            return connection.recv(4096).decode("latin-1")
        except OSError as error:
            return type(error).__name__
targets, requests = json.loads(sys.argv[1])
print(json.dumps([os.geteuid(), [[tried(*t, r) for r in requests] for t in targets]]))
"""


def attempts(targets: Iterable[Listener], *requests: str) -> list[list[str]]:
    """Send requests to listeners as another user, each over its own connection.

    Args:
        targets: The listeners.
        requests: The requests as Latin-1 text.

    Returns:
        For each listener and request, the beginning of the answer, or the name of the error.
    """
    given = json.dumps([[list(target) for target in targets], requests])
    done = run_as_second_user("-I", "-S", "-c", _PROGRAM, given)
    assert done.returncode == 0, done.stderr
    user, answers = json.loads(done.stdout)
    assert (user != os.geteuid()) == IS_POSSIBLE
    found: list[list[str]] = answers
    return found


def run_as_second_user(
    *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python as another user, or as this user if that is not possible.

    Args:
        arguments: The arguments of Python.
        env: The environment variables; None is a small environment without any credential.
    """
    switch = [str(AS_USER)] if IS_POSSIBLE else []
    return subprocess.run(
        [sys.executable, *switch, *arguments],
        cwd="/",
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
