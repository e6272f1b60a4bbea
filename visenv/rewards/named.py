"""Writes the functions of reward terms as names, so that a saved episode can be rescored.

The spec of an environment is JSON. A function at the top of a module is written as
``"module:qualname"``, and a `functools.partial` with its arguments. Other functions (a lambda, a
function inside a function) have no name, and stay as they are: their episodes have no spec.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from visenv.errors import ConfigurationError
from visenv.plugins import import_attribute
from visenv.received import name_of, require_trust

_OF_LOG = "visenv.rewards.terms:_of_log"
"""The function behind `visenv.rewards.of_log`, which only calls its argument."""

_PARTIAL, _FUNCTION = "partial", "function"


def written(function: Callable[..., Any]) -> Any:
    """Return a function as a name or as a JSON object; an unnamed function is returned unchanged.

    Args:
        function: A function, or a `functools.partial`.
    """
    if not isinstance(function, partial):
        return name_of(function) if _has_name(function) else function
    name = written(function.func)
    arguments = [_argument(each) for each in function.args]
    keywords = {key: _argument(each) for key, each in function.keywords.items()}
    if not isinstance(name, str) or any(map(callable, (*arguments, *keywords.values()))):
        return function
    return {_PARTIAL: name, "arguments": arguments, "keywords": keywords}


def read(value: Any) -> Callable[..., Any]:
    """Return the function of a value that `written` returned.

    Raises:
        UntrustedNameError: If the name comes from a file that may not choose it.
        ConfigurationError: If the value is not a function, or there is no such function.
    """
    if callable(value):
        function: Callable[..., Any] = value
        return function
    if isinstance(value, str):
        if value != _OF_LOG:
            require_trust("function of a reward term", value)
        found = import_attribute(value, f"The function {value!r} of a reward term")
        if callable(found):
            return read(found)
    if isinstance(value, Mapping) and _PARTIAL in value:
        arguments = [_read_argument(each) for each in value.get("arguments", ())]
        keywords = {key: _read_argument(each) for key, each in value.get("keywords", {}).items()}
        return partial(read(value[_PARTIAL]), *arguments, **keywords)
    raise ConfigurationError(
        f"A reward term needs a function, or its name module:function, got {value!r:.80}."
    )


def _argument(value: Any) -> Any:
    if not callable(value):
        return value
    name = written(value)
    return value if name is value else {_FUNCTION: name}


def _read_argument(value: Any) -> Any:
    is_function = isinstance(value, Mapping) and set(value) == {_FUNCTION}
    return read(value[_FUNCTION]) if is_function else value


def _has_name(function: Any) -> bool:
    """Return whether importing the name of a function gives the function."""
    qualname = getattr(function, "__qualname__", "")
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    return qualname.isidentifier() and getattr(module, qualname, None) is function


def written_terms(terms: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return reward terms as lists in which functions are names."""
    return [[name, weight, written(score), *rest] for name, weight, score, *rest in terms]
