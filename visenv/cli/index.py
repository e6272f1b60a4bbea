"""Implements `visenv index DOCUMENTS --out INDEX`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class IndexCommand:
    """Embed the pages of a folder of documents, once, for search by meaning.

    Then ``gym.make("visenv/ArmDoc-v0", ..., ranker="text:<index>")`` finds pages by it. An index
    that was interrupted goes on where it was; documents that are new since are added, and one whose
    number of pages changed is embedded again. Other changes are not seen: begin another index. A
    document that cannot be opened is left out and named.
    """

    documents: Annotated[Path, tyro.conf.Positional]
    """Folder of PDFs or page images."""
    out: Path
    """Folder of the index."""
    embedder: str = "text"
    """What embeds a page: "text" (its text layer) or "clip" (its image)."""
    model: str | None = None
    """Weights: a hub name or a folder; by default all-MiniLM-L6-v2, and clip-ViT-B-32."""
    device: str = "cpu"
    """PyTorch device."""

    def run(self) -> None:
        """Embed what is missing, and seal."""
        from visenv.cli.tables import progress
        from visenv.documents.library import FolderLibrary
        from visenv.documents.page_store import PageStore
        from visenv.documents.rankers import open_embedder
        from visenv.errors import DataError

        library = FolderLibrary(self.documents)
        embedder = open_embedder(self.embedder, self.model, self.device)
        pages = 0
        left_out: list[str] = []
        with (
            PageStore(self.out, embedder) as store,
            progress("documents", len(library.names)) as advance,
        ):
            for name in library.names:
                try:
                    pages += store.ingest(library.document(name))
                except DataError as error:
                    left_out.append(f"left out: {error}")
                advance()
            documents = len(store.documents)
        print(*left_out, f"{pages} pages embedded, {documents} documents in {self.out}", sep="\n")
        print(f'use it: gym.make("visenv/ArmDoc-v0", ranker="{self.embedder}:{self.out}", ...)')
