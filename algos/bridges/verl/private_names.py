"""The private names of verl that the bridge to verl uses."""

from __future__ import annotations

from typing import Final

from visenv.private_names import PrivateName

_LOOP = "verl.experimental.agent_loop.agent_loop"

LOOP_NAMES: Final = (
    PrivateName(f"{_LOOP}:AgentLoopBase.run", "overrides it, to play an episode"),
    PrivateName(f"{_LOOP}:AgentLoopBase.rollout_config", "reads the length of rows from it"),
    PrivateName(f"{_LOOP}:AgentLoopBase.server_manager", "samples with it"),
    PrivateName(f"{_LOOP}:AgentLoopBase.tokenizer", "reads the name of the model from it"),
    PrivateName(f"{_LOOP}:AgentLoopBase.processor", "compares its image processor with its own"),
    PrivateName(
        f"{_LOOP}:AgentLoopOutput",
        "returns episodes in it",
        parameters=(
            *("prompt_ids", "response_ids", "response_mask", "response_logprobs", "metrics"),
            *("multi_modal_data", "reward_score", "num_turns", "extra_fields"),
        ),
    ),
    PrivateName(
        f"{_LOOP}:AgentLoopMetrics",
        "returns times in it",
        parameters=("generate_sequences", "tool_calls"),
    ),
    PrivateName(
        "verl.workers.rollout.llm_server:LLMServerClient.generate",
        "samples with it",
        parameters=("request_id", "prompt_ids", "sampling_params", "image_data"),
    ),
    PrivateName(
        "verl.workers.rollout.replica:TokenOutput",
        "reads sampled tokens from it",
        parameters=("token_ids", "log_probs", "stop_reason", "extra_fields"),
    ),
)
"""Checked before `VisenvAgentLoop` is defined, a subclass of verl's own class."""
