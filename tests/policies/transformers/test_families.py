"""Tests models without a family of their own: tokens, sampling, scores, gradients, checkpoints."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from visenv.errors import ConfigurationError, ImageError, PolicyError
from visenv.policy import BatchBudget
from visenv.types import Image, Message, Sampling, Segment, TurnRequest, Visual

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")
pytest.importorskip("torchvision")

from tests.policies.transformers import families
from tests.policies.transformers.test_trees import segment as segment_of
from visenv.policies.transformers import TransformersPolicy, padded
from visenv.policies.vllm import settings

if TYPE_CHECKING:
    from visenv.policies.transformers import TokenSession

pytestmark = [
    pytest.mark.component("torch", "transformers"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:__array_wrap__:DeprecationWarning"),  # InternVL's processor
]

TILED_ALONE = "llava_onevision"
"""This processor tiles an image only if it is the only one, so one call for all is no reference."""


@pytest.fixture(scope="module", params=[*families.FAMILIES])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return families.build(name, tmp_path_factory.mktemp(name))


@pytest.fixture(scope="module")
def model(folder: Path) -> TransformersPolicy:
    return TransformersPolicy(folder, threads=1)


@pytest.fixture(scope="module")
def held(model: TransformersPolicy, talk: Any) -> list[TokenSession]:
    """Return two conversations that were sampled together, with 3 turns and 3 images, and 1."""
    pictures = [talk.picture(1, 100, 80), talk.picture(2, 60, 90), talk.picture(3, 84, 84)]
    turns = [
        [Message("system", ("Answer.",)), Message("user", ("Look: ", pictures[0], " what?"))],
        [Message("user", ("result: ", pictures[1], pictures[2]))],
        [Message("user", ("now",))],
    ]
    other = [[Message("user", ("a", talk.picture(4, 40, 120)))]]
    both = talk.together([talk.converse(model, 0, turns), talk.converse(model, 1, other)])
    return [session for session, _ in both]


def shown_in(sessions: list[TokenSession]) -> dict[str, Visual]:
    return {image.sha256: image for session in sessions for image in session.stream.images}


def plain_scores(
    stock: Any, policy: TransformersPolicy, segment: Segment, images: Mapping[str, Visual]
) -> Any:
    """Return log-probabilities of the sampled tokens by one forward pass of the stock model.

    The processor is called once with all images, where that gives the same tokens.
    """
    codec = policy.codec
    processor = codec.processor
    text = str(processor.tokenizer.convert_ids_to_tokens(codec.image_id))
    items = [images[span.sha256] for span in segment.images]
    pixels = [item.pixels.copy() for item in items if isinstance(item, Image)]
    calls = [[each] for each in pixels] if codec.family.name == TILED_ALONE else [pixels]
    made = [processor(text=[text * len(call)], images=call, return_tensors="pt") for call in calls]
    names = ("pixel_values", "image_sizes", "batch_num_images", "pixel_attention_mask")
    given = {name: torch.cat([each[name] for each in made]) for name in names if name in made[0]}
    ids = torch.from_numpy(segment.token_ids).long()[None]
    if codec.family.name == "gemma3":
        given["token_type_ids"] = (ids == stock.config.image_token_id).long()
    given = {
        name: value.to(stock.dtype) if value.is_floating_point() else value
        for name, value in given.items()
    }
    logits = stock(input_ids=ids, use_cache=False, **given).logits[0]
    logits = logits.masked_fill(torch.from_numpy(codec.banned), -torch.inf)
    at = torch.from_numpy(np.flatnonzero(segment.loss_mask))
    return logits.log_softmax(-1)[at - 1, ids[0, at]]


def loaded(folder: Path, dtype: Any) -> Any:
    return transformers.AutoModelForImageTextToText.from_pretrained(folder).to(dtype).eval()


def test_first_tokens_are_those_of_the_processor(model: Any, held: list[TokenSession]) -> None:
    processor = model.codec.processor
    conversation = [
        {"role": "system", "content": [{"type": "text", "text": "Answer."}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look: "},
                {"type": "image"},
                {"type": "text", "text": " what?"},
            ],
        },
    ]
    text = processor.apply_chat_template(conversation, add_generation_prompt=True)
    picture = held[0].stream.images[0]
    given = processor(
        text=[text], images=[picture.pixels.copy()], add_special_tokens=False, return_tensors="pt"
    )
    (segment,) = held[0].segments()
    prefill = model.codec.vocabulary.encode("<think>")
    expected = [*given["input_ids"][0].tolist(), *prefill]
    assert segment.token_ids[: segment.turns[0].start].tolist() == expected


def test_sampled_and_padded_scores_are_those_of_a_plain_forward_pass(
    model: Any, folder: Path, held: list[TokenSession]
) -> None:
    """Check a batch of two rows, padded on the left in sampling and on the right in scoring."""
    images = shown_in(held)
    segments = [session.segments()[0] for session in held]
    assert [len(segment.images) for segment in segments] == [3, 1]
    stock = loaded(folder, torch.float32)
    with torch.no_grad():
        scores = model.score(segments, images)
        for row, segment in enumerate(segments):
            expected = plain_scores(stock, model, segment, images).numpy()
            mask = segment.loss_mask
            found = scores.logprobs[row, : len(segment)].numpy()[mask]
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
            np.testing.assert_allclose(segment.logprobs[mask], expected, rtol=0, atol=1e-5)


def test_placeholders_are_in_runs(name: str, held: list[TokenSession]) -> None:
    (segment,) = held[0].segments()
    runs = [len(span.runs) for span in segment.images]
    assert runs == ([5] * 3 if name == "idefics3" else [1] * 3)


def test_gradient_is_that_of_a_plain_forward_pass(
    model: Any, folder: Path, held: list[TokenSession]
) -> None:
    """Check all weights in float64; norms of these families round to float32 in between."""
    images = shown_in(held)
    segments = [session.segments()[0] for session in held]
    policy = TransformersPolicy(folder, threads=1)
    policy.network.model.to(torch.float64)
    stock = loaded(folder, torch.float64)
    policy.score(segments, images).logprobs.sum().backward()
    sum(plain_scores(stock, model, each, images).sum() for each in segments).backward()
    expected = {name: weight.grad for name, weight in stock.named_parameters()}
    tower = {id(weight) for weight in policy.codec.family.vision(policy.network.model)}
    largest = max(float(grad.abs().max()) for grad in expected.values() if grad is not None)
    read = 0.0
    for weight_name, weight in policy.network.model.named_parameters():
        grad = expected[weight_name]
        if grad is None:
            assert weight.grad is None or not weight.grad.any()
            continue
        torch.testing.assert_close(weight.grad, grad, rtol=0, atol=1e-6 * largest)
        read += float(grad.abs().sum()) * (id(weight) in tower)
    assert read > 0


def test_other_pixels_change_the_scores(model: Any, held: list[TokenSession]) -> None:
    """Check that another image of the same size, under the same hash, gives other scores."""
    (segment,) = held[0].segments()
    images = shown_in(held)
    with torch.no_grad():
        before = model.score([segment], images).logprobs
        other = copy.copy(model.codec.family)
        other._known = type(other._known)(2**30, getsizeof=lambda made: made.nbytes)
        for sha256, image in images.items():
            assert isinstance(image, Image)
            turned = Image.from_pixels(255 - image.pixels)
            other._known[sha256] = other._process(turned)
        codec = copy.copy(model.codec)
        codec.family = other
        network = padded.PaddedModel(model.network.model, codec)
        batch = padded.pad(network, codec, [segment], images)
        after = padded.PaddedScoring(network)(batch).logprobs
    assert (after - before).abs().max() > 1e-3


def test_turns_do_not_depend_on_companions(model: Any, talk: Any, held: list[TokenSession]) -> None:
    alone, _ = talk.alone(model, 1, [[Message("user", ("a", talk.picture(4, 40, 120)))]])
    assert alone.stream.token_ids == held[1].stream.token_ids


def test_stop_strings_and_expressions_end_turns(model: Any, talk: Any) -> None:
    asked = [[Message("user", ("a",))]]
    _, (reply,) = talk.alone(model, 0, asked, TurnRequest(regex="ab{3}"), Sampling(1.0, 12))
    assert reply.text == "abbb"
    assert reply.finish_reason == "stop"
    request = TurnRequest(regex="[ab]+", stop=("a",))
    _, (reply,) = talk.alone(model, 0, asked, request, Sampling(1.0, 64))
    assert reply.text.strip("b") == "a"
    _, (greedy,) = talk.alone(model, 0, asked, TurnRequest(), Sampling(0.0, 5))
    _, (again,) = talk.alone(model, 7, asked, TurnRequest(), Sampling(0.0, 5))
    assert greedy.token_ids.tolist() == again.token_ids.tolist()


@pytest.fixture
def trained(folder: Path, held: list[TokenSession]) -> Callable[..., TransformersPolicy]:
    """Return a function that makes a policy with options, and takes the gradient of a loss."""

    def make(**options: Any) -> TransformersPolicy:
        policy = TransformersPolicy(folder, threads=1, **options)
        policy.train_mode(True)
        segments = [session.segments()[0] for session in held]
        policy.score(segments, shown_in(held)).logprobs.sum().backward()
        return policy

    return make


def gradients(policy: TransformersPolicy) -> dict[str, Any]:
    named = policy.network.model.named_parameters()
    return {name: weight.grad for name, weight in named if weight.grad is not None}


def test_frozen_vision_has_no_gradient(trained: Any) -> None:
    policy = trained(freeze_vision=True)
    tower = {id(weight) for weight in policy.codec.family.vision(policy.network.model)}
    assert tower
    for weight in policy.network.model.parameters():
        assert weight.requires_grad is (id(weight) not in tower)
        assert (weight.grad is None) or id(weight) not in tower


def test_gradient_checkpointing_gives_the_same_gradient(trained: Any) -> None:
    plain, checkpointed = gradients(trained()), gradients(trained(gradient_checkpointing=True))
    assert plain.keys() == checkpointed.keys()
    for key, grad in plain.items():
        torch.testing.assert_close(checkpointed[key], grad, rtol=1e-4, atol=1e-5)


def test_adapters_are_in_the_language_model(trained: Any, tmp_path: Path) -> None:
    policy = trained(lora={"rank": 2})
    named = gradients(policy)
    assert named
    assert all(".lora_" in key for key in named)
    language = {id(weight) for weight in policy.network.model.get_decoder().parameters()}
    weights = dict(policy.network.model.named_parameters())
    assert all(id(weights[key]) in language for key in named)
    policy.save(tmp_path / "saved")
    assert TransformersPolicy(tmp_path / "saved", threads=1).codec.family.name


def test_saved_checkpoint_gives_the_same_scores(
    folder: Path, held: list[TokenSession], tmp_path: Path
) -> None:
    policy = TransformersPolicy(folder, threads=1)
    with torch.no_grad():
        for weight in policy.network.model.parameters():
            weight.mul_(1.01)
    policy.save(tmp_path / "saved")
    images = shown_in(held)
    (segment,) = held[0].segments()
    again = TransformersPolicy(tmp_path / "saved", threads=1)
    with torch.no_grad():
        expected = policy.score([segment], images).logprobs
        torch.testing.assert_close(again.score([segment], images).logprobs, expected)
        stock = loaded(tmp_path / "saved", torch.float32)
        found = plain_scores(stock, again, segment, images)
    mask = torch.from_numpy(segment.loss_mask)
    torch.testing.assert_close(found, expected[0][mask], rtol=0, atol=1e-5)


# --------------------------------------------------------------------------------------- refusals


def test_options_without_effect_are_refused_by_name(folder: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name}.* is another type of model"):
        TransformersPolicy(folder, max_pixels=1000)
    with pytest.raises(PolicyError, match=f"{name}.* as frames"):
        TransformersPolicy(folder, video="native")
    with pytest.raises(PolicyError, match=f"'{name}' are not sampled with vLLM"):
        settings.EngineSettings(folder).codec()


def test_image_that_the_processor_refuses_fails_its_own_episode(
    model: Any, talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ValueError("too thin")

    monkeypatch.setattr(model.codec.family, "_processor", refuse)
    with pytest.raises(ImageError, match=r"refused by the processor of the .* model: too thin"):
        model.codec.family.check([talk.picture(99, 8, 8)])


# ------------------------------------------------------------------------------------------ parts


def test_rows_are_split_by_padded_tokens() -> None:
    """Check lengths 3, 9, 4, 8 with a budget of 18: 9 + 8 padded to 18, and 4 + 3 padded to 8."""
    segments = [segment_of([1] * length) for length in (3, 9, 4, 8)]
    assert padded.split_rows(segments, BatchBudget(18)) == [[1, 3], [2, 0]]
    assert padded.split_rows(segments, BatchBudget(17)) == [[1], [3, 2], [0]]
    assert padded.split_rows(segments, BatchBudget(1)) == [[1], [3], [2], [0]]


def test_rows_are_split_by_patches() -> None:
    """Check three images of 4 patches each with a budget of 8 patches."""
    segments = [segment_of([99, 1], [(0, f"image {k}", 1)]) for k in range(3)]
    assert padded.split_rows(segments, BatchBudget(100, 8)) == [[0, 1], [2]]
