"""Options in a name, such as ``textvqa:<folder>?split=val`` or ``openai:gpt-4o?timeout=30``."""

from __future__ import annotations

from urllib.parse import parse_qsl

from visenv.errors import ConfigurationError


def read_options(query: str, what: str) -> dict[str, str]:
    """Return the options that stand behind the question mark of a name.

    Args:
        query: ``option=value&option=value``, percent-encoded where needed; it may be empty.
        what: What an error calls the thing that takes the options, for example ``"a data set"``.

    Raises:
        ConfigurationError: If the text is not of this form.
    """
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError as error:
        raise ConfigurationError(
            f"Options of {what} are option=value&option=value, got {query!r}."
        ) from error
    return dict(pairs)
