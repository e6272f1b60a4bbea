"""Tests the isolation for root and ordinary users, and in containers that refuse some calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.attack("sandbox: a machine without a required layer runs no program")

HERE = Path(__file__).parent
REFUSED = {
    "user": (65534, 65534),
    "password file": "refused",
    "environment": "refused",
    "library": "refused",
    "socket": "refused",
    "fork": "refused",
    "signal": "refused",
    "namespace": "refused",
}

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
x86_64 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are of x86-64")


def report(*isolations: str, by: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Return the results of sandboxes in a process started by these commands."""
    done = subprocess.run(
        [sys.executable, *by, str(HERE / "report.py"), *isolations],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said: list[dict[str, Any]] = json.loads(done.stdout)
    return said


def container(*refused: str) -> tuple[str, str]:
    return str(HERE / "in_container.py"), ",".join(refused)


USER = (str(HERE / "as_user.py"),)


def check(said: dict[str, Any], mode: str) -> None:
    """Check that the program did its work, and that its attacks were refused."""
    assert said.get("mode") == mode, said
    assert said["error"] == ""
    assert said["size"] == [3, 2]
    # With Landlock alone an ordinary user keeps his user id.
    assert said["result"].replace("(61234, 61234)", "(65534, 65534)") == repr(REFUSED)


@as_root
def test_sandbox_runs_as_an_ordinary_user() -> None:
    by_default, named = report("auto", "landlock", by=USER)
    check(by_default, "namespaces")
    check(named, "landlock")


@x86_64
@pytest.mark.parametrize(
    ("refused", "before"),
    [
        ("namespaces", ()),
        pytest.param("namespaces", USER, marks=[as_root, pytest.mark.soak]),
        pytest.param("mounts", USER, marks=as_root),
    ],
    ids=["Docker", "Docker, an ordinary user", "Ubuntu, an ordinary user"],
)
def test_landlock_keeps_programs_in_without_namespaces(
    refused: str, before: tuple[str, ...]
) -> None:
    by_default, named = report("auto", "namespaces", by=(*before, *container(refused)))
    check(by_default, "landlock")
    assert "isolation='namespaces'" in named["refused"]


@x86_64
def test_namespaces_keep_programs_in_without_landlock() -> None:
    by_default, named = report("auto", "landlock", by=container("landlock"))
    check(by_default, "namespaces")
    assert "isolation='landlock'" in named["refused"]


@x86_64
def test_programs_are_refused_with_too_few_layers_unless_a_person_insists() -> None:
    refused, unsafe = report("auto", "unsafe", by=container("namespaces", "landlock"))
    assert refused["kind"] == "ConfigurationError"
    assert refused["refused"] == (
        "This machine cannot run untrusted code safely. Required are a seccomp "
        "filter, no new privileges, and either a private root in namespaces or Landlock. Missing: "
        "private root in namespaces (unshare: Operation not permitted), landlock "
        "(landlock_create_ruleset: Operation not permitted). Run `visenv doctor` for "
        "details. LocalBackend(unsafe=True) runs programs without the missing layers."
    )
    assert unsafe["mode"] == "none"
    assert unsafe["size"] == [3, 2]
    assert "'password file': 'done'" in unsafe["result"]
    assert "'socket': 'refused'" in unsafe["result"]  # the layers that the machine has are active


@x86_64
def test_programs_are_refused_without_a_filter_of_calls() -> None:
    (refused,) = report("auto", by=container("seccomp"))
    assert "seccomp filter (" in refused["refused"]
