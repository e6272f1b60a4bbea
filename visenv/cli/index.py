"""Implements `visenv index DOCUMENTS --out INDEX`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from visenv.terminal import printable


@dataclass(frozen=True)
class IndexCommand:
    """Embed the pages of a folder of documents once, for semantic search.

    gym.make("visenv/ArmDoc-v0", ..., ranker="text:<index>") then searches the index. If the command
    is interrupted, it can be resumed. New documents are added, and a document whose number of pages
    changed is embedded again. Other changes are not detected: build a new index. A document that
    cannot be opened is skipped and listed.
    """

    documents: Annotated[Path, tyro.conf.Positional]
    """Folder of PDFs or page images."""
    out: Path
    """Folder of the index."""
    embedder: str = "text"
    """The embedded part of a page: "text" (its text layer) or "clip" (its image)."""
    model: str | None = None
    """Weights: a hub name or a folder; by default all-MiniLM-L6-v2 for text, and clip-ViT-B-32 for
    clip.
    """
    device: str = "cpu"
    """PyTorch device."""

    def run(self) -> None:
        """Embed the missing pages, and complete the index."""
        from visenv.cli.failures import check_not_all_failed
        from visenv.cli.tables import progress
        from visenv.documents.library import FolderLibrary
        from visenv.documents.page_store import PageStore
        from visenv.documents.rankers import open_embedder
        from visenv.errors import DataError
        from visenv.retrieval.index_names import index_name

        library = FolderLibrary(self.documents)
        embedder = open_embedder(self.embedder, self.model, self.device)
        pages = 0
        left_out: list[str] = []
        first_problem = ""
        with (
            PageStore(self.out, embedder) as store,
            progress("documents", len(library.names)) as advance,
        ):
            for name in library.names:
                try:
                    pages += store.ingest(library.document(name))
                except DataError as error:
                    first_problem = first_problem or str(error)
                    left_out.append(f"left out: {printable(error)}")
                advance()
            documents = len(store.documents)
        out = printable(self.out)
        print(*left_out, f"{pages} pages embedded, {documents} documents in {out}", sep="\n")
        total = len(library.names)
        check_not_all_failed("documents were left out", total, len(left_out), first_problem)
        name = index_name(f"{self.embedder}:{self.out}", embedder.name)
        print(f'use it: gym.make("visenv/ArmDoc-v0", ranker="{printable(name)}", ...)')
