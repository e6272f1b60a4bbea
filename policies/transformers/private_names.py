"""Lists the private names of transformers that `TransformersPolicy` uses."""

from __future__ import annotations

from typing import Final

from visenv.private_names import PrivateName, members

_ARCHITECTURES = {
    "qwen2_5_vl": "transformers.models.qwen2_5_vl.modeling_qwen2_5_vl:Qwen2_5_VL",
    "qwen3_vl": "transformers.models.qwen3_vl.modeling_qwen3_vl:Qwen3VL",
}
_READ = ("inputs_embeds", "position_ids", "attention_mask", "past_key_values|cache", "use_cache")
_DEEPSTACK = ("visual_pos_masks", "deepstack_visual_embeds")


def _names(model_type: str, prefix: str) -> tuple[PrivateName, ...]:
    read = _READ + (_DEEPSTACK if model_type == "qwen3_vl" else ())
    return (
        *members(
            prefix,
            "runs vision, embedding and language apart",
            *("Model.visual", "Model.language_model", "TextModel.embed_tokens"),
        ),
        PrivateName(
            f"{prefix}Model.get_image_features",
            "reads each distinct image once with it",
            parameters=("pixel_values", "image_grid_thw"),
        ),
        PrivateName(
            "transformers:PreTrainedConfig._attn_implementation",
            "batches the windows of the vision tower with it",
        ),
        PrivateName(f"{prefix}TextModel.forward", "passes image features to it", parameters=read),
    )


_ZERO = "deepspeed.runtime.zero.partition_parameters:Init."

SHARD_NAMES: Final = (
    *members(
        "transformers.integrations.deepspeed:",
        "has transformers load a model in shards",
        *("HfDeepSpeedConfig", "unset_hf_deepspeed_config"),
    ),
    PrivateName(_ZERO + "ds_id", "recognizes weights in shards by it"),
    PrivateName(_ZERO + "ds_numel", "tells a shard from its padding"),
    PrivateName(_ZERO + "ds_shape", "reads the shape of a weight in shards"),
    PrivateName(_ZERO + "ds_tensor", "copies and compares shards"),
)
"""Checked before a model is loaded in shards."""

MODEL_NAMES: Final = {name: _names(name, prefix) for name, prefix in _ARCHITECTURES.items()}
MODEL_NAMES["qwen3_vl"] += (
    PrivateName(
        "transformers.models.qwen3_vl.modeling_qwen3_vl"
        ":BaseModelOutputWithDeepstackFeatures.deepstack_features",
        "takes features for the first language layers from it",
    ),
)
"""Names by the type of a model, checked before a model of that type is loaded."""
