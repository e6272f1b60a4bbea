"""Connects to a Ray cluster, or starts one that answers only this process."""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import shutil
import time
from pathlib import Path

import ray

from visenv.socket_folder import socket_folder

_TOKEN_BYTES = 32
_SECONDS_TO_REMOVE = 30.0
_PAUSE = 0.05
_FOLDER = "ray"
_NAME_BYTES = len(f"{_FOLDER}/session_2026-01-01_00-00-00_000000_4194304/sockets/plasma_store")
_log = logging.getLogger(__name__)


def connect() -> None:
    """Connect to the cluster of ``RAY_ADDRESS``, or start one here, unless already connected.

    A cluster that is started here demands a random token (Ray's token authentication). Its sockets
    and logs are in a folder that only this user can enter, because every user of the machine can
    change Ray's own folder, ``/tmp/ray``. A warning is logged if a cluster demands no token.
    """
    if ray.is_initialized():
        return
    if os.environ.get("RAY_ADDRESS"):
        ray.init(include_dashboard=False, log_to_driver=False)
    else:
        _start()
    if os.environ.get("RAY_AUTH_MODE", "").lower() != "token":
        _log.warning(
            "The Ray cluster demands no token. Everyone who can reach it can run code as its user. "
            "Set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN on all machines before `ray start`, as "
            "docs/training.md shows."
        )


def _start() -> None:
    """Start a cluster of this machine; Ray turns token authentication on if the mode is not set."""
    if "RAY_AUTH_TOKEN_PATH" not in os.environ:
        # Otherwise Ray would save a token in the home folder, in a file that others may read.
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(_TOKEN_BYTES))
    folder = socket_folder("visenv-ray-", _NAME_BYTES)
    # Exit handlers run in reverse order, and Ray's processes must end before their folder.
    atexit.register(_remove, folder)
    atexit.register(ray.shutdown)
    ray.init(
        address="local",
        include_dashboard=False,
        log_to_driver=False,
        _temp_dir=str(folder / _FOLDER),  # Ray gives all users access to this folder itself
    )


def _remove(folder: Path) -> None:
    """Remove the folder of a cluster whose processes may still write to it while they end."""
    until = time.monotonic() + _SECONDS_TO_REMOVE
    while folder.exists() and time.monotonic() < until:
        shutil.rmtree(folder, ignore_errors=True)  # fails if a file appears meanwhile
        if folder.exists():
            time.sleep(_PAUSE)
