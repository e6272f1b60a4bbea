"""Opens Chroma, and raises an error in situations in which Chroma would hang or fail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from visenv.errors import ConfigurationError, DataError
from visenv.packages import missing_package
from visenv.retrieval.vectors import VectorMaker, check_same_embedder

COLLECTION = "vectors"

# Chroma's own index is never queried, so that its cheapest settings are used: 3.5 times faster.
_INDEX = {"hnsw": {"space": "ip", "ef_construction": 8, "max_neighbors": 4}}

FORKED = (
    "Chroma hangs in a process forked from one that used it. Read with SealedVectors there, or "
    "start the process by spawn and open the store in it."
)

_first_process: int | None = None  # the process that started Chroma; a forked child inherits this


def open_collection(folder: Path, embedder: VectorMaker) -> tuple[Any, Any]:
    """Return a client of Chroma, which sends no telemetry, and its collection.

    Only one process at a time may call this. The caller closes the client. The collection does not
    embed anything by itself, and is created if it does not exist.

    Args:
        folder: Folder of Chroma's files.
        embedder: The embedder, whose name and dimension are stored with the collection.

    Raises:
        ConfigurationError: If another embedder made the collection, chromadb is not installed, or
            this process is forked from one that used Chroma.
    """
    global _first_process  # noqa: PLW0603 - a fact of the process, inherited by a fork
    try:
        import chromadb
        from chromadb.config import Settings
        from chromadb.errors import NotFoundError
    except ImportError as error:
        raise missing_package("A store of vectors", error, "documents") from error
    if _first_process not in (None, os.getpid()):
        raise ConfigurationError(FORKED)
    _first_process = os.getpid()
    settings = Settings(anonymized_telemetry=False)
    client: Any = chromadb.PersistentClient(str(folder), settings=settings)
    try:
        try:
            found = client.get_collection(COLLECTION, embedding_function=None)
        except NotFoundError:
            made_by = {"embedder": embedder.name, "dimension": embedder.dimension}
            found = client.create_collection(
                COLLECTION, embedding_function=None, metadata=made_by, configuration=_INDEX
            )
        kept: dict[str, Any] = found.metadata or {}
        name, dimension = kept.get("embedder", "unknown"), kept.get("dimension", 0)
        check_same_embedder(name, dimension, embedder, str(folder))
    except BaseException:
        client.close()
        raise
    return client, found


@contextmanager
def damage_as_data_error(folder: Path) -> Iterator[None]:
    """Raise a `DataError` that suggests a remedy if Chroma cannot read the data in `folder`."""
    try:
        yield
    except Exception as error:
        if type(error).__module__ != "chromadb.errors":  # by name, because chromadb may be missing
            raise
        raise DataError(
            f"{folder} is damaged: {error} Delete it, and embed everything again."
        ) from error
