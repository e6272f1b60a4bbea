"""Measures how far visenv's computation of a tiny model is from that of stock transformers."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
import transformers

from tests.policies.conftest import Talk
from visenv.policies.transformers import TransformersPolicy, padded
from visenv.types import Image, Message, Segment, Visual

if TYPE_CHECKING:
    from visenv.policies.transformers import TokenSession

TILED_ALONE = ("llava_onevision",)
"""Processors that tile an image only if it is the only one: one call for all is no reference."""

TYPES = {"gemma3": "token_type_ids"} | dict.fromkeys(
    ("gemma4", "qwen2_vl", "qwen3_5", "qwen3_5_moe", "qwen3_vl_moe", "glm46v"), "mm_token_type_ids"
)
"""The argument of a model for the types of its tokens."""

MIXTURES = ("qwen3_vl_moe", "qwen3_5_moe")
"""Mixtures of experts."""

_OF_TEXT = {"input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids"}


class ScoreDifferences(NamedTuple):
    """Holds the largest differences of log-probabilities.

    Attributes:
        sampled: Of sampled tokens, in a batch padded on the left, from a plain forward pass.
        scored: Of scores in a batch padded on the right, from a plain forward pass.
        padded: Of these scores from those of each segment alone.
    """

    sampled: float
    scored: float
    padded: float


class GradientDifference(NamedTuple):
    """Holds a comparison of gradients in float64.

    Attributes:
        largest: The largest difference, relative to the largest gradient.
        vision: The sum of the absolute gradients of the vision tower.
    """

    largest: float
    vision: float


def converse(policy: Any) -> list[TokenSession]:
    """Return two conversations that were sampled together, with 3 turns and 3 images, and 1."""
    talk = Talk()
    pictures = [talk.picture(1, 100, 80), talk.picture(2, 60, 90), talk.picture(3, 84, 84)]
    turns = [
        [Message("system", ("Answer.",)), Message("user", ("Look: ", pictures[0], " what?"))],
        [Message("user", ("result: ", pictures[1], pictures[2]))],
        [Message("user", ("now",))],
    ]
    other = [[Message("user", ("a", talk.picture(4, 40, 120)))]]
    both = talk.together([talk.converse(policy, 0, turns), talk.converse(policy, 1, other)])
    return [session for session, _ in both]


def shown_in(sessions: Sequence[TokenSession]) -> dict[str, Visual]:
    """Return the images of sessions, by their hash."""
    return {image.sha256: image for session in sessions for image in session.stream.images}


def segments_of(sessions: Sequence[TokenSession]) -> list[Segment]:
    """Return the only segment of each session."""
    return [session.segments()[0] for session in sessions]


def loaded(folder: Path, dtype: torch.dtype) -> Any:
    """Return the stock model of a checkpoint."""
    stock: Any = transformers.AutoModelForImageTextToText.from_pretrained(folder)
    return stock.to(dtype).eval()


def plain_scores(
    stock: Any, policy: TransformersPolicy, segment: Segment, images: Mapping[str, Visual]
) -> torch.Tensor:
    """Return log-probabilities of the sampled tokens by one forward pass of the stock model.

    The processor is called once with all images, where that gives the same tokens.
    """
    codec = policy.codec
    name = codec.family.name
    items = [images[span.sha256] for span in segment.images]
    pixels = [item.pixels.copy() for item in items if isinstance(item, Image)]
    calls = [[each] for each in pixels] if name in TILED_ALONE else [pixels]
    text = str(codec.processor.tokenizer.convert_ids_to_tokens(codec.image_id))
    made = [
        codec.processor(text=[text * len(call)], images=call, return_tensors="pt") for call in calls
    ]
    given = {key: torch.cat([each[key] for each in made]) for key in made[0] if key not in _OF_TEXT}
    ids = torch.from_numpy(segment.token_ids).long()[None]
    if name in TYPES:
        given[TYPES[name]] = (ids == stock.config.image_token_id).long()
    given = {
        key: value.to(stock.dtype) if value.is_floating_point() else value
        for key, value in given.items()
    }
    logits = stock(input_ids=ids, use_cache=False, **given).logits[0]
    logits = logits.masked_fill(torch.from_numpy(codec.banned), -torch.inf)
    at = torch.from_numpy(np.flatnonzero(segment.loss_mask))
    scores: torch.Tensor = logits.log_softmax(-1)[at - 1, ids[0, at]]
    return scores


def first_tokens(policy: TransformersPolicy, session: TokenSession) -> tuple[list[int], list[int]]:
    """Return the tokens before the first turn of `converse`, and those of the processor."""
    codec = policy.codec
    user = [
        {"type": "text", "text": "Look: "}, {"type": "image"}, {"type": "text", "text": " what?"},
    ]  # fmt: skip
    conversation = [
        {"role": "system", "content": [{"type": "text", "text": "Answer."}]},
        {"role": "user", "content": user},
    ]
    picture = session.stream.images[0]
    assert isinstance(picture, Image)
    text = codec.processor.apply_chat_template(conversation, add_generation_prompt=True)
    given = codec.processor(
        text=[text], images=[picture.pixels.copy()], add_special_tokens=False, return_tensors="pt"
    )
    prefill = codec.template.start(Talk.request.prefill).removeprefix(codec.template.opening)
    (segment,) = session.segments()
    expected = [*given["input_ids"][0].tolist(), *codec.vocabulary.encode(prefill)]
    return segment.token_ids[: segment.turns[0].start].tolist(), expected


def score_differences(
    policy: TransformersPolicy, folder: Path, sessions: Sequence[TokenSession]
) -> ScoreDifferences:
    """Compare sampled tokens and scores with plain forward passes of the stock model."""
    images = shown_in(sessions)
    stock = loaded(folder, torch.float32)
    found = ScoreDifferences(0.0, 0.0, 0.0)
    segments = segments_of(sessions)
    with torch.no_grad():
        scores = policy.score(segments, images).logprobs
        for row, segment in enumerate(segments):
            mask = torch.from_numpy(segment.loss_mask)
            own = scores[row, : len(segment)][mask]
            expected = plain_scores(stock, policy, segment, images)
            alone = policy.score([segment], images).logprobs[0][mask]
            sampled = torch.from_numpy(segment.logprobs)[mask]
            new = [_largest(sampled, expected), _largest(own, expected), _largest(own, alone)]
            found = ScoreDifferences(*map(max, found, new))
    return found


def gradient_difference(
    policy: TransformersPolicy, folder: Path, sessions: Sequence[TokenSession]
) -> GradientDifference:
    """Compare the gradient of a batch in float64 with that of plain forward passes."""
    images = shown_in(sessions)
    segments = segments_of(sessions)
    own = TransformersPolicy(folder, threads=1)
    own.network.model.to(torch.float64)
    stock = loaded(folder, torch.float64)
    if own.codec.family.name in MIXTURES:
        for model in (own.network.model, stock):
            model.set_experts_implementation("eager")  # the default one computes in float32
    own.score(segments, images).logprobs.sum().backward()
    for segment in segments:
        plain_scores(stock, policy, segment, images).sum().backward()
    expected = {name: weight.grad for name, weight in stock.named_parameters()}
    tower = {id(weight) for weight in own.codec.family.vision(own.network.model)}
    largest = max(float(grad.abs().max()) for grad in expected.values() if grad is not None)
    difference = vision = 0.0
    for name, weight in own.network.model.named_parameters():
        grad = expected[name]
        if grad is None:
            assert weight.grad is None or not weight.grad.any()
            continue
        assert weight.grad is not None
        difference = max(difference, _largest(weight.grad, grad))
        vision += float(grad.abs().sum()) * (id(weight) in tower)
    return GradientDifference(difference / largest, vision)


def pixel_change(policy: TransformersPolicy, sessions: Sequence[TokenSession]) -> float:
    """Return how much the scores change if all images are inverted, under the same hashes."""
    segments = segments_of(sessions[:1])
    images = shown_in(sessions)
    other: Any = copy.copy(policy.codec.family)
    other._known = type(other._known)(2**30, getsizeof=lambda made: made.nbytes)
    for sha256, image in images.items():
        assert isinstance(image, Image)
        other._known[sha256] = other._process(Image.from_pixels(255 - image.pixels))
    codec = copy.copy(policy.codec)
    codec.family = other
    with torch.no_grad():
        network = padded.PaddedModel(policy.network.model, codec)
        batch = padded.pad(network, codec, segments, images)
        after = padded.PaddedScoring(network)(batch).logprobs
        return _largest(after, policy.score(segments, images).logprobs)


def _largest(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).abs().max())
