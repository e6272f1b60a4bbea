"""Looks up the family of a checkpoint by the type of its model."""

from __future__ import annotations

from typing import Any

from visenv.registration import known_names, load

from .generic import generic


def load_family(model_type: str) -> Any:
    """Return the function that makes the family of a checkpoint, such as `qwen_vl`.

    Args:
        model_type: The type of the model in the configuration of the checkpoint. A type without a
            family of its own has the generic one.

    Raises:
        ConfigurationError: If the family of an installed package cannot be imported.
    """
    if model_type in known_names("model family"):
        return load("model family", model_type)
    return generic
