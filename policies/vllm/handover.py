"""Sending weights under watch: a receiver that dies or hangs must not hang the trainer.

A broadcast (NCCL) to a partner that is gone never returns. So a thread sends, and the trainer's own
thread reads the weights (which all processes may have to gather together) and watches the other. A
thread that hangs is left behind, and its transfer is used no more.
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
"""Seconds between two looks at the thread that sends."""


def hand_over(
    transfer: WeightTransfer, delivery: WeightUpdate, timeout: float, check: Callable[[], None]
) -> None:
    """Send weights; return when the engine has taken them, or has refused one (`problem`).

    Args:
        transfer: Sends them; `broken` afterwards if it did not come to its end.
        delivery: The weights.
        timeout: Most seconds.
        check: Raises `PolicyError` if the engine is dead.

    Raises:
        PolicyError: If the transfer failed or took too long, or the engine died meanwhile.
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
    """Yield the trainer's weights; an error of the trainer ends them, and is the delivery's."""
    try:
        for weight in source:  # noqa: UP028 - `yield from` would close it when a transfer fails
            yield weight
    except Exception as error:  # noqa: BLE001 - whatever the trainer's iterator raises
        delivery.fail(error)


def _send(transfer: WeightTransfer, delivery: WeightUpdate, sent: Future[None]) -> None:
    """Send on this thread, and say how it went."""
    gpu = own_gpu()
    if gpu is not None:
        torch.cuda.set_device(gpu)
    try:
        transfer.send(delivery)
    except PolicyError as error:
        sent.set_exception(error)
    except Exception as error:  # noqa: BLE001 - vLLM and NCCL raise whatever they like
        problem = PolicyError(f"The weights could not be sent: {error!r}")
        problem.__cause__ = error
        sent.set_exception(problem)
    else:
        sent.set_result(None)
