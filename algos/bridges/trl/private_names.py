"""The private names of TRL and transformers that the bridge to TRL uses."""

from __future__ import annotations

from typing import Final

from visenv.private_names import PrivateName

_TRAINER = "trl.trainer.grpo_trainer:GRPOTrainer"

TRAINER_NAMES: Final = (
    PrivateName(
        f"{_TRAINER}._generate_and_score_completions",
        "overrides it, to play episodes before TRL scores them",
        parameters=("inputs",),
    ),
    PrivateName(
        f"{_TRAINER}._generate",
        "overrides it, to return episodes in the shape of TRL's own generation",
        parameters=("prompts",),
    ),
    PrivateName(f"{_TRAINER}._log_metric", "logs with it", parameters=("name", "value")),
    PrivateName(f"{_TRAINER}.tools", "sets it, so that TRL reads images which tools returned"),
    PrivateName(f"{_TRAINER}.use_vllm", "sets it, so that TRL corrects for a sampling engine"),
    PrivateName(f"{_TRAINER}.ref_model", "bans tokens in it"),
    PrivateName(f"{_TRAINER}.num_generations", "reads the size of a group from it"),
    PrivateName(f"{_TRAINER}.num_generations_eval", "reads the size of a group from it"),
    PrivateName(
        "trl.models.utils:unwrap_model_for_generation",
        "gathers the weights for sampling with it",
        parameters=("gather_deepspeed3_params", "gradient_checkpointing_kwargs"),
    ),
    PrivateName(
        "transformers:PreTrainedConfig._attn_implementation",
        "reads which attention the policy uses from it",
    ),
)
"""Checked by `VisenvGRPOTrainer`."""
