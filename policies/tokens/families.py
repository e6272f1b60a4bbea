"""Looks up the family of a checkpoint by the type of its model."""

from __future__ import annotations

from typing import Any

from visenv.errors import PolicyError
from visenv.registration import known_names, load


def load_family(model_type: str) -> Any:
    """Return the function that makes the family of a checkpoint, such as `qwen_vl`.

    Args:
        model_type: The type of the model in the configuration of the checkpoint.

    Raises:
        PolicyError: If no family has this type.
        ConfigurationError: If the family of an installed package cannot be imported.
    """
    known = known_names("model family")
    if model_type not in known:
        raise PolicyError(
            f"Models of type {model_type!r} are not supported; known are {sorted(known)}."
        )
    return load("model family", model_type)
