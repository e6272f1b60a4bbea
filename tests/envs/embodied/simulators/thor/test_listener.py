"""Tests the server that ai2thor starts for players before 2.7, with a player that only reports."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import simulators_python
from tests.listeners import family, listeners, require_listed

pytestmark = [pytest.mark.component("ai2thor"), pytest.mark.timeout(900), pytest.mark.slow]

# Writes the variables that ai2thor gave it to a file, and waits until another file exists.
PLAYER = """#!{python}
import json, os, pathlib, time
given = {{name: value for name, value in os.environ.items() if name.startswith("AI2THOR_")}}
part = pathlib.Path({folder!r}, "part")
part.write_text(json.dumps(given))
part.rename(part.with_name("given"))
end = time.monotonic() + 600
while not part.with_name("end").exists() and time.monotonic() < end:
    time.sleep(0.05)
"""

# Starts ai2thor's Controller as `PlayerProcess` does; it raises when the player ends.
CONTROLLER = """
import sys
from ai2thor.controller import Controller
from ai2thor.wsgi_server import WsgiServer
Controller.base_dir = sys.argv[2]
Controller(local_executable_path=sys.argv[1], server_class=WsgiServer, x_display=":0",
           server_start_timeout=600, scene="FloorPlan1")
"""


def form(token: str) -> str:
    """Return a request with the metadata of an action and a token."""
    body = f"token={token}&metadata=%7B%22agents%22%3A%5B%5D%7D"
    kind = "application/x-www-form-urlencoded"
    head = f"POST /train HTTP/1.0\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n{body}"


@pytest.mark.attack("servers: the table of listeners is complete")
@pytest.mark.attack("servers: another user cannot use a private socket or a port with a credential")
def test_server_of_a_player_demands_the_token_of_ai2thor(tmp_path: Path, second_user: Any) -> None:
    player = tmp_path / "player"
    player.write_text(PLAYER.format(python=sys.executable, folder=str(tmp_path)))
    player.chmod(0o755)
    command = [simulators_python(), "-c", CONTROLLER, str(player), str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as controller:
        try:
            while not (tmp_path / "given").exists():
                assert controller.poll() is None, controller.communicate()[0]
                time.sleep(0.05)
            given = json.loads((tmp_path / "given").read_text())
            found = listeners(family(controller.pid))
            require_listed("AI2-THOR player", found)
            assert str(next(iter(found)).port) == given["AI2THOR_PORT"]
            wrong = "00000000-0000-0000-0000-000000000000"
            assert len(given["AI2THOR_CLIENT_TOKEN"]) == len(wrong)
            for answer in second_user(found, form(""), form(wrong))[0]:
                assert " 403 " in answer.splitlines()[0]
        finally:
            (tmp_path / "end").touch()
            controller.communicate(timeout=600)
