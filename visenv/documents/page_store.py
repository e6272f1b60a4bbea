"""The store of page vectors: a Chroma collection, written by one process, sealed for readers.

Chroma is the store of record and nothing else: its filtered query pays for the whole collection,
forked children hang in it for ever, and a reader that was open while another process wrote fails
(chroma issues 3792, 3769, 4460). So one owner writes, and readers use the array that
`PageStore.seal` derives (`visenv.documents.page_vectors`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from visenv.documents.collection import FORKED, open_collection
from visenv.documents.document import Document
from visenv.documents.embedder import Embedder, Vectors, checked
from visenv.documents.page_vectors import PageVectors, Seal, read_manifest, write_seal
from visenv.documents.stored_rows import Row, StoredRows, page_rows
from visenv.documents.writer_lock import WriterLock
from visenv.errors import ConfigurationError, DataError

_UNSEALED = "unsealed"
_PAGES_AT_A_TIME = 32
_ROWS_READ = 4096

_logger = logging.getLogger(__name__)


class PageStore:
    """Takes documents in, page by page, and seals them for readers.

    Ingesting is resumable and idempotent: rows are named document/page/vector, and a page counts
    as present when all its rows are. After a kill, open the store again and ingest the same
    documents: only what is missing is embedded. A document that changed is to be removed first;
    one whose number of pages changed is taken in anew.

    ::

        with PageStore(folder, embedder) as store:      # seals at the end
            for name in library.names:
                store.ingest(library.document(name))
        ranker = VectorRanker(PageVectors(folder), embedder)   # in any number of processes

    Close it before forking where you can: a child forked meanwhile may search, but hangs in Chroma
    when its interpreter winds down (those of multiprocessing skip that).

    Args:
        folder: Made if it is not there.
        embedder: What embeds the pages; the store keeps its name and dimension.

    Raises:
        ConfigurationError: If the store was made by another embedder, another process is writing,
            or this process is forked from one that used Chroma.
    """

    def __init__(self, folder: str | Path, embedder: Embedder) -> None:
        self.folder = Path(folder)
        self.embedder = embedder
        self.folder.mkdir(parents=True, exist_ok=True)
        self._process = os.getpid()
        with ExitStack() as undo:
            undo.callback(WriterLock(self.folder).release)
            self._client, self._collection = open_collection(self.folder / "chroma", embedder)
            undo.callback(self._client.close)
            self._held = self._scan()
            self._undo = undo.pop_all()

    @property
    def documents(self) -> list[str]:
        """The documents that are there whole, sorted."""
        return sorted(name for name, rows in self._held.items() if rows.whole)

    def ingest(self, document: Document) -> int:
        """Embed and store the pages that are not there yet.

        A page that cannot be read or rendered is stored without vectors, and logged.

        Returns:
            How many pages were embedded.

        Raises:
            ConfigurationError: If the embedder breaks its promise, or this is a forked child.
            DataError: If the document cannot be opened.
        """
        self._check_process()
        held = self._held.get(document.name)
        if held is not None and held.pages != len(document):
            self.remove(document.name)
            held = None
        held = held or StoredRows(len(document))
        missing = held.missing()
        for start in range(0, len(missing), _PAGES_AT_A_TIME):
            pages = missing[start : start + _PAGES_AT_A_TIME]
            self._add(document, held, pages, self._embed(document, pages))
        return len(missing)

    def remove(self, document: str) -> None:
        """Delete a document's rows; sealed vectors keep it until the next `seal`."""
        self._check_process()
        self._begin_to_write()
        self._collection.delete(where={"document": document})
        self._held.pop(document, None)

    @property
    def stale(self) -> bool:
        """Whether the sealed vectors are not those of the collection."""
        if (self.folder / _UNSEALED).exists():
            return True
        try:
            sealed, array = read_manifest(self.folder)
        except (FileNotFoundError, DataError):
            return True
        return sealed != self._seal() or not (self.folder / array).is_file()

    def seal(self) -> PageVectors:
        """Derive the vectors that readers use, if those there are stale; whole documents only."""
        self._check_process()
        if self.stale:
            seal = self._seal()
            write_seal(self.folder, seal, self._placed(seal))
            (self.folder / _UNSEALED).unlink(missing_ok=True)
        return PageVectors(self.folder)

    def close(self) -> None:
        """Let go of Chroma and of the lock, without sealing."""
        if self._process == os.getpid():
            self._undo.close()

    def __enter__(self) -> PageStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self.seal()
        finally:
            self.close()

    # ------------------------------------------------------------------ writing

    def _embed(self, document: Document, pages: Sequence[int]) -> list[Vectors]:
        try:
            return self.embedder.embed_pages(document, pages)
        except DataError as error:
            if len(pages) > 1:  # find the page that it is
                return [self._embed(document, [page])[0] for page in pages]
            _logger.warning("Page %d of %r has no vectors: %s", pages[0], document.name, error)
            return [np.empty((0, self.embedder.dimension), np.float32)]

    def _add(
        self, document: Document, held: StoredRows, pages: Sequence[int], vectors: list[Vectors]
    ) -> None:
        self._begin_to_write()
        for page in pages:
            if held.found[page]:  # in part, from before a kill
                partial = [{"document": document.name}, {"page": page}]
                self._collection.delete(where={"$and": partial})
                held.forget(page)
        rows = [
            row
            for page, found in zip(pages, vectors, strict=True)
            for row in page_rows(document.name, held.pages, page, checked(found, self.embedder))
        ]
        self._upsert(rows)
        self._held[document.name] = held
        for row in rows:
            held.add(row.about)

    def _upsert(self, rows: Sequence[Row]) -> None:
        most = self._client.get_max_batch_size()
        for start in range(0, len(rows), most):
            part = rows[start : start + most]
            self._collection.upsert(
                ids=[row.name for row in part],
                embeddings=np.stack([row.vector for row in part]),
                metadatas=[row.about for row in part],
            )

    def _begin_to_write(self) -> None:
        (self.folder / _UNSEALED).touch()

    # ------------------------------------------------------------------ reading back

    def _scan(self) -> dict[str, StoredRows]:
        held: dict[str, StoredRows] = {}
        for batch in self._batches(["metadatas"]):
            for about in batch["metadatas"]:
                held.setdefault(about["document"], StoredRows(about["pages"])).add(about)
        return held

    def _batches(self, include: list[str]) -> Iterator[Mapping[str, Any]]:
        for start in range(0, self._collection.count(), _ROWS_READ):
            yield self._collection.get(include=include, limit=_ROWS_READ, offset=start)

    def _seal(self) -> Seal:
        counts = {name: self._held[name].counts() for name in self.documents}
        return Seal(self.embedder.name, self.embedder.dimension, counts)

    def _placed(self, seal: Seal) -> Iterator[tuple[int, Vectors]]:
        """Every vector with the row it belongs to."""
        starts = seal.starts()
        first = {
            name: starts[name] + np.cumsum([0, *counts]) for name, counts in seal.counts.items()
        }
        for batch in self._batches(["metadatas", "embeddings"]):
            for about, vector in zip(batch["metadatas"], batch["embeddings"], strict=True):
                if about["document"] in first and about["vectors"]:
                    row = int(first[about["document"]][about["page"] - 1]) + about["vector"]
                    yield row, vector[None]

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise ConfigurationError(FORKED)
