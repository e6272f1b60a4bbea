"""Tests the Ray cluster that visenv starts: its token, its sockets, and its end."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.listeners import PRIVATE, absent, family, listeners, require_listed
from tests.second_user import IS_POSSIBLE, run_as_second_user
from tests.waiting import wait_until

pytestmark = [pytest.mark.component("ray"), pytest.mark.timeout(1200), pytest.mark.slow]

# Starts a cluster with one actor, prints its address and its folder, and waits for a line.
OWNER = """
import json, os, sys, warnings
warnings.simplefilter("ignore")  # Ray warns about its next versions
from visenv.rollout.ray_executor import connect
connect()
import ray
@ray.remote(num_cpus=0)
class Actor:
    def answer(self):
        return 7
actor = Actor.remote()
assert ray.get(actor.answer.remote()) == 7
folder = ray._private.worker._global_node.get_temp_dir_path()
found = {"address": ray.get_runtime_context().gcs_address, "folder": folder}
print(json.dumps(found | {"token": os.environ["RAY_AUTH_TOKEN"]}), flush=True)
sys.stdin.readline()
"""

FEW_TRIES = {"RAY_NUM_REDIS_GET_RETRIES": "2"}
"""Ray tries to connect once a second, by default 20 times."""

# Connects to the cluster at an address; prints the answer of a task, or the error.
GUEST = """
import sys, warnings
warnings.simplefilter("ignore")
import ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level="critical")
    print("answer", ray.get(ray.remote(num_cpus=0)(lambda: 7).remote(), timeout=600))
except Exception as error:
    print(type(error).__name__, repr(error.__cause__))
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Yield the facts that the owner of a cluster prints, with its process."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as owner:
        assert owner.stdout is not None
        yield {**json.loads(owner.stdout.readline()), "process": owner}
        assert owner.stdin is not None
        if not owner.stdin.closed:
            owner.stdin.close()


@pytest.mark.attack("servers: the table of listeners is complete")
@pytest.mark.attack("servers: another user cannot use a private socket or a port with a credential")
def test_cluster_listens_as_documented_and_another_user_cannot_use_it(
    cluster: Any, second_user: Any
) -> None:
    pid = cluster["process"].pid
    # Ray's agents begin to listen some time after the cluster has answered.
    wait_until(lambda: not absent("Ray", listeners(family(pid))))
    found = listeners(family(pid))
    require_listed("Ray", found)
    sockets = [one for one in found if one.address == PRIVATE]
    assert {Path(one.place).name for one in sockets} == {"plasma_store", "raylet"}
    if IS_POSSIBLE:
        assert second_user(sockets, "") == [["PermissionError"]] * 2


def guest(cluster: Any, token: str | None) -> str:
    """Return what a program of this user prints that has this token."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    env = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token} if token else {}
    env |= FEW_TRIES
    command = [sys.executable, "-c", GUEST, cluster["address"]]
    done = subprocess.run(
        command, env=kept | env, capture_output=True, text=True, check=True, timeout=900
    )
    return done.stdout


def another_user(cluster: Any) -> str:
    """Return what the program of another user prints, who has no token."""
    done = run_as_second_user("-c", GUEST, cluster["address"], env=FEW_TRIES)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.attack("servers: a Ray cluster that visenv starts demands a random token")
@pytest.mark.attack("servers: another user cannot use a private socket or a port with a credential")
def test_cluster_refuses_clients_without_its_token(cluster: Any) -> None:
    with ThreadPoolExecutor() as threads:
        users = [partial(guest, cluster, token) for token in (None, "0" * 64)]
        users.append(partial(another_user, cluster))
        answers = [future.result() for future in [threads.submit(user) for user in users]]
    for answer in answers:
        assert answer.startswith("ConnectionError")
        assert "InvalidAuthToken" in answer


def test_cluster_accepts_a_client_with_its_token(cluster: Any) -> None:
    """Check that the program of the attack works with the token."""
    assert guest(cluster, cluster["token"]) == "answer 7\n"


@pytest.mark.attack("servers: a token is on no command line and in no log")
def test_token_of_the_cluster_cannot_be_read_by_others(cluster: Any) -> None:
    assert len(cluster["token"]) == 64
    commands = [f"/proc/{pid}/cmdline" for pid in family(cluster["process"].pid)]
    folder = Path(cluster["folder"])
    assert folder.parent.stat().st_mode & 0o777 == 0o700
    files = [str(path) for path in folder.rglob("*")]
    for paths in (commands, files):
        contents = [found for path in paths if (found := content(path)) is not None]
        assert len(contents) > 3
        assert not any(cluster["token"].encode() in found for found in contents)


def content(path: str) -> bytes | None:
    """Return the content of a file; None if it is not a file, or has gone with its process."""
    with suppress(FileNotFoundError, ProcessLookupError):
        if Path(path).is_file():
            return Path(path).read_bytes()
    return None


def test_cluster_ends_with_its_owner_and_leaves_no_folder(cluster: Any) -> None:
    cluster["process"].stdin.close()
    assert cluster["process"].wait(600) == 0
    assert not Path(cluster["folder"]).parent.exists()


def test_folder_to_which_a_process_still_writes_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray warns about its next versions
        from visenv.rollout import ray_executor
    folder, remove = tmp_path / "cluster", shutil.rmtree
    (folder / "logs").mkdir(parents=True)
    writes = iter(range(3))

    def interrupted(path: Path, ignore_errors: bool) -> None:
        remove(path, ignore_errors)
        if next(writes, None) is not None:
            path.mkdir()
            (path / "raylet.log").touch()

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    ray_executor._remove(folder)
    assert not folder.exists()


def test_cluster_of_an_address_that_demands_no_token_is_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray warns about its next versions
        import ray

        from visenv.rollout import ray_executor
    given: list[dict[str, Any]] = []
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **options: given.append(options))
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    caplog.set_level(logging.WARNING)
    for mode, count in (("token", 0), ("disabled", 1), ("", 2)):
        monkeypatch.setenv("RAY_AUTH_MODE", mode)
        ray_executor.connect()
        assert len(caplog.records) == count
    assert all("address" not in options for options in given)
    assert "RAY_AUTH_TOKEN" in caplog.text
