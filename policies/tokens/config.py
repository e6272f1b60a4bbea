"""Reads the configuration of a checkpoint, and refuses what is no vision-language model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import transformers

from visenv.decoding.files import check_folder
from visenv.errors import ConfigurationError, PolicyError, RunError, VisenvError
from visenv.pretrained import load_pretrained

_HUB_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")


def read_config(model: str | Path) -> Any:
    """Return the configuration of a vision-language model of transformers.

    Args:
        model: A checkpoint folder or a hub name.

    Raises:
        FileRefusedError: If the folder contains a pipe, a device or a socket.
        ConfigurationError: If the folder contains adapters only.
        RunError: If there is no readable configuration.
        PolicyError: If the model has no vision, or transformers does not support it.
    """
    name = str(model)
    try:
        check_folder(name)
        config = load_pretrained(transformers.AutoConfig, name)
    except ConfigurationError:  # a ValueError that is not about the configuration
        raise
    except (OSError, ValueError) as error:
        raise _refusal(name, error) from error
    if getattr(config, "vision_config", None) is None:
        raise PolicyError(
            f"{name} is a {config.model_type} model, which has no vision tower and cannot see "
            "images. Use a vision-language model."
        )
    if type(config) not in transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        raise PolicyError(
            f"{name} is a {config.model_type} model, which writes no text about images: "
            "AutoModelForImageTextToText of transformers does not support it."
        )
    return config


def needs_own_code(error: Exception) -> bool:
    """Return whether transformers refuses a folder because it needs Python files of the folder."""
    return "trust_remote_code" in str(error)


def _refusal(name: str, error: Exception) -> VisenvError:
    """Return the error for a configuration that transformers does not read."""
    if needs_own_code(error):
        return PolicyError(
            f"{name} needs Python files of its own (auto_map in its config.json), which visenv "
            "never runs. Use a checkpoint of a type that transformers supports itself."
        )
    reason = str(error)
    folder = Path(name)
    if not folder.is_dir() and not _HUB_NAME.fullmatch(name):
        reason = "there is no such folder."
    elif folder.is_dir() and not (folder / "config.json").is_file():
        reason = "the folder has no config.json."
    elif isinstance(error, ValueError):
        reason = (
            f"transformers {transformers.__version__} does not know the model_type in its "
            "config.json. Use a checkpoint of a type that it supports."
        )
    return RunError(f"There is no model to load at {name}: {reason}")
