"""Makes the environment of a saved episode again, from the spec in the episode.

An episode may come from anybody. Its spec names a registered id, options and registered wrappers;
the entry points are those of the registries. Other names are accepted only with trust
(`visenv.received`).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, WrapperSpec

from visenv import plugins
from visenv.data.open import data_set_name
from visenv.env import VisEnv
from visenv.errors import ConfigurationError, VisenvError
from visenv.old_names import with_new_env_options
from visenv.options import split_place
from visenv.received import require_trust, resolving, texts_in
from visenv.registration import NAMESPACE, WRAPPERS, env_spec, known_names
from visenv.types import Episode

Env = gym.Env[Any, Any]

_OTHER_CODE = "gymnasium."  # environments of Gymnasium itself, some of which run any function


class _SavedSpec(NamedTuple):
    """Holds the fields of a saved spec that are used."""

    id: str
    entry_point: str
    kwargs: dict[str, Any]
    wrappers: list[WrapperSpec]


def remake(episode: Episode, options: Mapping[str, Any]) -> Env:
    """Make the environment of an episode from its spec, with some options changed.

    Args:
        episode: The episode.
        options: The options to change.

    Raises:
        UntrustedNameError: If the spec contains a name that is not registered. The caller decides
            about trust by `visenv.received.resolving`.
        ConfigurationError: If this version of visenv, or of the user's package, cannot make it.
    """
    where = f"The environment of the episode of {episode.env_id} (seed {episode.seed})"
    try:
        env: Env = gym.make(_spec(episode.env_spec, options, where))
    except VisenvError:
        raise
    except Exception as error:  # a spec of another version can contain any name
        raise ConfigurationError(
            f"{where} cannot be made from its spec; was it played with another version? "
            f"{type(error).__name__}: {error!s:.500}"
        ) from error
    if not isinstance(env.unwrapped, VisEnv):
        env.close()
        raise ConfigurationError(
            f"{where} cannot be rescored: {type(env.unwrapped).__name__} does not extend VisEnv."
        )
    return env


def named_in(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names in options that a person gave: objects, models, files, addresses.

    The name before the first colon is left out if it is registered, so that the data set
    ``vstar:data`` does not name a function ``data`` of a module ``vstar``.
    """
    known = {*known_names("scorer"), *known_names("data set")}
    for text in texts_in(options):
        head, _, rest = text.partition(":")
        if head not in known:
            yield text
            yield data_set_name(text)  # mymodule:Charts in mymodule:Charts:<folder>
        place, query = split_place(rest)
        yield from (rest, place)
        yield from (value for _, value in parse_qsl(query))


def _spec(text: str, options: Mapping[str, Any], where: str) -> EnvSpec:
    saved = _read(text)
    registered = _registered(saved.id)
    if registered is not None and registered.entry_point == saved.entry_point:
        spec = copy.deepcopy(registered)
        _import(saved.entry_point, "environment")
    elif registered is None and saved.id.startswith(f"{NAMESPACE}/"):
        raise ConfigurationError(
            f"{where} is {saved.id}, which this version of visenv does not have."
        )
    else:
        require_trust("environment", saved.entry_point)
        _import(saved.entry_point, "environment")
        spec = EnvSpec.from_json(text)
    kwargs = saved.kwargs
    if spec.namespace == NAMESPACE:
        kwargs = with_new_env_options(kwargs)
    spec.kwargs = {**kwargs, **options}
    spec.additional_wrappers = tuple([_checked(wrapper) for wrapper in saved.wrappers])
    return spec


def _read(text: str) -> _SavedSpec:
    """Return the spec; raises `TypeError`, `ValueError` or `LookupError` for any other text."""
    record = json.loads(text)
    wrappers = [WrapperSpec(**each) for each in record["additional_wrappers"]]
    saved = _SavedSpec(record["id"], record["entry_point"], record["kwargs"], wrappers)
    texts = [saved.id, saved.entry_point, *(wrapper.entry_point for wrapper in wrappers)]
    tables = [saved.kwargs, *(wrapper.kwargs for wrapper in wrappers)]
    if not all(isinstance(each, str) for each in texts):
        raise TypeError("an id or an entry point is not a string")
    if not all(isinstance(each, dict) for each in tables):
        raise TypeError("the options of an environment or of a wrapper are no object")
    return saved


def _registered(env_id: str) -> EnvSpec | None:
    """Return the spec of a registered id, or None; nothing is imported for an unknown id."""
    if env_id not in gym.registry and plugins.find("environment", env_id) is None:
        return None
    with resolving(None):  # a registered name, whose package may be imported
        spec = env_spec(env_id)
    return None if str(spec.entry_point).startswith(_OTHER_CODE) else spec


def _checked(wrapper: WrapperSpec) -> WrapperSpec:
    """Return a wrapper that is registered or trusted."""
    added = (plugin.path for plugin in plugins.installed("wrapper"))
    if wrapper.entry_point not in {*WRAPPERS.values(), *added}:
        require_trust("wrapper", wrapper.entry_point)
    _import(wrapper.entry_point, "wrapper")
    return wrapper


def _import(path: str, kind: str) -> None:
    """Import an accepted object; names in its module come from code and not from the file."""
    with resolving(None):
        plugins.import_attribute(path, f"The {kind} {path!r}")
