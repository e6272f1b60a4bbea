"""Tests models without a family of their own: tokens, sampling, scores, gradients, checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.environments import few
from visenv.errors import ConfigurationError, ImageError
from visenv.policy import BatchBudget
from visenv.types import Message, Sampling, TurnRequest

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")
pytest.importorskip("torchvision")

from tests.policies.transformers import families
from tests.policies.transformers.test_trees import segment as segment_of
from tests.policies.transformers.tiny_families import proof
from visenv.policies.transformers import TransformersPolicy, padded

if TYPE_CHECKING:
    from visenv.policies.transformers import TokenSession

pytestmark = [
    pytest.mark.component("torch", "transformers", "trl"),  # TRL contains chat templates
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:__array_wrap__:DeprecationWarning"),  # InternVL's processor
    pytest.mark.filterwarnings("ignore:__array__ impl:DeprecationWarning"),  # that of GLM-4.6V
]

RUNS = {"idefics3": [5, 5, 5], "smolvlm": [5, 5, 5], "mistral3": [3, 4, 3]}
"""Runs of placeholders of the three images; the others have one run for each image."""

FIRST = ("idefics3", "gemma3", "qwen3_5")
"""Families that cut images into tiles, resize them to one size, and read grids of any size."""


@pytest.fixture(
    scope="module",
    params=few([*FIRST, *(name for name in families.FAMILIES if name not in FIRST)], len(FIRST)),
)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def model(folder: Path) -> TransformersPolicy:
    return TransformersPolicy(folder, threads=1)


@pytest.fixture(scope="module")
def held(model: TransformersPolicy) -> list[TokenSession]:
    return proof.converse(model)


def test_first_tokens_are_those_of_the_processor(model: Any, held: list[TokenSession]) -> None:
    found, expected = proof.first_tokens(model, held[0])
    assert found == expected


def test_sampled_and_padded_scores_are_those_of_a_plain_forward_pass(
    model: Any, folder: Path, held: list[TokenSession]
) -> None:
    """Check a batch of two rows, padded on the left in sampling and on the right in scoring."""
    segments = proof.segments_of(held)
    assert [len(segment.images) for segment in segments] == [3, 1]
    assert len(segments[0]) != len(segments[1])
    assert max(proof.score_differences(model, folder, held)) <= 1e-5


def test_placeholders_are_in_runs(name: str, held: list[TokenSession]) -> None:
    (segment,) = held[0].segments()
    runs = [len(span.runs) for span in segment.images]
    assert runs == RUNS.get(name, [1, 1, 1])


def test_gradient_is_that_of_a_plain_forward_pass(
    model: Any, folder: Path, held: list[TokenSession]
) -> None:
    """Check all weights in float64; norms of these families round to float32 in between."""
    found = proof.gradient_difference(model, folder, held)
    assert found.largest <= 1e-6
    assert found.vision > 0


def test_other_pixels_change_the_scores(model: Any, held: list[TokenSession]) -> None:
    assert proof.pixel_change(model, held) > 1e-3


def test_backend_of_the_processor_changes_the_scores(
    name: str, folder: Path, held: list[TokenSession]
) -> None:
    """Check torchvision against PIL, which resize differently: fingerprints contain the backend."""
    if name == "lfm2_vl":
        pytest.skip("transformers has no processor of this type with PIL")
    policy: Any = TransformersPolicy(folder, threads=1)
    codec = policy.codec
    segments, images = proof.segments_of(held), proof.shown_in(held)
    scores = []
    for backend in ("Processor", "ProcessorPil"):
        own = codec.processor.image_processor
        kind = getattr(transformers, type(own).__name__.replace("Processor", backend))
        settings = {key: value for key, value in own.to_dict().items() if not key.endswith("_type")}
        codec.processor.image_processor = kind(**settings)
        codec.family._known.clear()
        fingerprint = codec.family.fingerprint(with_videos=False)
        given = [replace(segment, processor=fingerprint) for segment in segments]
        with torch.no_grad():
            scores.append(policy.score(given, images).logprobs)
    assert 1e-4 < (scores[1] - scores[0]).abs().max() < 1


def test_turns_do_not_depend_on_companions(model: Any, talk: Any, held: list[TokenSession]) -> None:
    alone, _ = talk.alone(model, 1, [[Message("user", ("a", talk.picture(4, 40, 120)))]])
    assert alone.stream.token_ids == held[1].stream.token_ids


def test_prompt_of_a_group_is_read_once(
    model: Any, folder: Path, talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check two groups of three and two members, in any order, with turns of several lengths."""
    read: list[int] = []
    generate = model.network.model.generate

    def recorded(**given: Any) -> Any:
        read.append(len(given["input_ids"]))
        return generate(**given)

    monkeypatch.setattr(model.network.model, "generate", recorded)
    prompts = [talk.shown(text, talk.picture(7, *size)) for text, size in
               (("what?", (100, 80)), ("and where is it?", (56, 90)))]  # fmt: skip
    order = [0, 1, 0, 0, 1]
    ask = TurnRequest(model.codec.template.opening, stop=("e", "t"))
    sessions, replies = zip(*talk.together(
        [talk.converse(model, seed, [prompts[which]], ask) for seed, which in enumerate(order)]
    ), strict=True)  # fmt: skip
    assert read[0] == 2
    assert len({reply.text for (reply,) in replies}) > 2
    assert proof.score_differences(model, folder, sessions).sampled <= 1e-5


def test_stop_strings_and_expressions_end_turns(model: Any, talk: Any) -> None:
    asked = [[Message("user", ("a",))]]
    start = model.codec.template.opening  # an expression would exclude it
    request = TurnRequest(start, regex="ab{3}")
    _, (reply,) = talk.alone(model, 0, asked, request, Sampling(1.0, 12))
    assert reply.text == start + "abbb"
    assert reply.finish_reason == "stop"
    request = TurnRequest(start, regex="[ab]+", stop=("a",))
    _, (reply,) = talk.alone(model, 0, asked, request, Sampling(1.0, 64))
    assert reply.text.removeprefix(start).strip("b") == "a"
    _, (greedy,) = talk.alone(model, 0, asked, TurnRequest(), Sampling(0.0, 5))
    _, (again,) = talk.alone(model, 7, asked, TurnRequest(), Sampling(0.0, 5))
    assert greedy.token_ids.tolist() == again.token_ids.tolist()


@pytest.fixture
def trained(folder: Path, held: list[TokenSession]) -> Callable[..., TransformersPolicy]:
    """Return a function that makes a policy with options, and takes the gradient of a loss."""

    def make(**options: Any) -> TransformersPolicy:
        policy = TransformersPolicy(folder, threads=1, **options)
        policy.train_mode(True)
        segments = proof.segments_of(held)
        policy.score(segments, proof.shown_in(held)).logprobs.sum().backward()
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
    images = proof.shown_in(held)
    (segment,) = held[0].segments()
    again = TransformersPolicy(tmp_path / "saved", threads=1)
    with torch.no_grad():
        expected = policy.score([segment], images).logprobs
        torch.testing.assert_close(again.score([segment], images).logprobs, expected)
        stock = proof.loaded(tmp_path / "saved", torch.float32)
        found = proof.plain_scores(stock, again, segment, images)
    mask = torch.from_numpy(segment.loss_mask)
    torch.testing.assert_close(found, expected[0][mask], rtol=0, atol=1e-5)


def test_inputs_kept_are_bounded_in_bytes(model: Any, folder: Path, talk: Any) -> None:
    image = talk.picture(0, 64, 64)
    small = TransformersPolicy(folder, threads=1, vision_cache=64)
    family: Any
    for family, kept in ((model.codec.family, True), (small.codec.family, False)):
        first, second = (family._process(image) for _ in range(2))
        assert (first is second) == kept


# --------------------------------------------------------------------------------------- refusals


def test_options_without_effect_are_refused_by_name(folder: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name}.* is another type of model"):
        TransformersPolicy(folder, max_pixels=1000)


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
