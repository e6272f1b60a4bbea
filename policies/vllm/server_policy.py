"""Defines `VLLMServerPolicy`: a vLLM server that samples and gets weights over HTTP."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.launcher import rank
from visenv.private_names import check_private_names

from ..tokens.family import VideoMode
from ..tokens.fingerprint import fingerprint_of
from ..tokens.processor import load_processor
from . import launch
from .client import ServerClient
from .control import ServerAddress, ServerControl
from .guard import TOKEN_VARIABLE
from .private_names import SENDER_NAMES
from .sampler import RestartableSampler
from .server import VLLMServer
from .settings import EngineSettings
from .transfer import FolderTransfer, NCCLTransfer, WeightTransfer
from .weights import WeightUpdate

_TRANSFERS = ("folder", "ipc", "nccl")
_log = logging.getLogger(__name__)


class VLLMServerPolicy(RestartableSampler[ServerClient]):
    """Samples like `VLLMPolicy`, with the engine in a server on other GPUs or machines.

    If the policy started the server itself and it died, it is restarted for the next turn; if
    weights had been sent to it, for the next `load`. If another server lost its weights, because it
    was restarted or got other weights, this is detected before its tokens are used: turns are
    refused until the next `load`, which connects again.

    Args:
        model: A checkpoint folder or a hub name.
        url: Address of a running server, ``http://host:port`` without ``/v1``, or ``unix:/path``;
            docs/vllm.md describes how to start one. Its token is read from the environment variable
            ``VISENV_SERVER_TOKEN``. If there are several servers, the processes of a training use
            them in turn, and the first process of each server sends it the weights. None starts a
            server on this process's GPU, which has a token of its own.
        dtype: Type of the weights; see `EngineSettings` for this and the next eight.
        max_batch: Maximum number of turns that are sampled at the same time.
        context: Maximum number of tokens in a conversation.
        max_images: Maximum number of images in a conversation.
        max_videos: Maximum number of videos in a conversation that are shown natively.
        min_pixels: Smaller images are enlarged to this.
        max_pixels: Larger images are shrunk to this.
        video: How videos are shown.
        sleep_level: What `sleep` does with a GPU's memory.
        transfer: How weights are sent: ``"folder"``, ``"ipc"``, ``"nccl"``. None is folder if this
            machine has no GPU, otherwise ipc to a server that the policy started, and nccl to
            others.
        folder: The folder of the weights for ``"folder"``; None is this machine's memory.
        timeout: Maximum number of seconds of one turn.
        transfer_timeout: Maximum number of seconds of a weight transfer.
        retries: Further attempts after a failure that may be temporary.
        options: Further arguments of vLLM's `EngineArgs` for a server that the policy starts.

    Attributes:
        codec: Converts between messages and tokens.
        manifest: Names and shapes of the weights that `load` expects.
        server: The server that the policy started, or None.

    Raises:
        RunError: If there is no such checkpoint.
        PolicyError: If the checkpoint is not supported, or the server does not start or answer.
        ConfigurationError: If an option has an invalid value.
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
        launch.prepare(on_cpu=not torch.cuda.is_available())
        super().__init__(str(model), settings.codec(), max_images, max_videos, patience=1.0)
        # Without the limits of pixels, which the server applies to each request.
        self._processor = fingerprint_of(load_processor(str(model)).image_processor)
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
        """Send the weights; connect again first if the server is another one."""
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
            connected = self._connect()  # first, so that the old client stays open if this fails
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
        control = ServerControl(self._address(), self._limits["transfer_timeout"], self._retries)
        try:
            client = ServerClient(
                control,
                self._transfer(control),
                self.codec.end_id,
                self._runs,
                retries=self._retries,
                sleep_level=self._sleep_level,
                leads=self._leads,
                **self._limits,
            )
        except BaseException:
            control.close()
            raise
        try:
            check_server_processor(control, self._processor)
        except BaseException:
            client.close()
            raise
        if self.server is None and control.answers_strangers():
            _warn_of_open_server(control.url)
        return client

    def _address(self) -> ServerAddress:
        if self.server is not None:
            return self.server.address
        return ServerAddress(self._url, os.environ.get(TOKEN_VARIABLE) or None)

    def _transfer(self, control: ServerControl) -> WeightTransfer:
        if self._kind == "folder":
            return FolderTransfer(control.call, self._folder)
        check_private_names(SENDER_NAMES)
        return NCCLTransfer(control, self._kind, control.workers())


def check_server_processor(control: ServerControl, own: str) -> None:
    """Check that a server loads the same image processor as this process.

    Args:
        control: The control connection of the server.
        own: The fingerprint of the checkpoint's image processor in this process.

    Raises:
        ConfigurationError: If a worker has another one, in its settings, class or backend.
    """
    for each in control.call("visenv_processor"):
        if (other := each["image_processor"]) != own:
            raise ConfigurationError(
                f"The image processor {other} of the vLLM server at {control.url} differs from "
                f"{own} of this process in its settings, class or backend, so that "
                "log-probabilities would differ: give both the same checkpoint, and install "
                "torchvision for both or for neither."
            )


def _usual_transfer(apart: bool) -> str:
    if not torch.cuda.is_available():
        return "folder"
    return "nccl" if apart else "ipc"


@cache  # one warning for each server
def _warn_of_open_server(url: str) -> None:
    _log.warning(
        "The vLLM server at %s answers requests without a token. Everyone who can reach it can "
        "change its weights, and may run code as its user. Start it with TokenGuard as "
        "docs/vllm.md shows, and set %s.",
        url,
        TOKEN_VARIABLE,
    )
