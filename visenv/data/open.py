"""Data sets by name: ``"textvqa:<folder>?split=val"``."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from urllib.parse import parse_qsl
from weakref import WeakValueDictionary

from visenv.data.rows import RowSource
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.registration import DATA, load

_logger = logging.getLogger(__name__)
_opened: WeakValueDictionary[str, RowSource] = WeakValueDictionary()
_last: list[RowSource] = []  # an environment made to try its options must not read it all twice


def open_data(text: str) -> RowSource:
    """The data set that `text` names.

    ``name:folder`` or ``name:folder?option=value&option=value``; the options are the arguments of
    the data set's class, as text::

        textvqa:<folder>            textvqa:<folder>?split=val
        vstar:<folder>              hrbench:<folder>?size=8k

    While a source is in use, the same text gives the same object, so that many environments share
    one index. Rows that cannot be used are counted in a warning and listed in ``source.problems``.

    Raises:
        UnknownNameError: If there is no such data set, option or value; names the nearest.
        ConfigurationError: If no folder is given.
        DataError: If the folder cannot be read as this data set.
    """
    source = _opened.get(text)
    if source is None:
        source = _opened[text] = _open(text)
    _last[:] = [source]
    return source


def _open(text: str) -> RowSource:
    name, _, rest = text.partition(":")
    if name not in DATA:
        raise UnknownNameError("data set", name, DATA)
    folder, _, query = rest.partition("?")
    if not folder:
        raise ConfigurationError(f"Name the folder of the data set, {name}:<folder>; got {text!r}.")
    made: Callable[..., RowSource] = load("data set", name)
    source = made(folder, **_options(name, query, made))
    if source.problems:
        count, first = len(source.problems), source.problems[0]
        _logger.warning("%s: %d rows cannot be used, the first: %s", text, count, first)
    return source


def _options(name: str, query: str, made: Callable[..., RowSource]) -> dict[str, str]:
    try:
        options = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError as error:
        raise ConfigurationError(
            f"Options of a data set are option=value&option=value, got {query!r}."
        ) from error
    known = [each for each in inspect.signature(made).parameters if each != "folder"]
    for option in options:
        if option not in known:
            raise UnknownNameError(f"option of the data set {name}", option, known)
    return options
