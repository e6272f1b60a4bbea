"""Makes environments and policies from the names and options of the command line and of recipes."""

from __future__ import annotations

import inspect
import json
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym

from visenv.algorithm import Algorithm
from visenv.checksums import write_checksums
from visenv.credentials import check_no_credentials, variable_of
from visenv.data.hub_snapshot import pinned
from visenv.data.open import data_set_name
from visenv.data.source import Source
from visenv.disk import disk_errors, sync, sync_tree
from visenv.env import VisEnv
from visenv.errors import ConfigurationError, UnknownNameError, VisenvError
from visenv.options import split_place
from visenv.plugins import describe_error
from visenv.policy import Policy
from visenv.registration import MODELS, env_spec, load, title_of
from visenv.rollout import Env, Mixture


def env_id(name: str) -> str:
    """Return the id of the environment that `env_spec` finds by `name`."""
    return env_spec(name).id


def settings(words: Sequence[str]) -> dict[str, Any]:
    """Return options such as ``["preset=tiny", "tool_calls=1"]`` as keyword arguments.

    Values are parsed as JSON, or else are strings.

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


def env_maker(
    name: str, options: Sequence[str] | Mapping[str, Any] = (), data: str | Source | None = None
) -> Callable[[], Env]:
    """Return a function that makes an environment; the function can be pickled.

    The environment is made once here, so that invalid options raise immediately. A data set of the
    Hugging Face Hub is pinned to the commit that its revision currently refers to.

    Args:
        name: The environment; see `env_spec`.
        options: Arguments of the environment, as a mapping or as ``key=value`` strings.
        data: The argument ``data``: the name of a data set, or a source.

    Raises:
        ConfigurationError: If there is no such environment, it cannot be made, or an option looks
            like a credential.
    """
    given = dict(options) if isinstance(options, Mapping) else settings(options)
    arguments = given | ({} if data is None else {"data": data})
    check_no_credentials(f"environment {name!r}", arguments)
    if isinstance(arguments.get("data"), str):
        arguments["data"] = pinned(arguments["data"])
    make = partial(gym.make, env_spec(name), **arguments)
    with _making("environment", name, "--option", arguments):
        env = make()
        env.close()
    if not isinstance(env.unwrapped, VisEnv):
        kind = type(env.unwrapped).__name__
        raise ConfigurationError(
            f"{title_of('environment', name)} cannot be played: {kind} does not extend VisEnv."
        )
    return make


def make_policy(name: str, options: Sequence[str] = ()) -> Policy[Any]:
    """Return the policy of that name, or of ``module:Class``, with ``key=value`` options.

    Raises:
        ConfigurationError: If there is no such policy, it cannot be made, or an option looks like a
            credential.
    """
    made: Any = load("policy", name)
    arguments = settings(options)
    check_no_credentials(f"policy {name!r}", arguments, variable_of(name, made))
    with _making("policy", name, "--policy-option", arguments):
        policy: Policy[Any] = made(**arguments)
    return policy


def make_algorithm(name: str, options: Mapping[str, Any]) -> Algorithm:
    """Return the algorithm of that name, or of ``module:Class``.

    Raises:
        ConfigurationError: If there is no such algorithm, or it cannot be made.
    """
    made: Any = load("algorithm", name)
    with _making("algorithm", name, "--algorithm-options", options):
        algorithm: Algorithm = made(**options)
    return algorithm


@contextmanager
def _making(kind: str, name: str, flag: str, given: Mapping[str, Any]) -> Iterator[None]:
    """Convert an exception of a constructor to a `ConfigurationError` that names the object.

    Errors of visenv are raised unchanged, because their messages are clear already.
    """
    try:
        yield
    except VisenvError:
        raise
    except (Exception, SystemExit) as error:
        title = title_of(kind, name)
        if isinstance(error, TypeError):
            check_arguments(load(kind, name), f"{kind} {name!r}", title, flag, given)
        raise ConfigurationError(f"{title} cannot be made: {describe_error(error)}") from error


def check_arguments(
    made: Callable[..., Any], what: str, title: str, flag: str, given: Mapping[str, Any]
) -> None:
    """Raise a `ConfigurationError` for an argument that is unknown or missing."""
    parameters = inspect.signature(made).parameters
    open_ended = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    for option in given:
        if option not in parameters and not open_ended:
            raise UnknownNameError(f"option of the {what}", option, parameters)
    for option, each in parameters.items():
        required = each.default is each.empty and each.kind not in (
            each.VAR_KEYWORD,
            each.VAR_POSITIONAL,
        )
        if required and option not in given:
            raise ConfigurationError(
                f"{title} needs the option {option!r}: add {flag} {option}=VALUE."
            )


def find_model(
    name: str,
    folder: Path,
    make_mixture: Callable[[], Mixture],
    *,
    seed: int = 0,
    episodes: int | None = None,
) -> str | Path:
    """Return a checkpoint by name: a folder or a hub name is returned; a tiny model is built.

    Args:
        name: A checkpoint folder, a hub name, or a key of `MODELS`.
        folder: The folder in which a tiny model is built, unless it exists.
        make_mixture: Makes the environments on whose episodes the tokenizer of a tiny model is
            trained; called only if a tiny model is built.
        seed: Seed of the weights of a tiny model.
        episodes: Number of episodes from which the tokenizer of a tiny model is trained; by
            default that of the model.

    Raises:
        UnknownNameError: If the name is a misspelled name of a tiny model (`check_model_name`).
        RunError: If every episode is aborted.
        DiskError: If the disk is full or fails.
    """
    check_model_name(name)
    if name not in MODELS:
        return name
    if not folder.exists():
        # The final name is complete and on the disk.
        partial = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}")
        more = {} if episodes is None else {"episodes": episodes}
        try:
            with disk_errors(partial):
                load("model", name)(partial, make_mixture(), seed=seed, **more)
            write_checksums(partial)
            sync_tree(partial)
            partial.rename(folder)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        sync(folder.parent)
    return folder


def check_model_name(name: str) -> None:
    """Check that a name is not a misspelled name of a tiny model, which the hub does not have.

    Raises:
        UnknownNameError: If the name begins with ``tiny``, and there is no such folder.
    """
    if name in MODELS or "/" in name or Path(name).exists():
        return
    if name.startswith("tiny"):
        raise UnknownNameError("tiny model", name, MODELS)


def training_data(data: str) -> str:
    """Return a data set with the split to train on, if its class does not use that by default.

    Args:
        data: The name of a data set; see `visenv.data.open.open_data`.
    """
    split = getattr(load("data set", data_set_name(data)), "training_split", "")
    place, query = _split(data)
    options = [option for option in query.split("&") if option]
    if not split or any(option.startswith("split=") for option in options):
        return data
    return f"{place}?{'&'.join([*options, f'split={split}'])}"


def _split(data: str) -> tuple[str, str]:
    """Return the name of a data set without its options, and the options."""
    name = data_set_name(data)
    place, query = split_place(data[len(name) + 1 :])
    return f"{name}:{place}", query


def held_out_data(data: str) -> str | None:
    """Return the held-out split of a data set, with its other options, or None if it has none.

    Args:
        data: The name of a data set; see `visenv.data.open.open_data`.
    """
    place, query = _split(data)
    splits = getattr(load("data set", data_set_name(data)), "splits", ())
    held_out = next((each for each in ("val", "dev", "test") if each in splits), None)
    if held_out is None:
        return None
    options = [each for each in query.split("&") if each and not each.startswith("split=")]
    return f"{place}?{'&'.join([*options, f'split={held_out}'])}"
