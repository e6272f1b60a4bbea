"""Builds tiny models for tests; their tokenizers are trained once in each process."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import gymnasium as gym

import visenv  # noqa: F401 - registers the environments


@cache
def tiny_texts(env: str = "visenv/ZoomVQA-v0") -> Any:
    """Return the texts of 24 episodes of each player in the tiny preset of an environment.

    Most words of a tiny preset occur in them.
    """
    from visenv.policies.transformers import collect_texts

    return collect_texts(partial(gym.make, env, preset="tiny"), 24)


def tiny_model(folder: Path, env: str = "visenv/ZoomVQA-v0", **config: Any) -> Path:
    """Build a tiny model for the tiny preset of an environment, and return its folder.

    Args:
        folder: The output folder.
        env: The environment on whose texts the tokenizer is trained.
        **config: Fields of `TinyConfig`.
    """
    from visenv.policies.transformers import TinyConfig, build_tiny

    return build_tiny(folder, tiny_texts(env), TinyConfig(**config))


def smaller_model(folder: Path, architecture: str) -> Path:
    """Build a model even smaller than the tiny one, and return its folder."""
    sizes: dict[str, Any] = {
        "hidden_size": 32, "layers": 2, "heads": 4, "head_size": 8, "mlp_size": 48,
        "vision_hidden_size": 32, "vision_layers": 2, "vision_heads": 2, "vision_mlp_size": 48,
    }  # fmt: skip
    return tiny_model(folder, architecture=architecture, patch_size=14, view_side=112, **sizes)
