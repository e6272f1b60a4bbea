"""Sends the current weights to a sampling engine, and restarts the engine if it dies.

An engine that supports adapters receives the base weights of a LoRA model once, and again if it has
lost them. After each step it receives only the adapter.
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

    Every process has an engine or uses a shared one. All processes make the same calls, except for
    `revive`, which a process can call alone.

    Args:
        engine: The engine of this process; None if the policy itself samples, so that no weights
            are sent.
        policy: The policy whose weights are sent.
        backend: The backend of this policy.
        processes: The processes of the run.
        rollouts: The settings of rollouts, which include sleeping and the number of restarts.

    Raises:
        ConfigurationError: If engine and policy process images differently.
    """

    def __init__(
        self,
        engine: EnginePolicy[Any] | None,
        policy: TrainablePolicy[Any],
        backend: TrainingBackend,
        processes: DistributedContext,
        rollouts: RolloutConfig,
    ) -> None:
        if engine is not None:
            engine.check_image_processor(policy)
        self._engine = engine
        self._policy = policy
        self._backend = backend
        self._processes = processes
        self._sleeps = rollouts.sleep
        self._restarts = rollouts.engine_restarts
        self._sent = False  # whether every engine has received complete weights
        self._changing = threading.Lock()

    def changing(self) -> AbstractContextManager[Any]:
        """Return a context for updating weights, in which an engine that dies is not restarted."""
        return self._changing

    def sleep(self) -> None:
        """Put the engine to sleep until the next `send`."""
        if self._engine is not None and self._sleeps:
            self._engine.sleep()

    def send(self) -> None:
        """Send the current weights to the engine, which is restarted if it has died.

        Raises:
            RunError: If the engine failed more often than `RolloutConfig.engine_restarts`.
        """
        if self._engine is None:
            return
        if self._sleeps:
            torch.cuda.empty_cache()  # an engine in another process cannot use cached memory
            self._engine.wake()
        while failures := self._send_all(self._engine):
            if self._restarts == 0:
                raise RunError(
                    "The sampling engine failed too often; the last error: " + failures[0]
                )
            self._restarts -= 1

    async def revive(self) -> None:
        """Restart the engine if it has died while sampling.

        Raises:
            PolicyError: If the engine failed too often, or if other processes hold parts of the
                weights, which only the next `send` can gather.
        """
        if self._engine is None or not self._engine.stale:
            return
        if self._backend.partitioned:
            raise PolicyError("The engine died; it receives weights again in the next update.")
        with self._changing:
            if self._restarts == 0:
                raise PolicyError("The sampling engine failed too often to be restarted.")
            self._restarts -= 1
            policy = self._policy
            adapter = policy.adapter() if self._engine.takes_adapters else None
            weights = policy.named_weights(merge=adapter is None)
            _load(self._engine, weights, adapter, policy.version)

    def _all_weights(self, *, merge: bool) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the weights after all engines have interrupted their turns.

        All engines must be interrupted, because processes may share an engine.
        """
        self._processes.wait()
        yield from self._policy.named_weights(self._backend.gather_params, merge=merge)

    def _send_all(self, engine: EnginePolicy[Any]) -> list[str]:
        """Try once to send the weights, and return the errors of all processes."""
        failure = None
        adapter = (
            self._policy.adapter(self._backend.gather_params) if engine.takes_adapters else None
        )
        weights = None
        if adapter is None or self._lacks_weights(engine):
            weights = self._all_weights(merge=adapter is None)
        try:
            _load(engine, weights, adapter, self._policy.version)
        except PolicyError as error:
            failure = str(error)
        for _ in weights or ():  # all processes must gather all weights, or they wait forever
            pass
        failures = [each for each in self._processes.gather(failure) if each is not None]
        self._sent = not failures
        return failures

    def _lacks_weights(self, engine: EnginePolicy[Any]) -> bool:
        """Return whether the engine of any process needs the base weights of an adapter."""
        return any(self._processes.gather(engine.stale or not self._sent))


def _load(
    engine: EnginePolicy[Any],
    weights: Iterator[tuple[str, torch.Tensor]] | None,
    adapter: Adapter | None,
    version: int,
) -> None:
    """Send weights, or an adapter with or without its base weights."""
    if adapter is not None:
        engine.load_adapter(adapter, version, weights)
    elif weights is not None:
        engine.load(weights, version)
