"""Tests how the family of a model is found, and the inputs that a family gives a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from visenv import plugins
from visenv.errors import PolicyError

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from tests.policies.transformers import naive
from visenv.policies.tokens import families, generic, qwen_vl

if TYPE_CHECKING:
    from visenv.policies.tokens.family import ModelFamily

    _: tuple[type[ModelFamily], ...] = (qwen_vl.QwenVL, generic.GenericFamily)  # for mypy

pytestmark = pytest.mark.component("torch", "transformers")


@pytest.mark.parametrize("name", ["qwen2_5_vl", "qwen3_vl"])
def test_own_family_is_found_by_the_type_of_the_model(name: str) -> None:
    assert families.load_family(name) is qwen_vl.qwen_vl


def test_family_of_a_package_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "visenv.policies.tokens.qwen_vl:QwenVL"
    added = plugins.Plugin("model family", "owl_vl", path, "owls")
    monkeypatch.setattr(plugins, "installed", lambda kind: (added,) if "family" in kind else ())
    assert families.load_family("owl_vl") is qwen_vl.QwenVL


def test_other_types_have_the_generic_family() -> None:
    assert families.load_family("owl_vl") is generic.generic


def test_other_family_is_not_packed(policy: Any) -> None:
    assert qwen_vl.require_qwen_vl(policy.codec.family) is policy.codec.family
    other = generic.GenericFamily.__new__(generic.GenericFamily)
    other.name = "owl_vl"
    with pytest.raises(PolicyError, match="type 'owl_vl' cannot be packed"):
        qwen_vl.require_qwen_vl(other)


def test_smaller_inputs_are_padded_with_zeros() -> None:
    one, two = torch.ones(1, 2, 1), torch.ones(2, 1, 3)
    assert generic._stacked([one, two]).tolist() == [
        [[1, 0, 0], [1, 0, 0]],
        [[1, 1, 1], [0, 0, 0]],
        [[1, 1, 1], [0, 0, 0]],
    ]


def test_inputs_are_those_of_a_plain_forward_pass(policy: Any, talk: Any) -> None:
    """Check scores by the model of transformers, with inputs of the family, in one row."""
    images = [talk.picture(1, 96, 64), talk.picture(2, 64, 128)]
    turns = [talk.shown("one", images[0], images[1]), talk.shown("two", images[0])]
    session, _ = talk.alone(policy, 0, turns)
    (segment,) = session.segments()
    family = policy.codec.family
    shown = {image.sha256: image for image in images}
    token_ids = torch.from_numpy(segment.token_ids).long()[None]
    inputs = family.inputs([shown[span.sha256] for span in segment.images])
    assert len(inputs["image_grid_thw"]) == 3
    types = torch.from_numpy(family.token_types(token_ids.numpy()))
    model = policy.network.model
    with torch.no_grad():
        expected = naive.logprobs(model, policy.codec, segment, shown)
        hidden = model.model(input_ids=token_ids, mm_token_type_ids=types, **inputs)[0]
    at = torch.from_numpy(segment.loss_mask).nonzero()[:, 0]
    logits = policy.network.logits(hidden[0, at - 1], torch.ones(len(at)))
    found = logits.log_softmax(-1).gather(1, token_ids[0, at, None])[:, 0]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_frozen_parameters_are_those_of_the_vision_tower(policy: Any) -> None:
    model = policy.network.model
    own = {id(weight) for weight in policy.codec.family.vision(model)}
    named = {name for name, weight in model.named_parameters() if id(weight) in own}
    assert named == {name for name, _ in model.named_parameters() if ".visual." in name}
    assert named
