"""Implements `visenv search` for passages, and `visenv index` for documents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import OmitSubcommandPrefixes, Positional, subcommand

from visenv.terminal import printable, printable_lines


@dataclass(frozen=True)
class SearchBuildCommand:
    """Index a corpus: a folder of .txt, .md and .jsonl files, or one such file.

    gym.make("visenv/ArftSearch-v0", ..., search="words:<index>") then searches the index. If
    embedding is interrupted, the same command resumes it. Lines that cannot be read are skipped and
    listed.
    """

    corpus: Annotated[Path, Positional]
    """Folder or file."""
    out: Path
    """Folder of the index."""
    words: int = 100
    """Number of words in a passage."""
    meaning: bool = False
    """Also embed the passages, for the engine meaning:<index>."""
    model: str = "all-MiniLM-L6-v2"
    """The embedding model: a hub name or a folder."""
    device: str = "cpu"
    """PyTorch device."""

    def run(self) -> None:
        """Build the index."""
        from visenv.search.corpus import Corpus
        from visenv.search.words import build

        corpus = Corpus(self.corpus, self.words)
        count = build(self.out, corpus)
        for problem in corpus.problems:
            print(f"left out: {printable(problem)}")
        print(printable(f"{count} passages in {self.out}"))
        print(printable(f'use it: search="words:{self.out}"'))
        if self.meaning:
            self._embed(count)

    def _embed(self, count: int) -> None:
        from visenv.cli.tables import progress
        from visenv.retrieval.vectors import Encoder, index_name
        from visenv.search import meaning

        with progress("passages", count) as advance:
            new = meaning.build(self.out, Encoder(self.model, self.device), advance)
        name = index_name(f"meaning:{self.out}", self.model)
        print(printable(f'{new} passages embedded; use it: search="{name}"'))


@dataclass(frozen=True)
class SearchPassagesCommand:
    """Write the paragraphs of a question set as a corpus for `build`, without duplicates.

    HotpotQA, 2WikiMultihopQA and MuSiQue contain the paragraphs that answer a question, and others.
    """

    data: Annotated[str, Positional]
    """For example hotpotqa:<folder>?split=dev."""
    out: Path
    """The .jsonl file to write."""

    def run(self) -> None:
        """Write the passages."""
        from visenv.data.open import open_data
        from visenv.search.corpus import write_passages

        source = open_data(self.data)
        count = write_passages(source, self.out)
        for problem in source.problems:
            print(f"left out: {printable(problem)}")
        print(printable(f"{count} passages in {self.out}"))


@dataclass(frozen=True)
class SearchQueryCommand:
    """Search, and print the passages that are found."""

    engine: Annotated[str, Positional]
    """The engine, for example words:<index>, meaning:<index> or serper."""
    query: Annotated[str, Positional]
    """The query."""
    passages: int = 4
    """Maximum number of passages."""

    def run(self) -> None:
        """Print the passages."""
        from visenv.search import open_searcher

        searcher = open_searcher(self.engine)
        found = searcher.search(self.query, self.passages)
        if not found:
            print(printable(f"Nothing was found for {self.query!r}. Try other words."))
        for number, passage in enumerate(found, start=1):
            heading = f"{number}. {printable(passage.title)}  {printable(passage.url)}"
            print(f"{heading}\n   {printable_lines(passage.text)}")
        searcher.close()


@dataclass(frozen=True)
class SearchCommand:
    """Build and query search indexes."""

    step: OmitSubcommandPrefixes[
        Annotated[SearchPassagesCommand, subcommand("passages")]
        | Annotated[SearchBuildCommand, subcommand("build")]
        | Annotated[SearchQueryCommand, subcommand("ask")]
    ]

    def run(self) -> None:
        """Run the command."""
        self.step.run()


@dataclass(frozen=True)
class IndexCommand:
    """Embed the pages of a folder of documents once, for semantic search.

    gym.make("visenv/ArmDoc-v0", ..., ranker="text:<index>") then searches the index. If the command
    is interrupted, it can be resumed. New documents are added, and a document whose number of pages
    changed is embedded again. Other changes are not detected: build a new index. A document that
    cannot be opened is skipped and listed.
    """

    documents: Annotated[Path, Positional]
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
        from visenv.cli.tables import check_not_all_failed, progress
        from visenv.documents.library import FolderLibrary
        from visenv.documents.rankers import PageStore, open_embedder
        from visenv.errors import DataError
        from visenv.retrieval.vectors import index_name

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
