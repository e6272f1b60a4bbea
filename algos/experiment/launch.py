"""Starts the processes of a run on this machine, as ``torchrun`` does."""

from __future__ import annotations

import logging
import os
import sys
import uuid
from collections.abc import Sequence

from ..trainer.distributed import is_launched
from ..trainer.interrupt import STOP_SIGNALS
from .recipe import Recipe

_INTERRUPTED = 130
"""Exit status after Ctrl-C, as of the command without several processes."""


def launch(recipe: Recipe, words: Sequence[str]) -> bool:
    """Run ``visenv train`` in the processes of a recipe, and wait until they have ended.

    The processes print errors and progress. A signal that stops a run is sent to all of them. A
    process that fails ends the others.

    Args:
        recipe: The recipe, whose `num_processes` are started.
        words: The arguments of the command.

    Returns:
        False if this process trains itself: a launcher has started it, or the recipe has one
        process.

    Raises:
        SystemExit: With the status of the process that failed first, or 130 after a signal.
    """
    if recipe.num_processes == 1 or is_launched():
        return False
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=recipe.num_processes,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",  # a free port
        max_restarts=0,
        signals_to_handle=",".join(["SIGINT", *(number.name for number in STOP_SIGNALS)]),
        # A process that writes its checkpoint is not killed.
        shutdown_timeout=int(max(phase.timeout for phase in recipe.phases.values())),
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
