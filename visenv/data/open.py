"""Opens data sets by name: ``"textvqa:<folder>?split=val"``."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from weakref import WeakValueDictionary

from visenv.data.columns import ALIASES, USUAL_NAMES
from visenv.data.hub_snapshot import PREFIX, download
from visenv.data.row import QUESTIONS, RowSchema
from visenv.data.rows import RowSource
from visenv.errors import ConfigurationError, UnknownNameError, VisenvError
from visenv.options import read_options, split_place
from visenv.plugins import describe_error
from visenv.registration import known_names, load, title_of
from visenv.terminal import printable

ROWS = "rows"
"""The name of a user's own rows, whose columns depend on the environment."""

_logger = logging.getLogger(__name__)
_OWN = re.compile(r"([A-Za-z_][\w.]*:(?!hub:)[A-Za-z_]\w*):")  # module:Class before the folder
_opened: WeakValueDictionary[str, RowSource] = WeakValueDictionary()
_last: list[RowSource] = []  # for the second environment after a check of options


def open_data(text: str, schema: RowSchema = QUESTIONS) -> RowSource:
    """Return the data set with this name.

    The form is ``name:folder`` or ``name:folder?option=value&option=value``; the options are the
    arguments of the data set's class, as strings. The folder may be a data set of the Hugging Face
    Hub (`visenv.data.hub_snapshot`), and the name may be ``module:Class``::

        textvqa:<folder>            textvqa:<folder>?split=val
        vstar:<folder>              hrbench:<folder>?size=8k
        vstar:hub:owner/name        mypackage.data:Charts:<folder>
        rows:my.jsonl               rows:hub:owner/name?split=train

    While a source is in use, the same string returns the same object, so that many environments
    share one index. Rows that cannot be used are counted in a warning and listed in
    ``source.problems``.

    Args:
        text: The name.
        schema: The columns and samples of a user's own rows (`visenv.data.user_rows`).

    Raises:
        UnknownNameError: If there is no such data set, option or value; suggests the nearest.
        ConfigurationError: If no folder is given, or the class of the data set fails.
        DataError: If the folder cannot be read as this data set, or cannot be downloaded.
    """
    key = f"{schema.name}:{text}"
    source = _opened.get(key)
    if source is None:
        source = _opened[key] = _open(text, schema)
    _last[:] = [source]
    return source


def data_set_name(text: str) -> str:
    """Return the name of the data set in `text`, or its ``module:Class``."""
    name = text.partition(":")[0]
    own = _OWN.match(text)
    return own[1] if own and name not in known_names("data set") else name


def _open(text: str, schema: RowSchema) -> RowSource:
    name = data_set_name(text)
    made: Callable[..., RowSource] = load("data set", name)
    own_rows = name == ROWS
    if own_rows:
        made = partial(made, schema=schema)
    place, query = split_place(text[len(name) + 1 :])
    if not place:
        what = "file" if own_rows else "folder"
        raise ConfigurationError(f"Give the {what} of the data set, {name}:<{what}>; got {text!r}.")
    folder = str(download(place)) if place.startswith(PREFIX) else place
    source = _made(name, made, folder, _options(name, query, made))
    if folder != place:
        source.revision = Path(folder).name
    if source.problems and not own_rows:  # the class prints its own report
        count, first = len(source.problems), source.problems[0]
        shown = printable(text), count, printable(first)
        _logger.warning("%s: %d rows cannot be used, the first: %s", *shown)
    return source


def _made(
    name: str, made: Callable[..., RowSource], folder: str, options: Mapping[str, str]
) -> RowSource:
    """Return the source; convert an exception of a foreign class to a `ConfigurationError`."""
    title = title_of("data set", name)
    try:
        source: object = made(folder, **options)
    except VisenvError:
        raise
    except Exception as error:
        raise ConfigurationError(f"{title} cannot be opened: {describe_error(error)}") from error
    if not isinstance(source, RowSource):
        raise ConfigurationError(
            f"{title} cannot be opened: {type(source).__name__} does not extend RowSource."
        )
    return source


def _options(name: str, query: str, made: Callable[..., RowSource]) -> dict[str, str]:
    options = read_options(query, "a data set")
    _, *parameters = inspect.signature(made).parameters.values()
    known = [each.name for each in parameters if each.kind is not each.VAR_KEYWORD]
    if name == ROWS:
        known = [*(each for each in known if each != "schema"), *USUAL_NAMES, *ALIASES]
    for option in options:
        if option not in known:
            raise UnknownNameError(f"option of the data set {name}", option, known)
    return options
