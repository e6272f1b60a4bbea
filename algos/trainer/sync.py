"""Keeping a sampling engine on the present weights, and alive.

An engine that takes adapters is sent the weights beneath a LoRA adapter once, and again if it has
lost them; after each step it is sent the adapter alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch

from visenv.errors import PolicyError, RunError
from visenv.policy import Adapter, EnginePolicy, TrainablePolicy

from .backend import TrainingBackend
from .config import RolloutConfig
from .distributed import DistributedContext


class WeightSync:
    """Sends the weights of a policy to the engine that samples for it.

    Every process has an engine, or a share in one, and all make the same calls; `revive` alone is
    each one's own.

    Args:
        engine: Of this process; None where the policy samples itself, and nothing is to be done.
        policy: Whose weights are sent.
        backend: Of this policy.
        processes: Who takes part.
        rollouts: Whether the engine sleeps in between, and how often it may be restarted.
    """

    def __init__(
        self,
        engine: EnginePolicy[Any] | None,
        policy: TrainablePolicy[Any],
        backend: TrainingBackend,
        processes: DistributedContext,
        rollouts: RolloutConfig,
    ) -> None:
        self._engine = engine
        self._policy = policy
        self._backend = backend
        self._processes = processes
        self._sleeps = rollouts.sleep
        self._restarts = rollouts.engine_restarts
        self._sent = False  # whether every engine was sent whole weights
        self._changing = threading.Lock()

    def changing(self) -> AbstractContextManager[Any]:
        """Return a context for changing weights: an engine that dies in it waits for new ones."""
        return self._changing

    def sleep(self) -> None:
        """Put the engine to sleep until the next `send`."""
        if self._engine is not None and self._sleeps:
            self._engine.sleep()

    def send(self) -> None:
        """Have the engine sample with the present weights; one that died is restarted.

        Raises:
            RunError: If it failed more often than it may.
        """
        if self._engine is None:
            return
        if self._sleeps:
            torch.cuda.empty_cache()  # the engine may be another process, which cannot use it
            self._engine.wake()
        while failures := self._send_all(self._engine):
            if self._restarts == 0:
                raise RunError(
                    "The sampling engine failed too often to go on; the last time: " + failures[0]
                )
            self._restarts -= 1

    async def revive(self) -> None:
        """Restart the engine if it has died in the midst of sampling.

        Raises:
            PolicyError: If it cannot be done: the engine failed too often, or other processes hold
                parts of the weights and are not asked; the next `send` tries again then.
        """
        if self._engine is None or not self._engine.stale:
            return
        if self._backend.partitioned:
            raise PolicyError("The engine died; it gets weights again when all processes send.")
        with self._changing:
            if self._restarts == 0:
                raise PolicyError("The sampling engine failed too often to start it again.")
            self._restarts -= 1
            policy = self._policy
            adapter = policy.adapter() if self._engine.takes_adapters else None
            weights = policy.named_weights(merge=adapter is None)
            _load(self._engine, weights, adapter, policy.version)

    def _all_weights(self, *, merge: bool) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the weights once all engines interrupted their turns: processes may share one."""
        self._processes.wait()
        yield from self._policy.named_weights(self._backend.whole, merge=merge)

    def _send_all(self, engine: EnginePolicy[Any]) -> list[str]:
        """Try once to send the weights, and return the errors of all processes."""
        failure = None
        adapter = self._policy.adapter(self._backend.whole) if engine.takes_adapters else None
        weights = None
        if adapter is None or self._lacks_weights(engine):
            weights = self._all_weights(merge=adapter is None)
        try:
            _load(engine, weights, adapter, self._policy.version)
        except PolicyError as error:
            failure = str(error)
        for _ in weights or ():  # those left: all processes gather all of them, or wait for ever
            pass
        failures = [each for each in self._processes.gather(failure) if each is not None]
        self._sent = not failures
        return failures

    def _lacks_weights(self, engine: EnginePolicy[Any]) -> bool:
        """Whether the engine of any process needs the weights beneath an adapter."""
        return any(self._processes.gather(engine.stale or not self._sent))


def _load(
    engine: EnginePolicy[Any],
    weights: Iterator[tuple[str, torch.Tensor]] | None,
    adapter: Adapter | None,
    version: int,
) -> None:
    """Send weights, or an adapter with or without the weights that it changes."""
    if adapter is not None:
        engine.load_adapter(adapter, version, weights)
    elif weights is not None:
        engine.load(weights, version)
