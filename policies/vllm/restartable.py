"""Defines `RestartableSampler`: an `EngineSampler` whose engine is restarted after it died."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

import torch
from typing_extensions import override

from ..tokens.codec import Codec
from .request import EngineClient
from .sampler import EngineSampler
from .weights import WeightUpdate

ClientT = TypeVar("ClientT", bound=EngineClient)


class RestartableSampler(EngineSampler, Generic[ClientT]):
    """Restarts an engine that died for the next turn.

    If weights had been sent to the engine, it is restarted for the next `load`: until then `stale`
    is True, and turns are refused. A subclass calls `_start` as soon as its `_begin` can work.

    Args:
        model: A checkpoint folder or a hub name.
        codec: The codec of that checkpoint.
        max_images: Most images in a conversation.
        max_videos: Most videos in a conversation.
        patience: Seconds between two checks whether the engine still works.
    """

    def __init__(
        self, model: str, codec: Codec, max_images: int, max_videos: int, patience: float
    ) -> None:
        super().__init__(model, codec, max_images, max_videos, patience)
        self._starting = threading.Lock()
        self._loaded = False

    @property
    @override
    def stale(self) -> bool:  # type: ignore[override]
        """Return whether `load` is needed before sampling: the engine died or a transfer failed."""
        return self._present.stale or (self._loaded and self._is_dead())

    @override
    def load(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Send the weights; an engine that died is restarted first."""
        client = self._alive(restart=True)
        delivery = self._delivery(weights)
        self._loaded = True
        client.load(delivery, version)
        self.version = version

    @override
    def sleep(self) -> None:
        """Put the engine to sleep; turns in progress and new turns wait until it wakes."""
        self._present.sleep()

    @override
    def wake(self) -> None:
        """Wake the engine; if its weights were dropped, turns also wait for `load`."""
        self._present.wake()

    def restart(self) -> None:
        """Restart the engine with the checkpoint's weights; `stale` is set if others were loaded.

        If the policy did not start the server, it connects again.
        """
        with self._starting:
            self._restart()

    @override
    def close(self) -> None:
        """Stop the engine; a server that it did not start keeps running."""
        self._present.close()

    def _start(self, previous: ClientT | None = None) -> None:
        self._present = self._begin(previous)

    @override
    def _client(self) -> ClientT:
        return self._alive(restart=not self._loaded)

    def _alive(self, *, restart: bool) -> ClientT:
        with self._starting:
            if restart and self._is_dead():
                self._restart()
            return self._present

    def _restart(self) -> None:
        self._present.close()
        self._start(self._present)
        self._present.stale = self._loaded

    @abstractmethod
    def _begin(self, previous: ClientT | None) -> ClientT:
        """Return a new engine, or a new connection to one.

        Args:
            previous: The previous, closed one, which is replaced; None for the first.
        """

    @abstractmethod
    def _is_dead(self) -> bool:
        """Return whether the engine must be restarted before anything else."""

    @abstractmethod
    def _delivery(self, weights: Iterable[tuple[str, torch.Tensor]]) -> WeightUpdate:
        """Return the weights in the form that the engine takes."""
