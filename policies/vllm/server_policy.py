"""VLLMServerPolicy: a vLLM server sampled and sent weights over HTTP."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch
from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.private_names import check_private_names

from ..tokens.codec import VideoMode
from . import environment
from .client import ServerClient
from .control import ServerControl
from .launch import rank
from .private_names import SENDER_NAMES
from .restartable import RestartableSampler
from .server import VLLMServer
from .settings import EngineSettings
from .transfer import FolderTransfer, NCCLTransfer, WeightTransfer
from .weights import WeightUpdate

_TRANSFERS = ("folder", "ipc", "nccl")


class VLLMServerPolicy(RestartableSampler[ServerClient]):
    """Samples like `VLLMPolicy`, with the engine behind a server on other GPUs or machines.

    A server of its own that died is restarted for the next turn; if it had been sent weights,
    for the next `load`. One that has lost the weights it was sent, because someone restarted it
    or sent it others, is noticed before anything it samples is used: turns are refused until
    the next `load`, which connects to it again.

    Args:
        model: A checkpoint folder or a hub name.
        url: Of a server that runs, without ``/v1``; docs/vllm.md says how to start one. Of several,
            or of one that several processes sample from, each process takes its own in turn, and
            the first at each server sends it the weights. None starts one on this process's GPU.
        dtype: Of the weights; see `EngineSettings` for this and the next eight.
        max_batch: Most turns sampled at once.
        context: Most tokens in a conversation.
        max_images: Most images in a conversation.
        max_videos: Most videos in a conversation that are shown natively.
        min_pixels: Smaller images are enlarged to this.
        max_pixels: Larger images are shrunk to this.
        video: How videos are shown.
        sleep_level: What `sleep` does with a GPU's memory.
        transfer: How weights get there: ``"folder"``, ``"ipc"``, ``"nccl"``; None is folder where
            this machine has no GPU, otherwise ipc to a server of its own and nccl to others.
        folder: Where weights are written for ``"folder"``; None is this machine's memory.
        timeout: Most seconds for one turn.
        transfer_timeout: Most seconds for a weight transfer.
        retries: Further attempts after a failure that may pass.
        options: Further arguments of vLLM's `EngineArgs` for a server of its own.

    Attributes:
        codec: Between messages and tokens.
        manifest: Names and shapes of the weights that `load` expects.
        server: The server of its own, or None.

    Raises:
        RunError: If there is no such checkpoint.
        PolicyError: If it cannot be used, or the server does not start or answer.
        ConfigurationError: If an option has a value it cannot have.
    """

    def __init__(
        self,
        model: str | Path,
        url: str | Sequence[str] | None = None,
        *,
        dtype: str = "float32",
        max_batch: int = 128,
        context: int | None = None,
        max_images: int = 8,
        max_videos: int = 4,
        min_pixels: int | None = None,
        max_pixels: int | None = None,
        video: VideoMode | None = None,
        sleep_level: int = 2,
        transfer: str | None = None,
        folder: Path | None = None,
        timeout: float = 600.0,
        transfer_timeout: float = 600.0,
        retries: int = 5,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        urls = [url] if isinstance(url, str) else list(url or ())
        self._kind = transfer or _usual_transfer(apart=bool(urls))
        if self._kind not in _TRANSFERS:
            raise ConfigurationError(f"transfer must be one of {_TRANSFERS}, got {transfer!r}.")
        settings = EngineSettings(
            model=model,
            dtype=dtype,
            max_batch=max_batch,
            context=context,
            max_images=max_images,
            max_videos=max_videos,
            min_pixels=min_pixels,
            max_pixels=max_pixels,
            video=video,
            sleep_level=sleep_level,
            options=options or {},
        )
        environment.prepare(on_cpu=not torch.cuda.is_available(), ipc=self._kind == "ipc")
        super().__init__(str(model), settings.codec(), max_images, max_videos, patience=1.0)
        self.server = None if urls else VLLMServer(settings, transfer=self._kind)
        self._dtype = getattr(torch, dtype)
        self._url = urls[rank() % len(urls)] if urls else ""
        self._leads = not urls or rank() < len(urls)
        self._folder = folder
        self._sleep_level = sleep_level if torch.cuda.is_available() else 0
        self._limits = {"timeout": timeout, "transfer_timeout": transfer_timeout}
        self._retries = retries
        self._start()

    @override
    def load(self, weights: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Send the weights; connect again first if the server is a new one."""
        if not self._is_dead():
            self._present.find()
            if self._present.lost:
                self._connect_anew()
        super().load(weights, version)

    @override
    def close(self) -> None:
        """Close the connections, and stop a server that this policy started."""
        super().close()
        if self.server is not None:
            self.server.stop()

    @override
    def _delivery(self, weights: Iterable[tuple[str, torch.Tensor]]) -> WeightUpdate:
        return self.manifest.deliver(weights, self._dtype, packs=self._kind == "folder")

    @override
    def _is_dead(self) -> bool:
        return self._present.broken or not self._runs()

    def _connect_anew(self) -> None:
        with self._starting:
            connected = self._connect()  # first: if it fails, a closed client could not be used
            connected.stale = True
            self._present.close()
            self._present = connected

    def _runs(self) -> bool:
        return self.server is None or self.server.alive

    @override
    def _begin(self, previous: ServerClient | None) -> ServerClient:
        if self.server is None:
            return self._connect()
        self.server.restart()
        try:
            return self._connect()
        except BaseException:
            self.server.stop()
            raise

    def _connect(self) -> ServerClient:
        url = self._url or (self.server.url if self.server else "")
        control = ServerControl(url, self._limits["transfer_timeout"], self._retries)
        return ServerClient(
            control,
            self._transfer(control),
            self.codec.end_id,
            self._runs,
            retries=self._retries,
            sleep_level=self._sleep_level,
            leads=self._leads,
            **self._limits,
        )

    def _transfer(self, control: ServerControl) -> WeightTransfer:
        if self._kind == "folder":
            return FolderTransfer(control.call, self._folder)
        check_private_names(SENDER_NAMES)
        from vllm.distributed.weight_transfer.clients import HTTPVLLMWeightSyncClient

        native = HTTPVLLMWeightSyncClient(control.url, self._limits["transfer_timeout"])
        return NCCLTransfer(native, self._kind, control.workers(), _address_seen_from(control.url))


def _usual_transfer(apart: bool) -> str:
    if not torch.cuda.is_available():
        return "folder"
    return "nccl" if apart else "ipc"


def _address_seen_from(url: str) -> str:
    """Return this machine's address on the route to a server; nothing is sent."""
    parts = urlsplit(url)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((parts.hostname or "127.0.0.1", parts.port or 80))
        address: str = probe.getsockname()[0]
        return address
