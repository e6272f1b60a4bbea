"""Lists the private names of transformers that are used for videos."""

from __future__ import annotations

from typing import Final

from visenv.private_names import PrivateName

VIDEO_NAMES: Final = (
    PrivateName(
        "transformers.video_utils:VideoMetadata",
        "tells a video processor the times of frames",
        parameters=("total_num_frames", "fps", "frames_indices"),
    ),
    PrivateName(
        "transformers.video_utils:VideoMetadata.sampled_fps", "reads the rate of frames from it"
    ),
    PrivateName(
        "transformers:ProcessorMixin.replace_video_token",
        "asks for the tokens that stand for a video",
        parameters=("video_inputs", "video_idx"),
    ),
)
"""Checked by `VideoEncoder`."""
