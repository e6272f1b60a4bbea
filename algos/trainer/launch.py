"""Starts the processes of a run on this machine, as ``torchrun`` does."""

from __future__ import annotations

import logging
import os
import signal
import sys
import uuid
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from visenv.launcher import is_launched
from visenv.private_names import check_private_names

from .interrupt import STOP_SIGNALS
from .private_names import LAUNCHER_NAMES

_INTERRUPTED = 130
"""Exit status after Ctrl-C, as of the command without several processes."""


def launch(words: Sequence[str], num_processes: int, timeout: float) -> bool:
    """Run ``visenv train`` in several processes, and wait until they have ended.

    The processes print errors and progress. A signal that stops a run is sent to all of them. A
    process that fails ends the others.

    Reference: ``torchrun`` (PyTorch, ``torch.distributed.run``), without a restart after a failure.

    Args:
        words: The arguments of the command.
        num_processes: The number of processes.
        timeout: Seconds in which the processes write a checkpoint after a signal.

    Returns:
        False if nothing was started: a launcher has started this process, or one process is enough.

    Raises:
        ConfigurationError: If PyTorch lacks a name of its launcher.
        SystemExit: With the status of the process that failed first, or 130 after a signal.
    """
    if num_processes == 1 or is_launched():
        return False
    check_private_names(LAUNCHER_NAMES)
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    # Older versions of PyTorch lack these options: they always handle Ctrl-C, SIGTERM and SIGHUP,
    # and end a process 30 s after a signal.
    options: dict[str, Any] = {
        "signals_to_handle": ",".join(_handled_signals()),
        "shutdown_timeout": int(timeout),
    }
    known = {field.name for field in fields(LaunchConfig)}
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=num_processes,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",  # a free port
        max_restarts=0,
        **{name: value for name, value in options.items() if name in known},
    )
    # torchrun sets this number, too. accelerate warns if it is not set.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Otherwise PyTorch warns, in the first step with images, that all weights have a gradient.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    logging.disable()  # the processes report their errors themselves
    try:
        elastic_launch(config, sys.executable)("-m", "visenv", "train", *words)
    except ChildFailedError as error:
        _, failure = error.get_first_failure()
        raise SystemExit(failure.exitcode if failure.exitcode > 0 else 1) from None
    except SignalException:
        raise SystemExit(_INTERRUPTED) from None
    finally:
        logging.disable(logging.NOTSET)
    return True


def _handled_signals() -> list[str]:
    """Return the names of the signals that stop a run and that this process does not ignore.

    A shell ignores Ctrl-C in jobs that it starts in the background, and `nohup` ignores SIGHUP.
    """
    numbers = (signal.SIGINT, *STOP_SIGNALS)
    return [number.name for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
