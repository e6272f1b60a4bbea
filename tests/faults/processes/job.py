"""Trains a toy policy in an environment that may fail, as `visenv train` does.

`start` forks a process that runs the job, so that PyTorch is imported once for many jobs.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from typing_extensions import override

from tests.faults.processes.faulty_echo import FaultyEcho, once, send

if TYPE_CHECKING:
    from visenv.rollout import Executor

LIMIT = 600.0
"""Seconds after which a job hangs."""

_TIMEOUT = 2.0
"""Time limit of a step that never ends, in seconds."""


@dataclass(frozen=True)
class Job:
    """Holds the settings of a job.

    Attributes:
        executor: ``"inline"``, ``"threads"`` or ``"processes"``.
        fault: A fault of the environment (`faulty_echo.FAULTS`), or ``""``.
        place: Where it happens: in ``"step"``, ``"reset"`` or ``"making"``.
        always: Whether it happens in each step; an episode is then retried only once.
        limited: Whether calls have a short time limit.
        evaluated: Whether the fault happens in evaluations instead of training. Only this job and
            a signal in ``"evaluate"`` have evaluations.
        signal: The name of a signal that the trainer gets, or ``""``.
        at: When it gets the signal: in ``"play"``, ``"learn"``, ``"save"`` or ``"evaluate"``.
        times: How often.
        ignored: The name of a signal that the job ignores from its start, as with ``nohup``.
        stdout: Where standard output goes: to a ``"file"``, ``"full"``, ``"closed"`` or a
            ``"pipe"`` without a reader.
        stderr: Where standard error goes.
        clocks: By how many seconds the clock is wrong after each of the first steps.
        steps: Number of steps.
    """

    executor: str = "inline"
    fault: str = ""
    place: str = "step"
    always: bool = False
    limited: bool = False
    evaluated: bool = False
    signal: str = ""
    at: str = "play"
    times: int = 1
    ignored: str = ""
    stdout: str = "file"
    stderr: str = "file"
    clocks: tuple[float, ...] = ()
    steps: int = 6


class Ended(NamedTuple):
    """Holds the end of a job.

    Attributes:
        status: The exit status, negative for a signal, or None if the job hung and was killed.
        said: Its standard error.
        weights: The hash of the trained weights, ``""`` if the job did not end well.
    """

    status: int | None
    said: str
    weights: str


def train(folder: Path, job: Job, *, resume: bool = False) -> str:
    """Train as a job says, and return the hash of the weights."""
    from tests.algos import toy
    from tests.algos.runs import Sloped
    from visenv.algos.trainer import (
        Callback,
        HeldOut,
        OptimizationConfig,
        RolloutConfig,
        SavingConfig,
        Trainer,
        TrainerConfig,
    )
    from visenv.algos.trainer.placement import Placement

    def signal_at(place: str) -> None:
        if job.signal and job.at == place and once(folder / "signal"):
            send(os.getpid(), getattr(signal, job.signal), job.times)

    class Signaled(Sloped):
        calls = 0

        @override
        def loss(self, batch: Any) -> Any:
            type(self).calls += 1
            if self.calls == 3:
                signal_at("learn")
            return super().loss(batch)

    class SignaledPolicy(toy.ToyPolicy):
        @override
        def save(self, folder: Path) -> None:
            signal_at("save")
            super().save(folder)

    class Printing(Callback):
        @override
        def on_step_end(self, state: Any, metrics: Any, groups: Any) -> None:
            print("step", state.step, flush=True)
            if state.step <= len(job.clocks):
                set_clock(folder, job.clocks[state.step - 1])

    policy = SignaledPolicy()
    config = TrainerConfig(
        steps=job.steps,
        rollouts=RolloutConfig(
            prompts_per_step=2,
            num_generations=3,
            max_tokens=3,
            concurrency=3,
            # A busy machine may exceed the time limit of a step many times.
            episode_retries=1 if job.always else 50,
        ),
        optimization=OptimizationConfig(learning_rate=0.02),
        saving=SavingConfig(checkpoint_every=2, episodes_every=100),
    )
    held_out = HeldOut(
        {"echo": _env_maker(folder, job, is_evaluation=True)},
        {"echo": "reward"},
        episodes=20,
        max_tokens=3,
        every=3,
        placement=Placement(partial(_make_executor, job), 3),
    )
    trainer = Trainer(
        policy,
        Signaled(),
        config,
        folder=folder / "run",
        resume=resume,
        executor=_make_executor(job),
        held_out=held_out if job.evaluated or job.at == "evaluate" else None,
        callbacks=[Printing()],
        trackers=(),
    )
    trainer.train(_env_maker(folder, job, is_evaluation=False))
    return hashlib.sha256(policy.weights()).hexdigest()


def _make_executor(job: Job) -> Executor | None:
    from visenv.rollout import ProcessExecutor, ThreadExecutor

    if job.executor == "inline":
        return None
    made = {"threads": ThreadExecutor, "processes": ProcessExecutor}[job.executor]
    return made(timeout=_TIMEOUT if job.limited else LIMIT)


def _env_maker(folder: Path, job: Job, *, is_evaluation: bool) -> partial[FaultyEcho]:
    """Return a function that makes the environment of training or of evaluations."""
    made = partial(FaultyEcho, folder, os.getpid())
    if job.fault and job.evaluated == is_evaluation:
        made = partial(made, fault=job.fault, place=job.place, always=job.always)
    if job.signal and job.at == ("evaluate" if is_evaluation else "play"):
        made = partial(made, signals=(getattr(signal, job.signal), job.times))
    return made


def set_clock(folder: Path, seconds: float) -> None:
    """Set the clock forward or back, as libfaketime does if its file is named, or in Python only.

    Args:
        folder: The folder of the mark.
        seconds: The difference to the true time.
    """
    before = time.time()
    file = os.environ.get("FAKETIME_TIMESTAMP_FILE")
    if file is None:
        offset = seconds - (time.time() - _true_time())
        inner = time.time
        time.time = lambda: inner() + offset
    else:
        Path(file).write_text(f"{seconds:+.0f}")
    if abs(time.time() - before) > 3000:
        once(folder / "signal")


_true_time = time.time

if "FAKETIME_TIMESTAMP_FILE" in os.environ:  # libfaketime 0.9.10 refuses the sleep of Python 3.11
    time.sleep = lambda seconds: [threading.Event().wait(float(seconds))].clear()


def run(folder: Path, job: Job, act: Callable[[int], None] | None = None) -> Ended:
    """Run a job in a fork, until it ends.

    Args:
        folder: The folder of the job; the run in it is resumed if there is one.
        job: The job.
        act: A function that acts on the process while it runs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    errors, weights = folder / "stderr", folder / "weights"
    pid = start(folder, job)
    until = time.monotonic() + LIMIT
    if act is not None:
        act(pid)
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code: int | None = os.waitstatus_to_exitcode(status)
            break
        if time.monotonic() > until:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            code = None
            break
        time.sleep(0.01)
    said = errors.read_text() if errors.exists() else ""
    return Ended(code, said, weights.read_text() if code == 0 and weights.exists() else "")


def start(folder: Path, job: Job) -> int:
    """Start a job in a fork; return its process id, which is also that of its group."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        code = _run_here(folder, job)
    finally:
        os._exit(code)


def _run_here(folder: Path, job: Job) -> int:
    from visenv import background, cli

    background._SECONDS_TO_CANCEL = 0.5
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if job.ignored:
        signal.signal(getattr(signal, job.ignored), signal.SIG_IGN)
    _redirect(1, job.stdout, folder / "stdout")
    _redirect(2, job.stderr, folder / "stderr")

    def train_job(words: Any) -> None:
        resume = (folder / "run").exists()
        (folder / "weights").write_text(train(folder, job, resume=resume))

    cli._train = train_job
    code = cli.main(["train"])
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    return code


def _redirect(descriptor: int, target: str, file: Path) -> None:
    """Redirect a descriptor of this process; see `Job.stdout`."""
    name = {1: "stdout", 2: "stderr"}[descriptor]
    if target == "closed":
        setattr(sys, name, None)
        os.close(descriptor)
        return
    if target == "pipe":
        reader, opened = os.pipe()
        os.close(reader)
    else:
        path = "/dev/full" if target == "full" else file
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(opened, descriptor)
    os.close(opened)
    setattr(sys, name, open(descriptor, "w", closefd=False))  # noqa: SIM115
