"""Tests scores of tokens: values, gradients, and rejected segments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from visenv.errors import PolicyError
from visenv.types import Episode, Image, Segment, Turn, TurnRequest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from visenv.policies import transformers as package
from visenv.policies.transformers import head as head_module

pytestmark = pytest.mark.component("torch", "transformers")


def segment_of(policy: Any, talk: Any, said: str, *images: Image) -> Segment:
    turn = Turn(tuple(talk.shown("what?", *images)), said, 0.0, (), "stop", TurnRequest("<think>"))
    episode = Episode("env", "sample", "", 0, 0, 0, (turn,), "terminated")
    segments: tuple[Segment, ...] = policy.encode(episode).segments
    return segments[0]


def by_hash(*images: Image) -> dict[str, Image]:
    return {image.sha256: image for image in images}


def test_log_probabilities_and_entropy_are_those_of_the_stock_model(policy: Any, talk: Any) -> None:
    image = talk.picture(1, 96, 64)
    segment = segment_of(policy, talk, "<think>red</think>", image)
    (patches,) = policy.codec.family.images.encode([image])
    ids = torch.from_numpy(segment.token_ids).long()[None]
    with torch.no_grad():
        logits = policy.network.model(
            input_ids=ids,
            mm_token_type_ids=(ids == policy.codec.image_id).long(),
            pixel_values=patches.values,
            image_grid_thw=torch.tensor([patches.grid]),
        ).logits[0]
    allowed = logits[:, ~torch.from_numpy(policy.codec.banned)]
    probability = allowed.softmax(-1)
    entropy = -(probability * probability.log()).sum(-1)
    full = torch.full_like(logits, -torch.inf)
    full[:, ~torch.from_numpy(policy.codec.banned)] = probability.log()
    found = policy.score([segment], by_hash(image))
    for at in np.flatnonzero(segment.loss_mask):
        expected = full[at - 1, segment.token_ids[at]]
        assert found.logprobs[0, at].item() == pytest.approx(expected.item(), abs=1e-5)
        assert found.entropy[0, at].item() == pytest.approx(entropy[at - 1].item(), abs=1e-4)
    off = ~found.mask
    assert not found.logprobs[off].any()
    assert not found.entropy[off].any()
    assert not found.entropy.requires_grad


def gradients(policy: Any, batches: list[list[Segment]], images: dict[str, Image]) -> list[Any]:
    model = policy.network.model
    model.zero_grad()
    for batch in batches:
        policy.score(batch, images).logprobs.sum().backward()
    none = torch.zeros(1)  # without images, the vision tower has no gradient
    return [none if one.grad is None else one.grad.clone() for one in model.parameters()]


def test_batch_has_the_gradient_of_its_segments(fresh: Any, talk: Any) -> None:
    """Check that padding, a shared image, and the position in the batch change nothing."""
    images = [talk.picture(1), talk.picture(2, 96, 64)]
    segments = [
        segment_of(fresh, talk, "<think>a much longer turn than the others</think>", images[0]),
        segment_of(fresh, talk, "<think>b", *images),
        segment_of(fresh, talk, "<think>c"),
    ]
    together = gradients(fresh, [segments], by_hash(*images))
    one_by_one = gradients(fresh, [[segment] for segment in segments], by_hash(*images))
    for one, other in zip(together, one_by_one, strict=True):
        scale = float(other.abs().max()) + 1e-6
        assert float((one - other).abs().max()) < 2e-5 * scale + 1e-6


def test_vision_tower_learns(fresh: Any, talk: Any) -> None:
    image = talk.picture(1)
    gradients(fresh, [[segment_of(fresh, talk, "<think>x", image)]], by_hash(image))
    gradient = fresh.network.model.model.visual.patch_embed.proj.weight.grad
    assert float(gradient.abs().max()) > 0


def test_distinct_images_go_through_the_vision_tower_once(
    qwen3: Any, talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    original = qwen3.network.vision.look

    def spy(images: Any, **options: Any) -> Any:
        looked.append(len(images))
        return original(images, **options)

    monkeypatch.setattr(qwen3.network.vision, "look", spy)
    image, other = talk.picture(1), talk.picture(2)
    segments = [
        segment_of(qwen3, talk, "<think>x", image, shown) for shown in (image, other, image)
    ]
    qwen3.score(segments, by_hash(image, other))
    assert looked == [2]


@pytest.mark.component("outlines-core")
def test_chunks_of_the_vocabulary_change_nothing(
    fresh: Any, talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ("some words", "bound", "others")
    segments = [segment_of(fresh, talk, f"<think>{each}") for each in said]
    (span,) = segments[1].turns
    bound = (span._replace(regex="(<think>)?[a-z]{5}"),)
    segments[1] = replace(segments[1], turns=bound)
    whole = fresh.score(segments, {})
    (end,) = whole.logprobs[1][span.end - 1 : span.end].tolist()
    assert end == 0  # after five letters, only the end is allowed
    gradient = gradients(fresh, [segments], {})
    monkeypatch.setattr(head_module, "CHUNK", 3 * 4 * fresh.codec.banned.size)
    cut = fresh.score(segments, {})
    torch.testing.assert_close(cut.logprobs, whole.logprobs)
    torch.testing.assert_close(cut.entropy, whole.entropy)
    for one, other in zip(gradients(fresh, [segments], {}), gradient, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_segments_of_another_image_processor_are_refused(qwen3: Any, talk: Any) -> None:
    segment = replace(segment_of(qwen3, talk, "<think>x"), processor="another")
    with pytest.raises(PolicyError, match="image processor another"):
        qwen3.score([segment], {})


def test_missing_image_is_named(qwen3: Any, talk: Any) -> None:
    image = talk.picture(1)
    segment = segment_of(qwen3, talk, "<think>x", image)
    with pytest.raises(PolicyError, match=image.sha256):
        qwen3.score([segment], {})


def test_checkpointing_makes_each_layer_again_in_training_alone(
    qwen3_folder: Path, talk: Any
) -> None:
    policy = package.TransformersPolicy(qwen3_folder, threads=1, gradient_checkpointing=True)
    segment = segment_of(policy, talk, "<think>x")
    runs: list[int] = []
    for layer in policy.network.model.model.language_model.layers:
        layer.self_attn.register_forward_hook(lambda *_: runs.append(1))
    for training, expected in ((True, 2), (False, 1)):
        policy.train_mode(training)
        runs.clear()
        policy.score([segment], {}).logprobs.sum().backward()
        assert len(runs) == 3 * expected  # 3 layers


def test_policy_in_training_still_samples_with_its_memory(
    qwen3_folder: Path, qwen3: Any, talk: Any
) -> None:
    """Check that sampling disables checkpointing, with which layers store no keys and values."""
    policy = package.TransformersPolicy(qwen3_folder, threads=1, gradient_checkpointing=True)
    turns = [talk.shown("a", talk.picture(1)), talk.shown("b")]
    policy.train_mode(True)
    session, _ = talk.alone(policy, 0, turns)
    expected, _ = talk.alone(qwen3, 0, turns)
    (one,), (other,) = session.segments(), expected.segments()
    assert one.token_ids.tolist() == other.token_ids.tolist()
