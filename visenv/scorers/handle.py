"""Defines `ScorerHandle`: a backend and its options, which name the shared instance of a scorer."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from typing_extensions import override

from visenv.credentials import check_no_credentials, variable_of
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.received import ReceivedNames, current_names, texts_in
from visenv.scorers.backend import ScorerBackend, backend_class
from visenv.scorers.service import LIMIT_NAMES
from visenv.scorers.sharing import ScorerAddress


class ScorerHandle:
    """Describes a backend and its options, and holds nothing else.

    Args:
        backend: A key of `visenv.registration.SCORERS`, a scorer of an installed package, or
            ``"module:Class"``.
        deterministic: Whether the answer of a backend in this process must not depend on the batch.
            This has no effect on a server.
        cache_dir: Folder of a persistent cache on disk; None means a cache in memory only. Scorers
            and processes may share a folder.
        **options: Options of the backend and of `ServiceLimits`, JSON-like.

    Attributes:
        options: The options, with the backend's defaults.
        own_texts: The texts in options that differ from the backend's defaults and known models:
            models, addresses, files, functions.
        name: The backend and its main option, for example ``"openai:gpt-4o"``.
        key: The description as text; equal for equal handles.
        received: The names of the received file that gives the options, or None.
        parent: The address of the process that pickled the handle, or None.

    Raises:
        UnknownNameError: If there is no such backend or option; suggests the nearest.
        ConfigurationError: If an option has an invalid value, or looks like a credential.
    """

    __slots__ = (
        *("backend", "options", "deterministic", "cache_dir"),
        *("own_texts", "received", "name", "key", "parent"),
    )

    def __init__(
        self,
        backend: str,
        *,
        deterministic: bool = False,
        cache_dir: str | Path | None = None,
        **options: Any,
    ) -> None:
        made = backend_class(backend)
        _check_options(backend, made, options)
        defaults = _defaults(made)
        self.backend = backend
        self.options: Mapping[str, Any] = defaults | options
        own = [value for name, value in options.items() if value != defaults.get(name)]
        own += [] if cache_dir is None else [str(cache_dir)]
        self.own_texts = tuple([text for text in texts_in(own) if text not in made.known_texts])
        self.deterministic = deterministic
        self.cache_dir = None if cache_dir is None else str(cache_dir)
        self.name = f"{backend}:{self.options[made.main_option]}" if made.main_option else backend
        self.key = json.dumps(self.description(), sort_keys=True)
        self.received: ReceivedNames | None = current_names()
        self.parent: ScorerAddress | None = None

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Self:
        """Create the handle with this description (see `description`)."""
        rest = {key: description[key] for key in ("deterministic", "cache_dir")}
        return cls(description["backend"], **rest, **description["options"])

    def description(self) -> dict[str, Any]:
        """Return the handle as plain JSON."""
        return {
            "backend": self.backend,
            "options": dict(self.options),
            "deterministic": self.deterministic,
            "cache_dir": self.cache_dir,
        }

    @override
    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, ScorerHandle) else NotImplemented

    @override
    def __hash__(self) -> int:
        return hash(self.key)

    @override
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.key})"


def _check_options(backend: str, made: type[ScorerBackend], options: Mapping[str, Any]) -> None:
    """Raise for options that are unknown, cannot be saved, or look like a credential."""
    parameters = inspect.signature(made).parameters
    variable = variable_of(backend, made)
    check_no_credentials(f"scorer {backend!r}", options, variable)
    known = [*parameters, *LIMIT_NAMES]
    for name in options:
        if name not in known:
            raise UnknownNameError(f"option of the scorer {backend!r}", name, known)
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in options:
            raise ConfigurationError(f"The scorer {backend!r} needs the option {name!r}.")
    try:
        json.dumps(options, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"Options of the scorer {backend!r} must be JSON-like: {error}"
        ) from error


def _defaults(made: type[ScorerBackend]) -> dict[str, Any]:
    """Return the default values of options; if a default changes, the scorer's key changes."""
    parameters = inspect.signature(made).parameters.items()
    return {
        name: parameter.default
        for name, parameter in parameters
        if parameter.default is not parameter.empty
    }
