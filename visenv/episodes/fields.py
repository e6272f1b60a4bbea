"""Defines the fields of a saved episode, and their types."""

from __future__ import annotations

from types import UnionType
from typing import Any

FORMAT = 3
"""The format number in every line. Format 1 had neither the environment's spec nor typed failures.

Format 2 had one run of placeholders and a grid of patches for each image. The first files of format
2 lack the fields of `ADDED`, which then have their default values.
"""

READ = (2, FORMAT)
"""The formats that are read."""

WORDS = ("env_id", "sample_id", "kind", "status", "reason", "question", "env_spec")
NUMBERS = ("seed", "group", "member")
PLAIN = (*WORDS[:3], *NUMBERS, *WORDS[3:], "index")
TEXT_MAPPINGS = ("term_notes", "media")
NUMBER_MAPPINGS = ("terms", "metrics")
MAPPINGS = (*TEXT_MAPPINGS, *NUMBER_MAPPINGS)
LARGEST = 2**63 - 1
"""Maximum of `group`, `member` and `index`: other formats store them in 64 bits."""
TYPES: dict[str, type | UnionType] = {
    **dict.fromkeys(WORDS, str),
    **dict.fromkeys(NUMBERS, int),
    **dict.fromkeys(MAPPINGS, dict),
    "index": int | None,
    "failure": list | None,
    "answers": list,
}
TURN_TYPES = {"text": str, "reward": float | int, "finish_reason": str}
TIMES = ("sampling_seconds", "env_seconds")
TURN_FACTS = (*TIMES, "advantage")
ADDED: dict[str, Any] = {"term_weights": {}, "world_version": 1, **dict.fromkeys(TURN_FACTS)}
"""Fields of episodes and turns that the first files of format 2 lack, with their default values."""
ARRAYS = {"token_ids": "<i4", "loss_mask": "|b1", "logprobs": "<f4", "policy_version": "<i4"}
SETTINGS = {"temperature": float | int, "processor": str}
