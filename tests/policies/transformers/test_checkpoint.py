"""Tests building, saving, loading and copying of checkpoints."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tiny_models import tiny_model
from visenv.errors import ConfigurationError, PolicyError, RunError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from visenv.policies import transformers as package
from visenv.policies.tokens.qwen_vl import require_qwen_vl

pytestmark = pytest.mark.component("torch", "transformers")


def state(policy: Any) -> dict[str, Any]:
    found: dict[str, Any] = policy.network.model.state_dict()
    return found


def test_tiny_model_is_seeded(qwen3_folder: Path, tmp_path: Path) -> None:
    tiny_model(tmp_path / "again", patch_size=8, view_side=64)
    tiny_model(tmp_path / "other", patch_size=8, view_side=64, seed=1)
    for file in ("model.safetensors", "tokenizer.json", "processor_config.json"):
        assert (tmp_path / "again" / file).read_bytes() == (qwen3_folder / file).read_bytes()
    other = (tmp_path / "other" / "model.safetensors").read_bytes()
    assert other != (qwen3_folder / "model.safetensors").read_bytes()


def test_tiny_model_is_tiny_and_initialized_to_learn(qwen3: Any) -> None:
    parameters = sum(parameter.numel() for parameter in qwen3.parameters())
    assert 1.2e6 < parameters < 1.4e6
    visual = qwen3.network.model.model.visual
    assert float(visual.pos_embed.weight.detach().std()) == pytest.approx(0.5, rel=0.05)
    assert float(visual.blocks[0].attn.qkv.weight.detach().std()) == pytest.approx(0.05, rel=0.05)


def test_default_view_is_a_complete_grid_of_tokens() -> None:
    """Check that the view is a grid of whole 2 x 2 blocks of patches.

    The model has one learned position for each patch of the view.
    """
    config = package.TinyConfig()
    assert config.view_side % (2 * config.patch_size) == 0


def test_vocabulary_encodes_the_words_of_the_tasks_in_few_tokens(qwen3: Any) -> None:
    encode = qwen3.codec.vocabulary.encode
    assert len(encode("57")) == 2  # one token per digit, as in Qwen
    for word in (" colour", " stripes", " sign", "magenta", "keypoint", " look", " closer"):
        assert len(encode(word)) == 1, word
    call = " look closer </think><tool>\nname: zoom\nkeypoint: [70, 85]\n</tool>"
    assert len(encode(call)) <= 22


def test_stock_transformers_loads_the_folder(qwen3_folder: Path, talk: Any) -> None:
    model = transformers.AutoModelForImageTextToText.from_pretrained(qwen3_folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(qwen3_folder)
    assert type(model).__name__ == "Qwen3VLForConditionalGeneration"
    assert tokenizer.convert_tokens_to_ids("<|image_pad|>") == model.config.image_token_id
    text = (qwen3_folder / "processor_config.json").read_text()
    assert '"processor_class": "Qwen3VLProcessor"' in text
    assert '"video_processor_type": "Qwen3VLVideoProcessor"' in text


def test_checkpoint_as_saved_is_read_back(fresh: Any, qwen3_folder: Path, tmp_path: Path) -> None:
    with torch.no_grad():
        for parameter in fresh.parameters():
            parameter.add_(0.25)
    fresh.save(tmp_path / "saved")
    policy = package.TransformersPolicy(qwen3_folder)
    policy.load_weights(tmp_path / "saved")
    assert policy.version == 1
    for name, weight in state(fresh).items():
        assert torch.equal(weight, state(policy)[name]), name
    again = package.TransformersPolicy(tmp_path / "saved")
    assert torch.equal(state(again)["lm_head.weight"], state(fresh)["lm_head.weight"])


def test_head_stays_tied_after_loading(fresh: Any, qwen3_folder: Path) -> None:
    fresh.load_weights(qwen3_folder)
    model = fresh.network.model
    assert model.lm_head.weight is model.model.language_model.embed_tokens.weight


def test_checkpoint_of_another_model_is_refused(fresh: Any, qwen2_5_folder: Path) -> None:
    before = {name: weight.clone() for name, weight in state(fresh).items()}
    with pytest.raises(RunError, match=r"a qwen2_5_vl of .* this policy is a qwen3_vl of"):
        fresh.load_weights(qwen2_5_folder)
    assert fresh.version == 0
    assert all(torch.equal(weight, before[name]) for name, weight in state(fresh).items())


def test_smaller_model_of_the_same_type_is_refused(fresh: Any, tmp_path: Path) -> None:
    tiny_model(tmp_path, layers=2)
    with pytest.raises(RunError, match=r"2 layers.*3 layers"):
        fresh.load_weights(tmp_path)


@pytest.mark.parametrize("make", [lambda folder: folder, lambda folder: folder / "missing"])
def test_folder_without_a_model_is_refused(fresh: Any, tmp_path: Path, make: Any) -> None:
    with pytest.raises(RunError, match="There is no model to load"):
        fresh.load_weights(make(tmp_path))
    with pytest.raises(RunError, match="There is no model to load"):
        package.TransformersPolicy(make(tmp_path))


def test_frozen_copy_keeps_its_weights(fresh: Any, talk: Any) -> None:
    image = talk.picture(1)
    session, _ = talk.alone(fresh, 0, [talk.shown("a", image)])
    (segment,) = session.segments()
    frozen = fresh.copy_frozen()
    assert not list(frozen.parameters())
    assert frozen.version == 0
    with torch.no_grad():
        for parameter in fresh.parameters():
            parameter.mul_(1.2)
    fresh.updated()
    images = {image.sha256: image}
    kept = frozen.score([segment], images).logprobs
    assert not kept.requires_grad
    np.testing.assert_allclose(kept[0], segment.logprobs, rtol=0, atol=1e-5)
    moved = fresh.score([segment], images).logprobs[0].detach().numpy()
    assert np.abs(moved - segment.logprobs).max() > 1e-2
    _, (reply,) = talk.alone(frozen, 0, [talk.shown("a", image)])
    assert reply.token_ids.tolist() == segment.token_ids[segment.loss_mask].tolist()


def test_options_that_cannot_be_are_refused(qwen3_folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="dtype must be"):
        package.TransformersPolicy(qwen3_folder, dtype="int8")
    with pytest.raises(ConfigurationError, match="min_pixels 5000 exceeds max_pixels 4000"):
        package.TransformersPolicy(qwen3_folder, min_pixels=5000, max_pixels=4000)


def test_pixel_budget_bounds_an_image(qwen3_folder: Path, talk: Any) -> None:
    policy = package.TransformersPolicy(qwen3_folder, max_pixels=32 * 32)
    (patches,) = require_qwen_vl(policy.codec.family).images.encode([talk.picture(1, 256, 256)])
    assert patches.grid == (1, 4, 4)  # 32 px per side in patches of 8 px


def test_unknown_architecture_is_named() -> None:
    from visenv.policies.tokens.processor import processor_class

    with pytest.raises(PolicyError, match=r"'llama' are not supported; known are.*qwen3_vl"):
        processor_class("llama")


def test_bfloat16_plays(qwen3_folder: Path, talk: Any) -> None:
    policy = package.TransformersPolicy(qwen3_folder, dtype="bfloat16")
    turns = [talk.shown("a", talk.picture(1)), talk.shown("b")]
    session, replies = talk.alone(policy, 0, turns)
    assert all(reply.text for reply in replies)
    (segment,) = session.segments()
    assert (segment.logprobs[segment.loss_mask] < 0).all()


def test_model_without_vision_is_refused_at_the_start(tmp_path: Path) -> None:
    config = transformers.Qwen3Config(
        vocab_size=64, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, head_dim=4, pad_token_id=0,
    )  # fmt: skip
    transformers.Qwen3ForCausalLM(config).save_pretrained(tmp_path)
    with pytest.raises(PolicyError, match="is a qwen3 model, which has no vision tower"):
        package.TransformersPolicy(tmp_path)


def test_model_of_another_architecture_is_refused_at_the_start(tmp_path: Path) -> None:
    transformers.CLIPConfig().save_pretrained(tmp_path)
    with pytest.raises(PolicyError, match="is a clip model, which writes no text about images"):
        package.TransformersPolicy(tmp_path)


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("<|image_pad|>", r"no special token '<\|image_pad\|>' for images"),
        ("<|vision_start|>", r"The chat template writes '<\|vision_start\|>', which is not"),
    ],
)
def test_tokenizer_without_the_special_tokens_is_refused_at_the_start(
    qwen3_folder: Path, tmp_path: Path, token: str, why: str
) -> None:
    shutil.copytree(qwen3_folder, tmp_path / "model")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        file = tmp_path / "model" / name
        told = json.loads(file.read_text())
        if "added_tokens" in told:
            told["added_tokens"] = [one for one in told["added_tokens"] if one["content"] != token]
        told.pop("extra_special_tokens", None)
        file.write_text(json.dumps(told))
    with pytest.raises(PolicyError, match=why):
        package.TransformersPolicy(tmp_path / "model")
