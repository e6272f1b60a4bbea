"""Tests videos of families that are not packed: as video tokens where the family has some."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.environments import few
from visenv.errors import ImageError, PolicyError
from visenv.types import Image, Message, Video, VideoSpan

torch: Any = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("torchvision")

from tests.policies.transformers import families
from tests.policies.transformers.tiny_families import proof
from visenv.policies.tokens.video import facts_of, pixels_of
from visenv.policies.transformers import TransformersPolicy

if TYPE_CHECKING:
    from visenv.policies.transformers import TokenSession

pytestmark = [
    pytest.mark.component("torch", "transformers", "trl"),  # TRL contains chat templates
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:__array__ impl:DeprecationWarning"),  # Qwen's processors
]

NATIVE = ("qwen3_5", "gemma4", "qwen2_vl", "qwen3_vl_moe", "qwen3_5_moe")
"""Families with tokens for videos of any length."""

RUNS = {"qwen2_vl": 1, "gemma4": 3}
"""Runs of placeholders of a video with three frames; others have one for two frames."""


@pytest.fixture(scope="module", params=few(NATIVE, 1))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def model(folder: Path) -> TransformersPolicy:
    return TransformersPolicy(folder, threads=1, video="native")


@pytest.fixture(scope="module")
def held(model: TransformersPolicy, talk: Any) -> list[TokenSession]:
    """Return two conversations: a video, an image and the video again; and only another video.

    The videos of a conversation have one length, with which processors that stack frames take them
    in one call.
    """
    film = talk.clip(1, 3, 64, 48, 0.7)
    turns = [
        [Message("user", ("see ", film, " and ", talk.picture(1, 60, 90), " what?"))],
        [Message("user", ("again: ", film, talk.clip(2, 3, 64, 48)))],
    ]
    other = [[Message("user", ("a", talk.clip(3, 2, 64, 48)))]]
    both = talk.together([talk.converse(model, 0, turns), talk.converse(model, 1, other)])
    return [session for session, _ in both]


def shown_in(sessions: list[TokenSession]) -> dict[str, Any]:
    return {sha256: item for one in sessions for sha256, item in one.stream.items.items()}


def plain_scores(stock: Any, policy: TransformersPolicy, session: TokenSession) -> Any:
    """Return log-probabilities by the stock model, and inputs of one call for all items."""
    codec: Any = policy.codec
    (segment,) = session.segments()
    processor = codec.processor
    images, videos = session.stream.images, session.stream.videos
    given: dict[str, Any] = {}
    if images:
        text = codec.processor.tokenizer.convert_ids_to_tokens(codec.image_id) * len(images)
        pixels = [image.pixels.copy() for image in images]
        given |= processor(text=[text], images=pixels, return_tensors="pt")
    given |= processor(
        text=[processor.video_token * len(videos)],
        videos=[torch.from_numpy(pixels_of(video)) for video in videos],
        video_metadata=[facts_of(video) for video in videos],
        do_sample_frames=False,
        return_tensors="pt",
    )
    given = {key: value for key, value in given.items() if key not in proof._OF_TEXT}
    ids = torch.from_numpy(segment.token_ids).long()[None]
    if codec.family.name in proof.TYPES:
        types = processor.create_mm_token_type_ids(ids.tolist())
        given[proof.TYPES[codec.family.name]] = torch.tensor(types)
    logits = stock(input_ids=ids, use_cache=False, **given).logits[0]
    logits = logits.masked_fill(torch.from_numpy(codec.banned), -torch.inf)
    at = torch.from_numpy(np.flatnonzero(segment.loss_mask))
    return logits.log_softmax(-1)[at - 1, ids[0, at]]


def test_videos_are_shown_by_their_own_tokens(name: str, held: list[TokenSession]) -> None:
    (segment,) = held[0].segments()
    runs = RUNS.get(name, 2)
    firsts = [span for span in segment.videos if span.first_step == 0]
    assert len(firsts) == 3
    assert [span.sha256 for span in segment.videos[:runs]] == [firsts[0].sha256] * runs
    kinds = [type(span) for span in segment.spans if getattr(span, "first_step", 0) == 0]
    assert [kind is VideoSpan for kind in kinds] == [True, False, True, True]
    assert "+" in segment.processor


def test_first_tokens_are_those_of_the_processor(model: Any, held: list[TokenSession]) -> None:
    """Check the conversation with one video."""
    processor, (video,) = model.codec.processor, held[1].stream.videos
    parts = [{"type": "text", "text": "a"}, {"type": "video"}]
    text = processor.apply_chat_template(
        [{"role": "user", "content": parts}], add_generation_prompt=True
    )
    made = processor(
        text=[text],
        videos=[torch.from_numpy(pixels_of(video))],
        video_metadata=[facts_of(video)],
        do_sample_frames=False,
        add_special_tokens=False,
        return_tensors="pt",
    )
    (segment,) = held[1].segments()
    expected = made["input_ids"][0].tolist()
    assert segment.token_ids[: len(expected)].tolist() == expected


def test_sampled_and_padded_scores_are_those_of_a_plain_forward_pass(
    model: Any, folder: Path, held: list[TokenSession]
) -> None:
    segments = proof.segments_of(held)
    stock = proof.loaded(folder, torch.float32)
    with torch.no_grad():
        scores = model.score(segments, shown_in(held)).logprobs
        for row, (session, segment) in enumerate(zip(held, segments, strict=True)):
            expected = plain_scores(stock, model, session)
            mask = torch.from_numpy(segment.loss_mask)
            for found in (torch.from_numpy(segment.logprobs)[mask], scores[row, : len(mask)][mask]):
                torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_pixels_of_videos_change_the_scores_and_train_the_tower(
    folder: Path, held: list[TokenSession]
) -> None:
    policy = TransformersPolicy(folder, threads=1)
    assert policy.codec.family.takes_videos  # without the option
    (segment,) = held[1].segments()
    (video,) = held[1].stream.videos
    policy.score([segment], {video.sha256: video}).logprobs.sum().backward()
    tower = policy.codec.family.vision(policy.network.model)
    assert sum(float(weight.grad.abs().sum()) for weight in tower if weight.grad is not None) > 0
    family: Any = policy.codec.family
    with torch.no_grad():
        before = policy.score([segment], {video.sha256: video}).logprobs
        frames = tuple([Image.from_pixels(255 - frame.pixels) for frame in video.frames])
        family._known[video.sha256] = family._process(Video(frames, video.times))
        after = policy.score([segment], {video.sha256: video}).logprobs
    assert float((after - before).abs().max()) > 1e-3


def test_frames_of_several_sizes_fail_their_own_episode(model: Any, talk: Any) -> None:
    broken = Video((talk.picture(1, 8, 8), talk.picture(2, 9, 8)), (0.0, 1.0))
    with pytest.raises(ImageError, match="A video is refused by the processor"):
        model.codec.family.check([broken])


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ("idefics3", "no special token for videos"),
        *few(
            [
                ("internvl", "ignores message parts of the type 'video'"),
                ("glm46v", "ignores message parts of the type 'video'"),
                ("llava_onevision", "must then have one length"),
            ],
            0,
        ),
    ],
)
def test_family_without_tokens_for_videos_shows_frames(
    other: str, why: str, tmp_path: Path
) -> None:
    folder = families.build(other, tmp_path)
    assert not TransformersPolicy(folder, threads=1).codec.family.takes_videos
    with pytest.raises(PolicyError, match=f"cannot show videos natively.*{why}"):
        TransformersPolicy(folder, threads=1, video="native")
