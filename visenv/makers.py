"""Environments and policies from words, as the command line and the recipes are given them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym

from visenv.errors import ConfigurationError, UnknownNameError
from visenv.policy import Policy
from visenv.registration import ENVIRONMENTS, MODELS, NAMESPACE, load
from visenv.rollout import Env


def env_id(name: str) -> str:
    """The registered id for `name`; the namespace may be left out.

    Raises:
        UnknownNameError: If there is none; names the nearest.
    """
    full = name if "/" in name else f"{NAMESPACE}/{name}"
    if full not in ENVIRONMENTS and full not in gym.registry:
        raise UnknownNameError("environment", full, ENVIRONMENTS)
    return full


def settings(words: Sequence[str]) -> dict[str, Any]:
    """``["preset=tiny", "tool_calls=1"]`` as keyword arguments; values are JSON or plain text.

    Raises:
        ConfigurationError: If a word is not of the form ``key=value``.
    """
    parsed: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier():
            raise ConfigurationError(f"Options are given as key=value, got {word!r}.")
        try:
            parsed[key] = json.loads(value)
        except ValueError:
            parsed[key] = value
    return parsed


def env_maker(name: str, options: Sequence[str] = (), data: str | None = None) -> Callable[[], Env]:
    """A function that makes the environment; made once here, so that mistakes show at once."""
    full = env_id(name)
    arguments = settings(options) | ({} if data is None else {"data": data})

    def make() -> Env:
        return gym.make(full, **arguments)

    try:
        make().close()
    except TypeError as error:
        raise ConfigurationError(f"{full}: {error}") from error
    return make


def make_policy(name: str, options: Sequence[str] = ()) -> Policy[Any]:
    """The policy of that name, or of ``module:Class``, with ``key=value`` options."""
    made: Any = load("policy", name)
    try:
        policy: Policy[Any] = made(**settings(options))
    except TypeError as error:
        raise ConfigurationError(f"The policy {name!r}: {error}") from error
    return policy


def find_model(name: str, folder: Path, seed: int = 0) -> str | Path:
    """The checkpoint of that name: a folder or a hub name as it is; a tiny model is built.

    Args:
        name: A checkpoint folder, a hub name, or a key of `MODELS`.
        folder: Where a tiny model is built, unless it is there already.
        seed: Of its weights.
    """
    if name not in MODELS:
        return name
    if not folder.exists():
        partial = folder.with_name(f".{folder.name}.{os.getpid()}")  # nobody finds half a model
        load("model", name)(partial, seed=seed)
        partial.rename(folder)
    return folder


def split_of(data: str | None, split: str) -> str | None:
    """The same data set with another split, where its name holds or may hold one.

    ``textvqa:<folder>`` has splits; procedural scenes and the two benchmarks have none.
    """
    if data is None or not data.startswith("textvqa:"):
        return data
    return f"{data.partition('?')[0]}?split={split}"
