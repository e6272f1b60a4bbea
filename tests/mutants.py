"""Plants mutants in the product code and reports how many of them the tests kill.

The files and the mutants (tests/mutations.py) are chosen by hashes of a seed and of their text.
The choice therefore changes only where the code changes, and two commits can be compared::

    python -m tests.mutants --out before.jsonl          # make mutants
    python -m tests.mutants --jobs 2 --at-least 45

The mutants are planted in copies of the tracked files, so the working tree is never changed. For
each mutant, the tests in the folder of its file run until the first failure. The limit counts CPU
seconds, so that it does not depend on other work of the machine. A failed test kills the mutant
only if it passes without the mutant.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.mutations import KINDS, Mutant, find_mutants

ROOT: Final = Path(__file__).parent.parent
PRODUCT: Final = ("visenv/", "envs/", "policies/", "algos/")
INTERPRETERS: Final = (".venv", ".venv-simulators", ".venv-verl")

_WALL_FACTOR: Final = 5
"""Wall-clock limit of a mutant's tests, in units of the CPU limit. It ends tests that hang."""


@dataclass(frozen=True)
class Outcome:
    """Holds the result of a mutant: the test that killed it, or None, and the CPU seconds."""

    mutant: Mutant
    killed_by: str | None
    limited: bool
    seconds: float


def test_files(path: str, tracked: Sequence[str]) -> list[str]:
    """Return the test files of the folder that mirrors the file's folder.

    If no such folder exists, its nearest parent is used. Test files with the name of the product
    file or of its folder come first.
    """
    folder = Path("tests", path).parent
    while folder != Path("tests"):
        found = [
            name
            for name in tracked
            if name.startswith(f"{folder}/") and Path(name).name.startswith("test_")
        ]
        if found:
            own = {f"test_{Path(path).stem.strip('_')}", f"test_{Path(path).parent.name}"}
            return sorted(found, key=lambda name: (Path(name).stem not in own, name))
        folder = folder.parent
    return []


def choose(tracked: Sequence[str], *, files: int, mutants: int, seed: int) -> list[Mutant]:
    """Return the mutants, the same number for each of the chosen files and nearly for each kind.

    Args:
        tracked: Paths of all tracked Python files, relative to the root.
        files: Number of files.
        mutants: Number of mutants.
        seed: Seed of the choice.
    """

    def rank(*parts: object) -> str:
        return hashlib.sha256(repr((seed, *parts)).encode()).hexdigest()

    per_file = mutants // files
    product = [path for path in tracked if path.startswith(PRODUCT)]
    chosen: list[Mutant] = []
    for path in sorted(product, key=rank):
        if len(chosen) == mutants:
            break
        found = list(find_mutants(path, (ROOT / path).read_bytes()))
        found.sort(key=lambda mutant: rank(mutant.original, mutant.replacement, mutant.line))
        if len(found) < 5 * per_file or not test_files(path, tracked):
            continue
        for _ in range(per_file):
            used = Counter(mutant.kind for mutant in chosen)
            best = min(found, key=lambda mutant: used[mutant.kind])
            found.remove(best)
            chosen.append(best)
    return chosen


def tracked_files() -> list[str]:
    """Return the paths of all files that git tracks, relative to the root."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z"]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return listing.rstrip("\0").split("\0")


def copy_tree(target: Path, tracked: Sequence[str]) -> None:
    """Copy the tracked files into a folder, with links to the virtual environments."""
    for path in tracked:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, target / path, follow_symlinks=False)
    for name in INTERPRETERS:
        if (ROOT / name).exists():
            (target / name).symlink_to((ROOT / name).resolve())


class TimeLimitError(Exception):
    """Reports that the tests took longer than their limit."""


def run_tests(folder: Path, tests: Sequence[str], seconds: float) -> tuple[str | None, float]:
    """Run tests until the first failure.

    Args:
        folder: The copy of the repository.
        tests: Test files, or names of tests.
        seconds: Limit of the CPU seconds of all processes of the tests.

    Returns:
        The name of the failed test, or None if all passed; and the CPU seconds.

    Raises:
        TimeLimitError: if the limit was reached.
    """
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    environment.pop("CI", None)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        process = subprocess.Popen(
            [*command, *tests],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            used = _wait(process, seconds)
        finally:
            _end(process)
        output.seek(0)
        text = output.read()
    if process.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return None, used
    if process.returncode == pytest.ExitCode.USAGE_ERROR:
        raise RuntimeError(text)
    failed = re.search(r"^(?:FAILED|ERROR) (\S+?\.py(?:::.*?)?)(?: - .*)?$", text, re.MULTILINE)
    return (failed[1] if failed else f"pytest exited with {process.returncode}"), used


def _wait(process: subprocess.Popen[bytes], seconds: float) -> float:
    """Wait for the end of the tests; return the CPU seconds that were seen last."""
    used, begin = 0.0, time.monotonic()
    while process.poll() is None:
        used = max(used, _cpu_seconds(process.pid))
        if used > seconds or time.monotonic() - begin > _WALL_FACTOR * seconds:
            raise TimeLimitError
        time.sleep(0.2)
    return used


def _cpu_seconds(pid: int) -> float:
    try:
        tree = [psutil.Process(pid)]
        tree += tree[0].children(recursive=True)
    except psutil.NoSuchProcess:
        return 0.0
    used = 0.0
    for process in tree:
        try:
            used += sum(process.cpu_times()[:4])  # user, system, and both of ended children
        except psutil.Error:
            continue
    return used


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill all processes that the tests have started."""
    try:
        tree = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        tree = []
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for child in tree:
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait()


def try_mutant(mutant: Mutant, folder: Path, tests: Sequence[str], seconds: float) -> Outcome:
    """Plant a mutant in a copy of the repository, run the tests, and restore the file."""
    file = folder / mutant.path
    source = file.read_bytes()
    _write(file, mutant.apply(source))
    try:
        failed, used = run_tests(folder, tests, seconds)
    except TimeLimitError:
        return Outcome(mutant, None, limited=True, seconds=seconds)
    finally:
        _write(file, source)
    if failed is not None and "::" in failed:
        name = failed.partition("[")[0]  # all cases of the test: a parameter may contain spaces
        again, _ = run_tests(folder, [name], _WALL_FACTOR * seconds)
        if again is not None:
            print(f"{again} fails without a mutant, too: it kills nothing.", file=sys.stderr)
            failed = None
    return Outcome(mutant, failed, limited=False, seconds=used)


def _write(file: Path, source: bytes) -> None:
    """Write a module, and remove its bytecode: mutants may have equal sizes and times."""
    file.write_bytes(source)
    for bytecode in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        bytecode.unlink()


def main() -> int:
    """Run the mutants, print each outcome, and return 1 if too few were killed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--mutants", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=90, help="CPU seconds for each mutant")
    parser.add_argument("--jobs", type=int, default=1, help="mutants that run at the same time")
    parser.add_argument("--at-least", type=int, default=0, help="fail if fewer are killed")
    parser.add_argument("--out", type=Path, help="a JSON line for each outcome")
    options = parser.parse_args()
    tracked = tracked_files()
    python = [path for path in tracked if path.endswith(".py")]
    mutants = choose(python, files=options.files, mutants=options.mutants, seed=options.seed)
    with tempfile.TemporaryDirectory() as top, ThreadPoolExecutor(options.jobs) as pool:
        copies: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for index in range(options.jobs):
            copies.put(Path(top, str(index)))
            copy_tree(Path(top, str(index)), tracked)

        def run(mutant: Mutant) -> Outcome:
            folder = copies.get()
            try:
                return try_mutant(mutant, folder, test_files(mutant.path, python), options.seconds)
            finally:
                copies.put(folder)

        outcomes = []
        for outcome in pool.map(run, mutants):
            outcomes.append(outcome)
            print(_line(outcome), flush=True)
            if options.out:
                with options.out.open("a") as out:
                    out.write(json.dumps(asdict(outcome)) + "\n")
    print("\n" + table(outcomes))
    return int(sum(outcome.killed_by is not None for outcome in outcomes) < options.at_least)


def _line(outcome: Outcome) -> str:
    mutant = outcome.mutant
    end = f"killed by {outcome.killed_by}" if outcome.killed_by else "survived"
    limit = " (limit of time)" if outcome.limited else ""
    change = f"{' '.join(mutant.original.split())} -> {' '.join(mutant.replacement.split())}"
    return f"{mutant.path}:{mutant.line}: {change}: {end}{limit}, {outcome.seconds:.0f} s"


def table(outcomes: Sequence[Outcome]) -> str:
    """Return the killed mutants of each kind as a table in Markdown."""
    lines = ["| kind | killed | mutants | stopped by the limit |", "|---|--:|--:|--:|"]
    for kind in (*KINDS, "all"):
        rows = [outcome for outcome in outcomes if kind in (outcome.mutant.kind, "all")]
        killed = sum(outcome.killed_by is not None for outcome in rows)
        limited = sum(outcome.limited for outcome in rows)
        lines.append(f"| {kind} | {killed} | {len(rows)} | {limited} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
