"""Reads the arguments of a maker from its docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, get_args, get_type_hints

from typing_extensions import get_original_bases, is_typeddict

_ARGUMENT = re.compile(r"^    (\S+):", re.MULTILINE)
_SETTINGS = re.compile(r"^- \*\*`\*\*settings`\*\*:.*\n?(?:  .*\n?)*", re.MULTILINE)


def arguments_of(maker: Callable[..., Any]) -> str:
    """Return the arguments of a maker as a Markdown list, or their names if none are documented.

    The fields of a ``**settings: Unpack[...]`` class replace the entry of ``**settings``.
    """
    parameters = inspect.signature(maker).parameters
    documented: list[Any] = [maker]
    settings = parameters.get("settings")
    if settings is not None and settings.kind is settings.VAR_KEYWORD:
        documented += _settings_classes(get_type_hints(maker).get("settings"))
    lists = [_arguments_list(inspect.cleandoc(each.__doc__ or "")) for each in documented]
    if len(documented) > 1:
        lists[0] = _SETTINGS.sub("", lists[0]).rstrip()
    return "\n".join(filter(None, lists)) or "\n".join(f"- **`{name}`**" for name in parameters)


def _settings_classes(annotation: Any) -> list[type]:
    """Return the class in an ``Unpack[...]``, and the settings classes that it extends."""
    found = list(get_args(annotation))
    for each in found:
        found += [base for base in get_original_bases(each) if is_typeddict(base)]
    return found


def _arguments_list(docstring: str) -> str:
    """Return the ``Args:`` section of a Google-style docstring as a Markdown list."""
    _, _, rest = docstring.partition("Args:\n")
    section = re.split(r"\n(?=\S)", rest)[0]
    return inspect.cleandoc(_ARGUMENT.sub(r"- **`\1`**:", section).replace("\n    ", "\n"))
