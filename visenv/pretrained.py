"""Loads configurations, processors and models of transformers without running a model's code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from visenv.errors import ConfigurationError


def load_pretrained(kind: Any, name: str, **options: Any) -> Any:
    """Return ``kind.from_pretrained(name)`` of transformers.

    A model folder can contain Python files and name their classes. They are never run, and
    transformers does not ask the person whether to run them.

    Args:
        kind: A class with the method `from_pretrained`, such as ``transformers.AutoConfig``.
        name: A folder or a hub name.
        **options: Further arguments of `from_pretrained`.

    Raises:
        ConfigurationError: If the folder contains adapters: their configuration names the model to
            load, and a file does not choose a model.
        OSError: If there is no such model.
        ValueError: If the model needs its own Python files.
    """
    if (Path(name) / "adapter_config.json").is_file():
        raise ConfigurationError(
            f"{name} contains adapters, whose configuration names another model to load. Merge "
            "them into that model with peft, and give the folder of the merged model."
        )
    return kind.from_pretrained(name, trust_remote_code=False, **options)
