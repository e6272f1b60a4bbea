"""Lists the private names of TRL and transformers that the bridge to TRL uses."""

from __future__ import annotations

from typing import Final

from visenv.private_names import PrivateName, members

_TRAINER = "trl.trainer.grpo_trainer:GRPOTrainer."
_PLAYS = "overrides it, to play episodes in place of TRL's own generation"

TRAINER_NAMES: Final = (
    PrivateName(_TRAINER + "_generate_and_score_completions", _PLAYS, parameters=("inputs",)),
    PrivateName(_TRAINER + "_generate", _PLAYS, parameters=("prompts",)),
    PrivateName(_TRAINER + "_log_metric", "logs with it", parameters=("name", "value")),
    PrivateName(_TRAINER + "tools", "sets it, so that TRL reads images which tools returned"),
    PrivateName(_TRAINER + "use_vllm", "sets it, so that TRL corrects for a sampling engine"),
    PrivateName(_TRAINER + "ref_model", "bans tokens in it"),
    *members(_TRAINER, "reads the group size", "num_generations", "num_generations_eval"),
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
"""Names that `VisenvGRPOTrainer` checks."""
