"""Loads programs as modules, and runs them as processes."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
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
    *arguments: str | Path, cwd: Path = ROOT, gpu: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run Python to its exit, by default in the repository, where a program can import `tests`.

    Args:
        arguments: The arguments of Python.
        cwd: Working directory.
        gpu: Whether the program sees the GPUs of the machine.
    """
    command = [sys.executable, *arguments]
    env = os.environ if gpu else {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


_KILLED = """
import os, signal, sys, threading, time
from pathlib import Path

file, lines, *words = sys.argv[1:]

def watch():
    while not (os.path.exists(file) and Path(file).read_bytes().count(b"\\n") >= int(lines)):
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGKILL)

threading.Thread(target=watch, daemon=True).start()
from visenv.cli import main
main(words)
"""


def run_killed(words: list[str], file: Path, lines: int) -> None:
    """Run a command of visenv that kills its process when a file has so many lines.

    The process watches the file itself. A slow machine therefore delays the kill and the command
    alike.

    Args:
        words: The command and its options.
        file: A file that the command writes line by line.
        lines: The number of lines.
    """
    done = run_python("-c", _KILLED, file, str(lines), *words)
    assert done.returncode == -signal.SIGKILL, done.stderr
