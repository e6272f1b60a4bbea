"""Lists the private names of verl that the bridge to verl uses."""

from __future__ import annotations

from typing import Final

from visenv.private_names import PrivateName, members

_LOOP = "verl.experimental.agent_loop.agent_loop:"
_ROLLOUT = "verl.workers.rollout."

LOOP_NAMES: Final = (
    PrivateName(_LOOP + "AgentLoopBase.run", "overrides it, to play an episode"),
    *members(
        _LOOP + "AgentLoopBase.",
        "plays with it",
        *("rollout_config", "server_manager", "tokenizer", "processor"),
    ),
    PrivateName(
        _LOOP + "AgentLoopOutput",
        "returns episodes in it",
        parameters=(
            *("prompt_ids", "response_ids", "response_mask", "response_logprobs", "metrics"),
            *("multi_modal_data", "reward_score", "num_turns", "extra_fields"),
        ),
    ),
    PrivateName(
        _LOOP + "AgentLoopMetrics", "returns times in it", ("generate_sequences", "tool_calls")
    ),
    PrivateName(
        _ROLLOUT + "llm_server:LLMServerClient.generate",
        "samples with it",
        parameters=("request_id", "prompt_ids", "sampling_params", "image_data"),
    ),
    PrivateName(
        _ROLLOUT + "replica:TokenOutput",
        "reads sampled tokens from it",
        parameters=("token_ids", "log_probs", "stop_reason", "extra_fields"),
    ),
)
"""Names that are checked before `VisenvAgentLoop` is defined as a subclass of verl's class."""
