"""Opening the Chroma collection of a store, and refusing where it would hang or be of no use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from visenv.documents.embedder import VectorMaker, check_same_embedder
from visenv.errors import ConfigurationError

COLLECTION = "pages"

# Chroma's own index is never asked, so it is built as cheaply as it can be: 3.5 times faster.
_INDEX = {"hnsw": {"space": "ip", "ef_construction": 8, "max_neighbors": 4}}

FORKED = (
    "Chroma hangs in a process forked from one that used it. Use PageVectors there, which only "
    "reads; or start the process by spawn, and open the PageStore in it."
)

_first_process: int | None = None  # the process that started Chroma; a forked child inherits this


def open_collection(folder: Path, embedder: VectorMaker, name: str = COLLECTION) -> tuple[Any, Any]:
    """Chroma's client and a collection, made if it is not there.

    The client sends no telemetry, and the collection embeds nothing by itself. To be called by one
    process at a time; the caller closes the client.

    Args:
        folder: Of Chroma's files.
        embedder: Its name and dimension are kept with the collection.
        name: Of the collection.

    Raises:
        ConfigurationError: If another embedder made the collection, chromadb is not installed, or
            this process is forked from one that used it.
    """
    try:
        import chromadb
        from chromadb.config import Settings
    except ImportError as error:
        raise ConfigurationError(
            "A PageStore needs chromadb: pip install 'visenv[documents]'."
        ) from error
    _claim_chroma()
    settings = Settings(anonymized_telemetry=False)
    client: Any = chromadb.PersistentClient(str(folder), settings=settings)
    try:
        return client, _collection(client, embedder, folder, name)
    except BaseException:
        client.close()
        raise


def _collection(client: Any, embedder: VectorMaker, folder: Path, collection: str) -> Any:
    from chromadb.errors import NotFoundError

    try:
        found = client.get_collection(collection, embedding_function=None)
    except NotFoundError:
        made_by = {"embedder": embedder.name, "dimension": embedder.dimension}
        return client.create_collection(
            collection, embedding_function=None, metadata=made_by, configuration=_INDEX
        )
    kept: dict[str, Any] = found.metadata or {}
    name, dimension = kept.get("embedder", "unknown"), kept.get("dimension", 0)
    check_same_embedder(name, dimension, embedder, str(folder))
    return found


def _claim_chroma() -> None:
    global _first_process  # noqa: PLW0603 - a fact of the process, inherited by a fork
    if _first_process not in (None, os.getpid()):
        raise ConfigurationError(FORKED)
    _first_process = os.getpid()
