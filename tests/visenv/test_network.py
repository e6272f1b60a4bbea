"""Tests that visenv and its procedural environments open no connection."""

from __future__ import annotations

import pytest

from tests.environments import IDS
from tests.programs import run_python

# Forbids connections and look-ups of names, imports visenv, and plays an episode of each
# environment. The socket of scorers and the sandbox connect processes without the network.
PLAYER = """
import sys

def forbid(event, arguments):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "urllib.Request"):
        raise RuntimeError(f"{event} {arguments}")
    if event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):
        raise RuntimeError(f"{event} {arguments[1]}")

sys.addaudithook(forbid)

import visenv
import gymnasium as gym
from visenv.testing.record import played

for name in sys.argv[1:]:
    env = gym.make(name)
    assert played(env, "oracle", 0).failure is None, name
    env.close()
    print(name)
try:
    import socket
    socket.create_connection(("192.0.2.1", 9), timeout=1)
except RuntimeError:
    print("forbidden")
"""


@pytest.mark.slow
@pytest.mark.component("mujoco", "osmesa")
@pytest.mark.attack(
    "network: importing visenv and playing procedural environments opens no connection"
)
def test_environments_open_no_connection() -> None:
    done = run_python("-c", PLAYER, *IDS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [*IDS, "forbidden"]
