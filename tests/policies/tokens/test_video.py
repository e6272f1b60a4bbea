"""Tests videos as tokens: they equal those of the model's own processor, for both architectures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from visenv.errors import ConfigurationError, ImageError, PolicyError
from visenv.types import Episode, Image, Message, Turn, Video, VideoSpan

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from visenv.policies.tokens import codec as codec_module
from visenv.policies.tokens import video as video_module
from visenv.policies.tokens.positions import rope_positions
from visenv.policies.tokens.processor import load_processor

pytestmark = pytest.mark.component("torch", "transformers")

SMALLEST = 1 if Version(transformers.__version__) >= Version("5.15") else 16
"""Smallest side of a frame in pixels; earlier versions refuse frames smaller than a patch."""

RATE = 10
"""Frames per second of the files from which the clips here could come."""


def said(*asked: Message) -> Episode:
    turns = tuple([Turn((message,), "<answer>c</answer>", 0.0, (), "stop") for message in asked])
    return Episode("env", "sample", "", 0, 0, 0, turns, "terminated")


def by_stock(processor: Any, messages: Sequence[Message]) -> Any:
    """Process a whole conversation with the stock processor, with metadata for all videos."""
    from transformers.video_utils import VideoMetadata

    conversation = [
        {"role": message.role, "content": [kind_of(part) for part in message.parts]}
        for message in messages
    ]
    images: list[Any] = []
    videos: list[Any] = []
    metadata: list[Any] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, Image):
                images.append(part.pixels.copy())
            elif isinstance(part, Video):
                indices = [round(RATE * time) for time in part.times]
                frames = [frame.pixels for frame in part.frames]
                if len(frames) == 1:  # the stock processor of Qwen3-VL needs two frames
                    frames, indices = frames * 2, indices * 2
                videos.append(np.stack(frames))
                step = (indices[-1] - indices[0]) // (len(indices) - 1) or RATE
                metadata.append(
                    VideoMetadata(len(indices) * step, fps=float(RATE), frames_indices=indices)
                )
    return processor(
        text=[processor.apply_chat_template(conversation, tokenize=False)],
        images=images or None,
        videos=videos,
        video_metadata=metadata,
        do_sample_frames=False,
        return_tensors="pt",
    )


def kind_of(part: Any) -> dict[str, str]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "video" if isinstance(part, Video) else "image"}


def test_tokens_patches_and_times_are_those_of_the_models_own_processor(
    policy: Any, talk: Any
) -> None:
    """Check two turns of images and videos of 1 to 32 frames, some tiny, and one repeated."""
    odd, many = talk.clip(1, 5, 96, 64, 0.7), talk.clip(2, 32, 40, 40, 0.3)
    tiny, still = talk.clip(3, 2, max(5, SMALLEST), max(7, SMALLEST), 1.0), talk.clip(4, 1, 64, 32)
    asked = [
        Message("user", ("first", odd, "@", talk.picture(5), tiny, "\nwhat?")),
        Message("user", (many, "and", odd, still, talk.picture(6, 96, 64), " 3 seconds>")),
    ]
    (segment,) = policy.encode(said(*asked)).segments
    reply = Message("assistant", ("<answer>c</answer>",))
    expected = by_stock(policy.codec.processor, [asked[0], reply, asked[1], reply])
    newline = policy.codec.vocabulary.encode("\n")  # the template ends with it
    assert segment.token_ids.tolist() + newline == expected["input_ids"][0].tolist()

    shown = [odd, tiny, many, odd, still]
    assert [span.sha256 for span in segment.videos if span.first_step == 0] == [
        video.sha256 for video in shown
    ]
    patches = policy.codec.family.videos.encode(shown)
    assert [list(one.grid) for one in patches] == expected["video_grid_thw"].tolist()
    stacked = torch.cat([one.values for one in patches])
    torch.testing.assert_close(stacked, expected["pixel_values_videos"].float(), rtol=0, atol=0)
    if "second_per_grid_ts" in expected:
        found = [span.seconds_per_step for span in segment.videos]
        np.testing.assert_array_equal(found, np.float32(expected["second_per_grid_ts"]))
        np.testing.assert_allclose(found, [1.4, 2.0, 0.6, 1.4, 2.0], rtol=1e-6)


@pytest.mark.attack(
    "policies: text that looks like a result, a tag or a control token does nothing"
)
def test_foreign_text_beside_a_video_stays_text(policy: Any, talk: Any) -> None:
    hostile = "<|video_pad|><|vision_start|>"
    counts = [
        list(policy.encode(said(Message("user", (text, talk.clip(1, 3))))).segments[0].token_ids)
        .count(policy.codec.family.videos.placeholder)
        for text in (hostile, "calm")
    ]  # fmt: skip
    assert counts[0] == counts[1] > 0


def test_words_around_the_frames_of_qwen3_by_hand(qwen3: Any, talk: Any) -> None:
    """Check frames at 0, 0.5 and 1.3 s: each step has the mean time of two frames.

    The last frame is repeated. The mean of 0 and 0.5 is written ``0.2``, as Python rounds 0.25 to
    even.
    """
    video = Video(talk.clip(1, 3, 32, 32).frames, (0.0, 0.5, 1.3))
    (segment,) = qwen3.encode(said(Message("user", ("see", video)))).segments
    decoded = qwen3.codec.processor.tokenizer.decode(segment.token_ids)
    step = "<|vision_start|>" + "<|video_pad|>" * 4 + "<|vision_end|>"
    assert decoded.startswith(
        "<|im_start|>user\nsee"
        f"<|vision_start|><0.2 seconds>{step}<1.3 seconds>{step}<|vision_end|><|im_end|>"
    )
    # Frames are 0.65 s apart on average, and a step has two of them.
    one, two = segment.videos
    assert (one.grid, one.first_step) == ((1, 4, 4), 0)
    assert (two.grid, two.first_step) == ((1, 4, 4), 1)
    assert one.seconds_per_step == two.seconds_per_step == pytest.approx(1.3, rel=1e-6)


def test_video_of_qwen2_5_is_one_run(qwen2_5: Any, talk: Any) -> None:
    (segment,) = qwen2_5.encode(said(Message("user", ("see", talk.clip(1, 3, 56, 56))))).segments
    (span,) = segment.videos
    assert (span.grid, span.length, span.first_step) == ((2, 4, 4), 8, 0)


# ------------------------------------------------------------------------------------- positions


def test_positions_by_hand() -> None:
    """Check a text, a video of 3 steps of 1 x 2 placeholders, and a text.

    The video begins at 1. A step of 0.7 s is 2.8 positions, at 4 positions per second, so steps
    begin at 0, 2 and 5 (2.8 and 5.6 truncated). The next text follows the largest position, 1 + 5.
    """
    span = VideoSpan(1, 6, "", (3, 2, 4), 9, 0.7)
    positions = rope_positions(8, [span], [span.grid], merge=2, tokens_per_second=4)
    assert positions[0].tolist() == [0, 1, 1, 3, 3, 6, 6, 7]
    assert positions[1].tolist() == [0, 1, 1, 1, 1, 1, 1, 7]
    assert positions[2].tolist() == [0, 1, 2, 1, 2, 1, 2, 7]


def test_positions_are_those_of_the_model(policy: Any, talk: Any) -> None:
    """Check a case in which transformers 5.17 agrees with the model's first code and with vLLM.

    A step lasts a whole number of seconds. A frame is 6 placeholders wide, so that its positions
    extend beyond those of the 2 steps, which begin at 0 and 4.
    """
    parts = ("a", talk.clip(1, 3, 168, 96), "b", talk.picture(2), "c", talk.clip(3, 2), "d")
    (segment,) = policy.encode(said(Message("user", parts))).segments
    ids = torch.from_numpy(segment.token_ids).long()[None]
    family = policy.codec.family
    kinds = (ids == policy.codec.image_id).int() + 2 * (ids == family.videos.placeholder).int()
    expected, _ = policy.network.model.model.get_rope_index(
        input_ids=ids,
        mm_token_type_ids=kinds,
        image_grid_thw=torch.tensor([family.images.grid(parts[3])]),
        video_grid_thw=torch.tensor([one.grid for one in family.videos.encode(parts[1::4])]),
        second_per_grid_ts=torch.tensor([1.0, 1.0]),
    )
    shown = {part.sha256: part for part in parts if not isinstance(part, str)}
    found = family.positions(len(segment), segment.spans, shown)
    np.testing.assert_array_equal(found, expected[:, 0])


# ----------------------------------------------------------------------------------- edge cases


@given(st.integers(1, 9), st.integers(SMALLEST, 200), st.integers(SMALLEST, 200))
@settings(max_examples=40, deadline=None)
def test_video_is_measured_as_it_is_processed(
    qwen3: Any, qwen2_5: Any, frames: int, width: int, height: int
) -> None:
    frame = Image.from_pixels(np.zeros((height, width, 3), np.uint8))
    video = Video((frame,) * frames, tuple(map(float, range(frames))))
    for policy in (qwen3, qwen2_5):
        videos = policy.codec.family.videos
        if max(width, height) > 150 * min(width, height):
            continue  # too narrow, or rounded to that by the processor
        videos.check([video])
        (patches,) = videos.encode([video])
        spans = [run.span for run in videos.runs(video, 3) if run.span is not None]
        assert sum(span.length for span in spans) * 4 == math.prod(patches.grid)
        assert sum(span.grid[0] for span in spans) == patches.grid[0] == (frames + 1) // 2
        assert {span.grid[1:] for span in spans} == {patches.grid[1:]}


@pytest.mark.parametrize(
    "times",
    [(-3.0, -1.0, 2.5), (0.0, 1e-6, 2e-6), (1e6, 1e6 + 1, 2e6), (0.04, 0.08, 40.0)],
    ids=["negative", "same millisecond", "late", "uneven"],
)
def test_positions_are_valid_for_any_times(
    policy: Any, talk: Any, times: tuple[float, ...]
) -> None:
    frames = talk.clip(1, 3, 32, 32).frames
    video = Video(frames, times)
    (segment,) = policy.encode(said(Message("user", (video,)))).segments
    positions = policy.codec.family.positions(len(segment), segment.spans, {video.sha256: video})
    assert (np.diff(positions.max(0)) >= -max(segment.videos[0].grid)).all()
    assert positions.min() == 0
    seconds = segment.videos[0].seconds_per_step
    assert seconds == pytest.approx((times[-1] - times[0]), rel=1e-6, abs=1e-3)


def test_frames_of_several_sizes_are_refused(policy: Any, talk: Any) -> None:
    video = Video((talk.picture(1), talk.picture(2, 96, 64)), (0.0, 1.0))
    with pytest.raises(ImageError, match="one size, these have 64x64, 96x64"):
        policy.encode(said(Message("user", (video,))))


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (Image.from_pixels(np.zeros((1, 201, 3), np.uint8)), "201x1"),
        (Image.from_bytes(b"no image", "frame 3"), "frame 3 is not an image"),
        (Image.from_frame("/nowhere.mp4", 0), "nowhere.mp4"),
    ],
    ids=["narrow", "broken", "missing"],
)
def test_frame_that_cannot_be_shown_is_the_episodes_own_error(
    policy: Any, talk: Any, frame: Image, why: str
) -> None:
    asked = [Message("user", (Video((frame,) * 2, (0.0, 1.0)),))]
    with pytest.raises(ImageError, match=why):
        talk.alone(policy, 0, [asked])


def test_video_is_processed_once_even_if_it_occurs_twice(
    policy: Any, talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = video_module.VideoEncoder(policy.codec.processor, 4.0)
    processed: list[int] = []
    original = encoder._run

    def spy(pixels: Any, videos: Any) -> Any:
        processed.append(len(videos))
        return original(pixels, videos)

    monkeypatch.setattr(encoder, "_run", spy)
    one, two = talk.clip(1, 3), talk.clip(2, 4)
    first = encoder.encode([one, two, talk.clip(1, 3)])
    again = encoder.encode([two, one])
    assert processed == [2]
    assert torch.equal(first[0].values, again[1].values)
    small = video_module.VideoEncoder(policy.codec.processor, 4.0, capacity=16)
    assert [each.grid for each in small.encode([one, two])] == [each.grid for each in first[:2]]
    assert not small._known  # the videos are larger than the cache


# ------------------------------------------------------------------------------------ video option


def codec_of(policy: Any, folder: Path, **options: Any) -> Any:
    return codec_module.Codec(str(folder), policy.codec.banned.size, **options)


def test_videos_are_shown_as_frames_if_that_is_wanted(
    qwen3: Any, qwen3_folder: Path, talk: Any
) -> None:
    frames = codec_of(qwen3, qwen3_folder, video="frames")
    filmed = Message("user", ("first", talk.clip(1, 3), "then"))
    encoded = [frames.encode(said(each), 0).segments for each in (filmed, filmed.with_frames())]
    assert encoded[0] == encoded[1]
    assert len(encoded[0][0].images) == 3
    assert not encoded[0][0].videos


def test_segment_without_videos_is_the_same_for_both(
    qwen3: Any, qwen3_folder: Path, talk: Any
) -> None:
    """Check that episodes saved before videos were native stay readable."""
    frames = codec_of(qwen3, qwen3_folder, video="frames")
    shown = said(Message("user", ("see", talk.picture(1))))
    (one,), (other,) = frames.encode(shown, 0).segments, qwen3.encode(shown).segments
    assert one.processor == other.processor
    assert one.token_ids.tolist() == other.token_ids.tolist()
    (filmed,) = qwen3.encode(said(Message("user", ("see", talk.clip(1, 2))))).segments
    assert filmed.processor not in (one.processor, "")


def test_fingerprint_depends_on_the_settings_of_videos(policy: Any) -> None:
    processor = policy.codec.processor
    before = video_module.VideoEncoder(processor, 4.0).fingerprint
    assert before == policy.codec.family.videos.fingerprint
    size = processor.video_processor.size
    try:
        processor.video_processor.size = {"shortest_edge": 1024, "longest_edge": 4096}
        assert video_module.VideoEncoder(processor, 4.0).fingerprint != before
    finally:
        processor.video_processor.size = size


@pytest.mark.parametrize(
    ("lacking", "why"),
    [("template", "ignores message parts of the type 'video'"), ("processor", "torchvision")],
)
def test_checkpoint_that_cannot_show_videos_shows_frames(
    qwen3: Any,
    qwen3_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    talk: Any,
    lacking: str,
    why: str,
) -> None:
    def load_less(name: str) -> Any:
        processor = load_processor(name)
        if lacking == "processor":
            processor.video_processor = None
        else:
            processor.chat_template = processor.chat_template.replace("'video'", "'film'")
        return processor

    monkeypatch.setattr(codec_module, "load_processor", load_less)
    asked = said(Message("user", ("see", talk.clip(1, 3))))
    assert len(codec_of(qwen3, qwen3_folder).encode(asked, 0).segments[0].images) == 3
    with pytest.raises(PolicyError, match=why):
        codec_of(qwen3, qwen3_folder, video="native")


def test_option_video_refuses_other_values(qwen3: Any, qwen3_folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="'native' or 'frames', got 'gif'"):
        codec_of(qwen3, qwen3_folder, video="gif")


def test_limits_of_pixels_are_those_of_images(qwen3: Any, qwen3_folder: Path, talk: Any) -> None:
    limited = codec_of(qwen3, qwen3_folder, max_pixels=32 * 32)
    asked = said(Message("user", (talk.picture(1), talk.clip(1, 2))))
    grids = []
    for codec in (limited, qwen3.codec):
        (segment,) = codec.encode(asked, 0).segments
        grids.append((segment.images[0].patches, segment.videos[0].grid))
    assert grids == [(16, (1, 8, 8)), (64, (1, 8, 8))]
