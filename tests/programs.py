"""Loads programs as modules, and runs them as processes."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]


def load_program(path: str) -> ModuleType:
    """Return an example or benchmark as a module; `path` is relative to the repository."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up in sys.modules
    spec.loader.exec_module(module)
    return module


def run_python(
    *arguments: str | Path,
    cwd: Path = ROOT,
    gpu: bool = True,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run Python to its exit, by default in the repository, where a program can import `tests`.

    Args:
        arguments: The arguments of Python.
        cwd: Working directory.
        gpu: Whether the program sees the GPUs of the machine.
        env: Further variables of the environment.
    """
    command = [sys.executable, *arguments]
    given = {**os.environ, **({} if gpu else {"CUDA_VISIBLE_DEVICES": ""}), **(env or {})}
    return subprocess.run(command, cwd=cwd, env=given, capture_output=True, text=True, check=False)


_KILLED = """
import importlib, itertools, os, signal, sys

module, kind, method, calls, *words = sys.argv[1:]
owner = getattr(importlib.import_module(module), kind)
inner, counted = getattr(owner, method), itertools.count(1)

def call(*args, **kwargs):
    inner(*args, **kwargs)
    if next(counted) == int(calls):
        os.kill(os.getpid(), signal.SIGKILL)

setattr(owner, method, call)
from visenv.cli import main
main(words)
"""


def run_killed(words: list[str], method: Callable[..., None], calls: int) -> None:
    """Run a command of visenv that kills its process after some calls of a method.

    Args:
        words: The command and its options.
        method: A method that writes a line, such as `RunFolder.add`.
        calls: The number of calls.
    """
    name = [method.__module__, *method.__qualname__.split(".")]
    done = run_python("-c", _KILLED, *name, str(calls), *words)
    assert done.returncode == -signal.SIGKILL, done.stderr
