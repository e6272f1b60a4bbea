"""Reads and writes names of indexes of vectors, such as ``text:<index>?model=<model>``.

An index names the model that made it. Loading a model from a folder or from the hub is a choice of
the person: only the default models are loaded because an index names them.
"""

from __future__ import annotations

from urllib.parse import quote

from visenv.errors import ConfigurationError, UnknownNameError
from visenv.options import read_options, split_place
from visenv.scorers.backends.encoder import DEFAULT_MODELS


def read_place(place: str, form: str) -> tuple[str, str | None]:
    """Return the folder of an index, and its model if it is given.

    Args:
        place: ``"<index>"`` or ``"<index>?model=<model>"``.
        form: The form of the whole name, for errors, for example ``"text:<index>"``.

    Raises:
        UnknownNameError: If there is another option.
        ConfigurationError: If there is no folder.
    """
    folder, query = split_place(place)
    options = read_options(query, "an index")
    for option in options:
        if option != "model":
            raise UnknownNameError("option of an index", option, ["model"])
    if not folder:
        raise ConfigurationError(f"Name the folder of the index, {form}; got {place!r}.")
    return folder, options.get("model")


def index_name(name: str, model: str) -> str:
    """Return the name of an index, with its model unless this is a default model."""
    return name if model in DEFAULT_MODELS else f"{name}?model={quote(model)}"


def chosen_model(made_by: str, given: str | None, name: str) -> str:
    """Return the model to load for an index.

    Args:
        made_by: The model in the files of the index.
        given: The model that the person gives, or None.
        name: The name of the index, for the error.

    Raises:
        ConfigurationError: If the person gives no model, and that of the index is not a default
            model.
    """
    if given is not None:
        return given
    if made_by in DEFAULT_MODELS:
        return made_by
    place = name.partition("?")[0]
    raise ConfigurationError(
        f"{place} was built with the model {made_by!r:.200}, which is not one of visenv's default "
        "models. A file does not choose a model to load: if you trust it, give it in the name, "
        f"{place}?model={quote(made_by[:200])}"
    )
