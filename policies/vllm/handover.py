"""Sends weights such that a receiver that dies or hangs does not block the trainer.

A broadcast (NCCL) to a dead receiver never returns. A separate thread therefore sends, while the
trainer's own thread reads the weights (which all processes may have to gather together) and
monitors the sender. A thread that hangs is abandoned, and its transfer is not used again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from functools import partial

import torch

from visenv.errors import PolicyError
from visenv.rollout.replicas import WeightChannel as Relay

from .job_queue import JobQueue
from .launch import own_gpu
from .transfer import WeightTransfer
from .weights import WeightUpdate

_GLANCE = 0.1
"""Seconds between two checks of the sending thread."""


def hand_over(
    transfer: WeightTransfer, delivery: WeightUpdate, timeout: float, check: Callable[[], None]
) -> None:
    """Send weights; return when the engine has received them, or has rejected one (`problem`).

    Args:
        transfer: The transfer; its `broken` is set if it did not finish.
        delivery: The weights.
        timeout: Maximum number of seconds.
        check: Raises `PolicyError` if the engine is dead.

    Raises:
        PolicyError: If the transfer failed or took too long, or the engine died during it.
    """
    end = time.monotonic() + timeout

    def watch() -> None:
        check()
        if time.monotonic() > end:
            raise PolicyError(f"A transfer of weights has taken longer than {timeout:g} s.")

    relay, sent = Relay(), Future[None]()
    source = delivery.relayed(relay.weights())
    sender = JobQueue("visenv-vllm-transfer")
    sender.put(partial(_send, transfer, delivery, sent))
    try:
        for weight in _given(source, delivery):
            relay.put(weight)
            relay.wait(sent, watch)
            if sent.done():
                break
        relay.put(None)
        while not wait({sent}, _GLANCE).done:
            watch()
    except PolicyError:
        transfer.broken = True
        raise
    finally:
        relay.put(None)
        sender.stop(0)
    sent.result()


def _given(
    source: Iterable[tuple[str, torch.Tensor]], delivery: WeightUpdate
) -> Iterable[tuple[str, torch.Tensor]]:
    """Yield the trainer's weights.

    An error of the trainer ends them, and is stored in the delivery.
    """
    try:
        for weight in source:  # noqa: UP028 - `yield from` would close it when a transfer fails
            yield weight
    except Exception as error:  # noqa: BLE001 - whatever the trainer's iterator raises
        delivery.fail(error)


def _send(transfer: WeightTransfer, delivery: WeightUpdate, sent: Future[None]) -> None:
    """Send on this thread, and store the result or the error in `sent`."""
    gpu = own_gpu()
    if gpu is not None:
        torch.cuda.set_device(gpu)
    try:
        transfer.send(delivery)
    except PolicyError as error:
        sent.set_exception(error)
    except Exception as error:  # noqa: BLE001 - vLLM and NCCL may raise anything
        problem = PolicyError(f"The weights could not be sent: {error!r}")
        problem.__cause__ = error
        sent.set_exception(problem)
    else:
        sent.set_result(None)
