"""Compares page queries with Chroma's own, and stitching with Pillow.

Measures memory over episodes.

    python benchmarks/documents.py                  # stores of 1,000 and of 100,000 pages: minutes
    python benchmarks/documents.py --pages 1000

* A query of one 20-page document, without the encoder: `VectorRanker` on the sealed arrays, and as
the baseline Chroma's query with a filter for the document, on a collection of the same vectors with
Chroma's defaults, in the same process. Both search for the same pages. Target: 5 ms.
* BM25 on a 20-page document: the query, and the computation of its statistics.
* The result of `PageByQuery` for 5 pages: already rendered, and from files. The baseline is the
shortest Pillow code for the same image, from decoded pages and from files. Target: 40 ms.
* Resident memory over 10,000 episodes on 200 documents, in turn.

Times are wall-clock medians, and the best round, which is closest to an idle machine.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import PIL.Image
import tyro
from chromadb.config import Settings

from benchmarks.memory import memory_mib
from tests.text_documents import TextDocument
from visenv.documents.bm25 import Bm25Ranker
from visenv.documents.document import Document
from visenv.documents.library import FolderLibrary
from visenv.documents.overview import overview
from visenv.documents.rankers import PageStore, VectorRanker
from visenv.envs.arm.tools.pages import PageByQuery
from visenv.retrieval.vectors import Vectors
from visenv.tools.base import Store

PAGES = 20
DIMENSION = 512
A4_AT_200_DPI = (1654, 2339)
WORDS = [f"word{number}" for number in range(3000)]


@dataclass(frozen=True)
class Args:
    """Sets the options of the measurement."""

    pages: tuple[int, ...] = (1_000, 100_000)
    """Numbers of pages of the stores."""
    rounds: int = 60
    """Number of queries of each kind."""
    episodes: int = 10_000


class RandomEmbedder:
    """Makes random unit vectors, the worst case for an approximate index.

    The same page gets the same.
    """

    name = "random"
    dimension = DIMENSION

    def embed_query(self, text: str) -> Vectors:
        return self._unit([len(text), *text.encode()])

    def embed_pages(self, document: Document, pages: Sequence[int]) -> list[Vectors]:
        return [self._unit([page, *document.name.encode()]) for page in pages]

    def _unit(self, seed: list[int]) -> Vectors:
        vector = np.random.default_rng(seed).standard_normal((1, DIMENSION)).astype(np.float32)
        return vector / np.linalg.norm(vector)


class Known:
    """Represents an embedder with precomputed queries, so that only the search is measured."""

    name = "random"
    dimension = DIMENSION

    def __init__(self, query: Vectors) -> None:
        self.query = query

    def embed_query(self, text: str) -> Vectors:
        return self.query

    def embed_pages(self, document: Document, pages: Sequence[int]) -> list[Vectors]:
        raise NotImplementedError


def timed(act: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Return the duration in milliseconds, and the result."""
    start = time.perf_counter()
    result = act(*arguments)
    return 1000 * (time.perf_counter() - start), result


def line(label: str, times: list[float], remark: str = "") -> None:
    print(f"  {label:46} {statistics.median(times):9.3f} {min(times):9.3f}   {remark}")


# ---------------------------------------------------------------------------------- vector queries


def documents(pages: int) -> list[TextDocument]:
    return [TextDocument(f"d{number}", [""] * PAGES) for number in range(pages // PAGES)]


def peer_collection(folder: Path, embedder: RandomEmbedder, shelf: list[TextDocument]) -> Any:
    client = chromadb.PersistentClient(str(folder), settings=Settings(anonymized_telemetry=False))
    collection = client.create_collection("pages", embedding_function=None)
    for start in range(0, len(shelf), 50):
        part = [(document, page) for document in shelf[start : start + 50] for page in range(PAGES)]
        collection.add(
            ids=[f"{document.name}/{page + 1}" for document, page in part],
            embeddings=np.concatenate(
                [embedder.embed_pages(document, [page + 1])[0] for document, page in part]
            ),
            metadatas=[{"source": document.name, "page": page + 1} for document, page in part],
        )
    return collection


def peer_query(collection: Any, query: Vectors, name: str) -> Any:
    return collection.query(query_embeddings=query, n_results=5, where={"source": name})


def rank(ranker: VectorRanker, name: str) -> Sequence[int]:
    return ranker.rank(TextDocument(name, [""] * PAGES), "", 5)


def compare_queries(pages: int, rounds: int) -> None:
    embedder, shelf = RandomEmbedder(), documents(pages)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        with PageStore(Path(folder) / "store", embedder) as store:
            for document in shelf:
                store.ingest(document)
            taken = time.perf_counter() - started
            vectors = store.seal()
        sealed = time.perf_counter() - started - taken
        started = time.perf_counter()
        peer = peer_collection(Path(folder) / "peer", embedder, shelf)
        peer_taken = time.perf_counter() - started
        ours, theirs = [], []
        agreed = 0
        for number in range(rounds):
            name = shelf[number * 7919 % len(shelf)].name
            query = embedder.embed_query(f"query {number}")
            mine, found = timed(rank, VectorRanker(vectors, Known(query)), name)
            ours.append(mine)
            its, rows = timed(peer_query, peer, query, name)
            theirs.append(its)
            agreed += found == [about["page"] for about in rows["metadatas"][0]]
        ratio = statistics.median(theirs) / statistics.median(ours)
        print(f"query of a {PAGES}-page document, {pages:,} pages stored")
        line("visenv, sealed arrays", ours, "target 5 ms")
        line("chroma, where source = document", theirs, f"chroma / visenv = {ratio:,.0f}")
        print(f"  the same five pages in the same order: {agreed} of {rounds}")
        print(
            f"  ingest {pages / taken:,.0f} pages/s, seal {sealed:.1f} s;"
            f" peer's ingest {pages / peer_taken:,.0f} pages/s"
        )


def time_bm25(rounds: int) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 400)) for _ in range(PAGES)]
    ranker, kept = Bm25Ranker(), TextDocument("kept", texts)
    ranker.rank(kept, "word1", 5)
    queries = [" ".join(rng.choice(WORDS, 6)) for _ in range(rounds)]
    fresh = [TextDocument("new", texts) for _ in range(rounds)]
    print(f"BM25, {PAGES} pages of 400 words, 6 words asked for")
    line("statistics kept", [timed(ranker.rank, kept, query, 5)[0] for query in queries])
    line("a new document", [timed(ranker.rank, new, "word1", 5)[0] for new in fresh])


# --------------------------------------------------------------------------------------- stitching


def write_pages(root: Path, names: int, pages: int, size: tuple[int, int]) -> None:
    """Write page images that look like text: dark runs of words on white."""
    rng = np.random.default_rng(0)
    for name in range(names):
        for page in range(1, pages + 1):
            coarse = rng.random((size[1] // 12, size[0] // 6)) < 0.35
            coarse[::2] = False
            gray = PIL.Image.fromarray(np.where(coarse, 30, 255).astype(np.uint8))
            gray.resize(size, PIL.Image.Resampling.NEAREST).convert("RGB").save(
                root / f"d{name}_{page}.jpg", quality=85
            )
            (root / f"d{name}_{page}.txt").write_text(f"common word{page}")


def pillow_shrunk(page: PIL.Image.Image) -> PIL.Image.Image:
    scale = 1120 / max(page.size)
    size = int(page.width * scale), int(page.height * scale)
    return page.resize(size, PIL.Image.Resampling.BICUBIC)


def pillow_joined(pages: Sequence[PIL.Image.Image]) -> np.ndarray:
    width = sum(page.width for page in pages) + 8 * (len(pages) - 1)
    whole = PIL.Image.new("RGB", (width, max(page.height for page in pages)), (255, 255, 255))
    left = 0
    for page in pages:
        whole.paste(page, (left, (whole.height - page.height) // 2))
        left += page.width + 8
    return np.asarray(whole)


def time_stitching(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_pages(root, 1, 5, A4_AT_200_DPI)
        warm = PageByQuery(FolderLibrary(root))
        arguments = {"filename": "d0", "query": "common"}
        paths = [root / f"d0_{page}.jpg" for page in range(1, 6)]
        shrunk = [pillow_shrunk(PIL.Image.open(path)) for path in paths]
        acts: dict[str, Callable[[], object]] = {
            "visenv, pages rendered before": lambda: warm.run(arguments, Store()),
            "pillow, pages decoded and shrunk before": lambda: pillow_joined(shrunk),
            "visenv, from JPEG files": lambda: PageByQuery(FolderLibrary(root)).run(
                arguments, Store()
            ),
            "pillow, from JPEG files": lambda: pillow_joined(
                [pillow_shrunk(PIL.Image.open(path)) for path in paths]
            ),
        }
        for act in acts.values():
            act()
        times: dict[str, list[float]] = {label: [] for label in acts}
        for _ in range(rounds):  # in turn, so that other load affects all
            for label, act in acts.items():
                times[label].append(timed(act)[0])
        print("5 pages side by side, A4 at 200 dpi to 1120 px, 4.5 megapixels")
        remarks = {"visenv, pages rendered before": "target 40 ms"}
        for label, each in times.items():
            line(label, each, remarks.get(label, ""))
        document = FolderLibrary(root).document("d0")
        line("overview of these 5, from files", [timed(overview, document)[0]])


# ------------------------------------------------------------------------------------------ memory


def watch_memory(episodes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_pages(root, 200, 3, (320, 440))
        tool = PageByQuery(FolderLibrary(root, rendered_bytes=16 * 2**20))
        print(f"resident MiB over {episodes:,} episodes on 200 documents")
        for episode in range(episodes + 1):
            if episode % (episodes // 5) == 0:
                print(f"  after {episode:6,}: {memory_mib():7.1f}")
            tool.run({"filename": f"d{episode % 200}", "query": "common"}, Store())


def main(args: Args) -> None:
    load = " ".join(f"{average:.2f}" for average in os.getloadavg())
    print(f"chromadb {chromadb.__version__}, load {load}")
    print(f"{'milliseconds':48} {'median':>9} {'best':>9}")
    for pages in args.pages:
        compare_queries(pages, args.rounds)
    time_bm25(args.rounds)
    time_stitching(args.rounds)
    watch_memory(args.episodes)


if __name__ == "__main__":
    main(tyro.cli(Args))
