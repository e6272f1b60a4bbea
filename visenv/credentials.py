"""Refuses options that look like credentials, because options are saved and shown.

A key belongs in an environment variable, which is read at each request.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from visenv.errors import ConfigurationError

VARIABLES = {"openai": "OPENAI_API_KEY"}
"""The usual environment variable of an object's key, by the name of the object."""

_OTHER_VARIABLE = "HF_TOKEN"  # of the Hugging Face Hub, from which other objects load models

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_LAST_WORDS = frozenset(
    [
        *("key", "apikey", "token", "secret", "password", "passwd", "credential", "credentials"),
        *("auth", "authorization", "bearer", "cookie"),
    ]
)
_VALUES = re.compile(
    r"""
    ://[^/\s@]*@                                          # https://user:password@host
    | [?&](api[_-]?key|key|(\w+[_-])?token|secret|password)=.
    | ^\s*(bearer|basic)\s+\S
    | ^(sk|pk|rk)-[\w-]{16,}$                             # OpenAI, Anthropic, OpenRouter
    | ^hf_\w{16,}$                                        # Hugging Face
    | ^(gh[pousr]|github_pat)_\w{16,}$
    | ^xox[a-z]-[\w-]{8,}$                                # Slack
    | ^(AKIA|ASIA)[0-9A-Z]{16}$                           # AWS
    | ^AIza[\w-]{30,}$                                    # Google
    | ^eyJ[\w-]+\.[\w-]+\.[\w-]*$                         # JSON web token
    """,
    re.VERBOSE | re.IGNORECASE,
)


def check_no_credentials(what: str, options: Mapping[str, Any], variable: str = "") -> None:
    """Raise a `ConfigurationError` if an option looks like a credential, at any depth.

    The message does not contain the value.

    Args:
        what: The object that has the options, for the error, for example ``"policy 'openai'"``.
        options: The options.
        variable: The environment variable for the key, if the object has an option
            ``key_variable``.
    """
    for name, value in options.items():
        found = _credential(str(name), value)
        if found is not None:
            place = name if found == name else f"{name} ({found})"
            advice = (
                f"put the key into an environment variable, and pass the name of that variable: "
                f"key_variable={variable}."
                if variable
                else f"put it into an environment variable, such as {_OTHER_VARIABLE} for the "
                "Hugging Face Hub."
            )
            raise ConfigurationError(
                f"The option {place} of the {what} looks like a secret. Options are saved and "
                f"shown: {advice}"
            )


def variable_of(name: str, made: Callable[..., Any]) -> str:
    """Return the usual variable for the key of an object with an option ``key_variable``, or ""."""
    has_key = "key_variable" in inspect.signature(made).parameters
    return VARIABLES.get(name, "MY_API_KEY") if has_key else ""


def _credential(name: str, value: Any) -> str | None:
    """Return the name of the first option that looks like a credential, or None."""
    if isinstance(value, Mapping):
        found = (_credential(str(key), item) for key, item in value.items())
        return next((each for each in found if each is not None), None)
    if isinstance(value, list | tuple):
        found = (_credential(name, item) for item in value)
        return next((each for each in found if each is not None), None)
    if not isinstance(value, str | bytes) or not value:
        return None
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    words = [word.lower() for word in _WORDS.findall(name)]
    is_named = bool(words) and words[-1] in _LAST_WORDS
    return name if is_named or _VALUES.search(text) else None
