"""Lists the faults of processes and signals, and what a run does under each of them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.faults.processes.faulty_echo import children
from tests.faults.processes.job import LIMIT, Job

SAME = "goes on, same weights"
STOPS = "stops with a checkpoint and a sentence"
SENTENCE = "ends with a sentence"
ENDS = "ends without a sentence"


class Fault(NamedTuple):
    """Describes a fault and the outcome that a run must have.

    Attributes:
        kind: The kind of the fault.
        name: The fault, in words.
        job: The job.
        outcome: `SAME`, `STOPS`, `SENTENCE` or `ENDS`. After the last three, the job is resumed
            without the fault, and must give the weights of a run without any fault.
        act: Acts on the process of the job, given the folder of the job; None if the job itself
            makes the fault.
    """

    kind: str
    name: str
    job: Job
    outcome: str
    act: Callable[[Path, int], None] | None = None

    @property
    def label(self) -> str:
        """Return the name of the fault in tests and in the table."""
        return f"{self.name}, {self.job.executor}"


def faults() -> dict[str, Fault]:
    """Return all faults by label."""
    return {
        fault.label: fault
        for fault in (*_environments(), *_workers(), *_signals(), *_outputs(), *_clocks())
    }


_ANYWHERE = {
    "raises": SAME,
    "raises MemoryError": SAME,
    "calls sys.exit": SAME,
    "prints a megabyte": SAME,
    "has a bug": SENTENCE,
    "returns None": SENTENCE,
    "returns a reward of NaN": SENTENCE,
    "returns a text as reward": SENTENCE,
    "returns an empty info": SENTENCE,
}
"""Faults of an environment with the same outcome for each executor."""

_ISOLATED = {
    "calls os._exit": ENDS,
    "calls abort": ENDS,
    "has a segmentation fault": ENDS,
    "raises KeyboardInterrupt": STOPS,
}
"""Faults that have an effect on the trainer if the environment runs in its process."""


def _environments() -> Iterator[Fault]:
    kind = "environment"
    for name, outcome in _ANYWHERE.items():
        for executor in ("inline", "threads", "processes"):
            yield Fault(kind, f"a step {name}", Job(executor, name), outcome)
    for executor in ("inline", "threads", "processes"):
        job = Job(executor, "raises", always=True)
        yield Fault(kind, "each step raises", job, SENTENCE)
    job = Job("processes", "calls os._exit", always=True)
    yield Fault(kind, "each step calls os._exit", job, SENTENCE)
    yield Fault(kind, "a step closes all its files", Job("processes", "closes all its files"), SAME)
    for name, outcome in _ISOLATED.items():
        yield Fault(kind, f"a step {name}", Job("inline", name), outcome)
        in_thread = SAME if outcome == STOPS else outcome
        yield Fault(kind, f"a step {name}", Job("threads", name), in_thread)
        yield Fault(kind, f"a step {name}", Job("processes", name), SAME)
    for name in ("never ends", "never ends in C"):
        job = Job("inline", name)
        yield Fault(kind, f"a step {name}, then SIGTERM", job, STOPS, _terminate_when_hung)
        for executor in ("threads", "processes"):
            yield Fault(kind, f"a step {name}", Job(executor, name, limited=True), SAME)
    for name in ("calls os._exit", "raises"):
        for place in ("reset", "making"):
            yield Fault(kind, f"{place} {name}", Job("processes", name, place), SAME)
    for name in ("calls os._exit", "never ends", "raises"):
        job = Job("processes", name, limited=name == "never ends", evaluated=True)
        yield Fault(kind, f"a step of an evaluation {name}", job, SAME)
    job = Job("inline", "never ends", evaluated=True)
    name = "a step of an evaluation never ends, then SIGTERM"
    yield Fault(kind, name, job, STOPS, _terminate_when_hung)


def _workers() -> Iterator[Fault]:
    kind = "workers"
    for name in ("kills all workers", "interrupts all workers", "hangs up all workers"):
        yield Fault(kind, f"a step {name}", Job("processes", name), SAME)
    name = "stops its process"
    yield Fault(kind, f"a step {name} for ever", Job("processes", name, limited=True), SAME)
    yield Fault(
        kind,
        "all workers are killed while the trainer learns",
        Job("processes"),
        SAME,
        _kill_workers,
    )


def _signals() -> Iterator[Fault]:
    kind = "signal"
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGXCPU"):
        for at in ("play", "learn", "save", "evaluate"):
            yield Fault(kind, f"{name} ({at})", Job(signal=name, at=at), STOPS)
        yield Fault(kind, f"{name} (play)", Job("processes", signal=name), STOPS)
    yield Fault(kind, "SIGTERM (play)", Job("threads", signal="SIGTERM"), STOPS)
    for at in ("play", "learn", "save"):
        yield Fault(kind, f"SIGHUP twice ({at})", Job(signal="SIGHUP", at=at, times=2), STOPS)
    for name, why in (("SIGINT", "a job in the background"), ("SIGHUP", "nohup")):
        for at in ("play", "learn"):
            job = Job(signal=name, at=at, ignored=name)
            yield Fault(kind, f"{name} ({at}), ignored as in {why}", job, SAME)
    yield Fault(
        kind, "SIGTERM (play), SIGINT is ignored", Job(signal="SIGTERM", ignored="SIGINT"), STOPS
    )
    for executor in ("inline", "processes"):
        yield Fault(
            kind, "SIGSTOP, and SIGCONT later", Job(executor, signal="SIGSTOP"), SAME, _continue
        )


def _outputs() -> Iterator[Fault]:
    kind = "output"
    for out, err in (
        ("closed", "file"),
        ("full", "file"),
        ("pipe", "file"),
        ("file", "closed"),
        ("file", "full"),
        ("file", "pipe"),
        ("closed", "closed"),
        ("full", "full"),
        ("pipe", "pipe"),
    ):
        yield Fault(kind, f"stdout: {out}, stderr: {err}", Job(stdout=out, stderr=err), SAME)
    job = Job("processes", "prints a megabyte", stdout="pipe", stderr="pipe")
    yield Fault(kind, "stdout and stderr: pipe, a step prints a megabyte", job, SAME)


_DAY, _HOUR = 86400.0, 3600.0


def _clocks() -> Iterator[Fault]:
    name = "the clock is set forward by a day, and then back by an hour"
    for executor in ("inline", "threads", "processes"):
        yield Fault("clock", name, Job(executor, clocks=(_DAY, _DAY, -_HOUR)), SAME)


# -------------------------------------------------------------------------- acts from outside

STOPPED_SECONDS = 60.0
"""Seconds between SIGSTOP and SIGCONT; the fast test sets less."""


def _wait(happened: Callable[[], object]) -> None:
    until = time.monotonic() + LIMIT
    while not happened() and time.monotonic() < until:
        time.sleep(0.01)


def _terminate_when_hung(folder: Path, pid: int) -> None:
    """Send SIGTERM when a step hangs."""
    _wait(lambda: any(folder.glob("fault-*")))
    os.kill(pid, signal.SIGTERM)


def _continue(folder: Path, pid: int) -> None:
    """Continue a process that was stopped."""
    _wait(lambda: _state(pid) == "T")
    time.sleep(STOPPED_SECONDS)
    os.kill(pid, signal.SIGCONT)


def _kill_workers(folder: Path, pid: int) -> None:
    """Kill the workers when the first checkpoint is written."""
    _wait(lambda: any((folder / "run" / "checkpoints").glob("step_*")))
    for child in children(pid):
        os.kill(child, signal.SIGKILL)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
