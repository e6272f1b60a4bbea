"""Sends videos to a server: every frame, without loss, with the times of all frames.

A vLLM server reads a video from bytes, with a loader that it finds by name, and samples frames
itself. `FrameLoader` reads the output of `packed`, and uses all frames. `VLLMServer` registers it.
A server that is started in another way registers it by vLLM's entry points for plug-ins, which
contain `register`.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visenv.private_names import check_private_names
from visenv.types import Image, Video

from ..tokens.video import facts_of, pixels_of
from .private_names import VIDEO_NAMES

LOADER = "visenv"
"""Name of `FrameLoader` in vLLM."""

MEDIA_TYPE = "video/x-visenv"
"""Media type of the data URL of a packed video."""


def packed(video: Video) -> bytes:
    """Return a video as bytes: a NumPy archive of its times and of each frame as PNG."""
    files = {
        f"frame_{number}": np.frombuffer(frame.png(), np.uint8)
        for number, frame in enumerate(video.frames)
    }
    buffer = io.BytesIO()
    np.savez(buffer, times=np.array(video.times, np.float64), **files)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpacked(data: bytes) -> Video:
    """Return the video that `packed` wrote."""
    with np.load(io.BytesIO(data), allow_pickle=False) as files:
        times: list[float] = files["times"].tolist()
        frames = [Image.from_bytes(files[f"frame_{k}"].tobytes()) for k in range(len(times))]
    return Video(tuple(frames), tuple(times))


class FrameLoader:
    """Loads packed videos in vLLM."""

    @classmethod
    def load_bytes(cls, data: bytes, **_: Any) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Return all frames, uint8 ``[frames, 3, height, width]``, and their times as metadata."""
        video = unpacked(data)
        return pixels_of(video), facts_of(video) | {"do_sample_frames": False}


def register() -> None:
    """Register `FrameLoader` with vLLM in this process.

    Raises:
        ConfigurationError: If vLLM lacks the registry of loaders.
    """
    check_private_names(VIDEO_NAMES)
    from vllm.multimodal.video import VIDEO_LOADER_REGISTRY

    VIDEO_LOADER_REGISTRY.register(LOADER)(FrameLoader)


def loaded_by_us() -> dict[str, Any]:
    """Return the arguments of vLLM's `EngineArgs` that select `FrameLoader` in a server."""
    return {"media_io_kwargs": {"video": {"video_backend": LOADER}}}
