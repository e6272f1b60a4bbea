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
_SECRET_WORDS = frozenset(
    [
        *("password", "passwd", "passphrase", "pwd", "secret", "secrets"),
        *("credential", "credentials", "auth", "authorization", "bearer", "cookie", "cookies"),
    ]
)
"""Last words of names whose values are secret, also numbers and everything in a table."""

_OWNERS = frozenset(
    [
        *("api", "access", "auth", "bearer", "client", "hf", "hub", "private", "refresh"),
        *("secret", "service", "session", "signing", "subscription"),
    ]
)
"""Words before "key", "keys", "token" or "tokens" that make a name as secret as `_SECRET_WORDS`."""

_KEY = re.compile(r"(.*?)(key|token)(s?)")
_OTHER_KEYS = frozenset(
    [
        *("cache", "column", "dict", "field", "foreign", "group", "index", "label", "map"),
        *("metric", "primary", "row", "sort", "split", "by"),
        *("bos", "box", "cls", "end", "eos", "image", "mask", "max", "min", "pad", "sep"),
        *("special", "start", "stop", "unk", "video", "vision"),
    ]
)
"""Words before "key" and "token" in names of columns, mappings and tokens of a vocabulary."""

_SPECIAL_TOKEN = re.compile(r"<[^<>]*>|\[[^\[\]]*\]")  # </s>, <|im_end|>, [MASK]

_VALUES = re.compile(
    r"""
    ://[^/\s@]*@                                          # https://user:password@host
    | [?&](api[_-]?key|key|(\w+[_-])?token|secret|password|([\w-]+-)?sig(nature)?)=.
    | "[\w-]*(api_?key|secret|password|token)"\s*:\s*"[^"]    # JSON in a text
    | \bauthorization\s*:\s*\S
    | ^\s*bearer\s+\S+\s*$
    | ^\s*basic\s+(?-i:(?=\S*([0-9=]|[a-z][A-Z])))[\w+/]+=*\s*$   # Base64 of user:password
    | -----BEGIN\s[A-Z ]*PRIVATE\sKEY-----
    | \b(sk|pk|rk)-([a-z]\w*-)*(?=[\w-]{16})\w{12,}         # OpenAI, Anthropic, OpenRouter
    | \bhf_\w{16,}                                         # Hugging Face
    | \b(gh[pousr]|github_pat|gsk|npm|r8|tgp_v1)_\w{16,}   # GitHub, Groq, Replicate, Together
    | \b(glpat|nvapi|pplx|xai)-[\w-]{16,}                  # GitLab, NVIDIA, Perplexity, xAI
    | \bxox[a-z]-[\w-]{8,}                                 # Slack
    | \b(AKIA|ASIA)[0-9A-Z]{16}\b                          # AWS
    | \bAIza[\w-]{30,} | \bya29\.[\w-]{16,}               # Google
    | \beyJ[\w-]+\.[\w-]+\.[\w-]*                         # JSON web token
    """,
    re.VERBOSE | re.IGNORECASE,
)

_HIDDEN = "a name"  # a name that is itself a credential is not repeated


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
            is_whole = found == name or _VALUES.search(str(name))
            place = found if is_whole else f"{name} ({found})"
            advice = (
                f"put the key into an environment variable, and pass the name of that variable: "
                f"key_variable={variable}."
                if variable
                else f"put it into an environment variable, such as {_OTHER_VARIABLE} for the "
                "Hugging Face Hub."
            )
            raise ConfigurationError(
                f"The option {place} of the {what} looks like a credential. Options are saved and "
                f"shown: {advice}"
            )


def variable_of(name: str, made: Callable[..., Any]) -> str:
    """Return the usual variable for the key of an object with an option ``key_variable``, or ""."""
    has_key = "key_variable" in inspect.signature(made).parameters
    return VARIABLES.get(name, "MY_API_KEY") if has_key else ""


def _credential(name: str, value: Any) -> str | None:
    """Return the name of the first option that looks like a credential, or None."""
    if _VALUES.search(name):
        return _HIDDEN
    if _is_secret(name) and _has_content(value):
        return name
    if isinstance(value, Mapping):
        found = (_credential(str(key), item) for key, item in value.items())
        return next((each for each in found if each is not None), None)
    if isinstance(value, list | tuple):
        found = (_credential(name, item) for item in value)
        return next((each for each in found if each is not None), None)
    if not isinstance(value, str | bytes) or not value:
        return None
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    is_named = _is_key(name) and not _SPECIAL_TOKEN.fullmatch(text)
    return name if is_named or _VALUES.search(text) else None


def _words(name: str) -> list[str]:
    """Return the words of a name in lower case, without a number at the end."""
    words = [word.lower() for word in _WORDS.findall(name)]
    while words and words[-1].isdigit():
        words.pop()
    return words


def _is_secret(name: str) -> bool:
    """Return whether the name says that its value is secret, whatever the value is."""
    *before, last = _words(name) or [""]
    found = _KEY.fullmatch(last)  # "api_key" and "apikey"
    owner = "" if found is None else found[1] or (before[-1] if before else "")
    return last in _SECRET_WORDS or owner in _OWNERS


def _is_key(name: str) -> bool:
    """Return whether a text with this name is a key or a token of a service."""
    *before, last = _words(name) or [""]
    return last in ("key", "token") and not (before and before[-1] in _OTHER_KEYS)


def _has_content(value: object) -> bool:
    """Return whether a value contains a text or a number that can be a secret."""
    if isinstance(value, Mapping):
        return any(map(_has_content, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_has_content, value))
    return bool(value) and not isinstance(value, bool)
