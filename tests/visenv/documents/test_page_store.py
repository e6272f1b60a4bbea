"""Tests the page store on real Chroma: kills, forks, spawned processes, shared folders."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

from tests.text_documents import TextDocument, WordEmbedder
from visenv.documents.document import Document
from visenv.documents.rankers import PageStore, VectorRanker
from visenv.errors import ConfigurationError
from visenv.retrieval.sealed_vectors import SealedVectors, read_manifest
from visenv.retrieval.vectors import Vectors

pytestmark = pytest.mark.component("chromadb")


class CountingEmbedder(WordEmbedder):
    """Records the pages that it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.embedded: list[tuple[str, int]] = []

    @override
    def embed_pages(self, document: Document, pages: Sequence[int]) -> list[Vectors]:
        vectors = super().embed_pages(document, pages)
        self.embedded += [(document.name, page) for page in pages]
        return vectors


def report(name: str, pages: int = 20) -> TextDocument:
    """Return a document whose page k has k % 4 lines, so one page in four has no vector."""
    return TextDocument(
        name, ["\n".join(f"{name} page{page} line{line}" for line in range(page % 4))
               for page in range(1, pages + 1)]
    )  # fmt: skip


def expected_vectors(documents: Sequence[TextDocument]) -> Vectors:
    """Return the vectors that a seal of these documents must hold, in the order of their names."""
    embedder = WordEmbedder()
    in_order = sorted(documents, key=lambda document: document.name)
    return np.concatenate(
        [
            vectors
            for document in in_order
            for vectors in embedder.embed_pages(document, range(1, len(document) + 1))
        ]
    )


def sealed_vectors(folder: Path) -> Vectors:
    vectors: Vectors = np.load(folder / read_manifest(folder)[1])
    return vectors


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(folder: Path) -> Iterator[PageStore]:
    opened = PageStore(folder, CountingEmbedder())
    yield opened
    opened.close()


# ----------------------------------------------------------------------- ingesting and searching


def test_ingested_pages_are_found_exactly(store: PageStore) -> None:
    documents = [report("b", 7), report("a", 30)]
    assert [store.ingest(document) for document in documents] == [7, 30]
    ranker = VectorRanker(store.seal(), WordEmbedder())
    assert np.array_equal(sealed_vectors(store.folder), expected_vectors(documents))
    for page in (1, 2, 3, 5, 29, 30):
        assert ranker.rank(documents[1], f"a page{page} line0", 3)[0] == page
    assert ranker.rank(documents[0], "b page6 line1", 5)[0] == 6


def test_ingesting_again_embeds_nothing_and_keeps_the_seal(store: PageStore) -> None:
    store.ingest(report("a"))
    store.seal()
    array = read_manifest(store.folder)[1]
    assert store.ingest(report("a")) == 0
    assert not store.stale
    store.seal()
    assert read_manifest(store.folder)[1] == array


def test_document_whose_number_of_pages_changed_is_ingested_again(store: PageStore) -> None:
    store.ingest(report("a", 9))
    assert store.ingest(report("a", 6)) == 6
    assert store.seal().seal.groups == {"a": [page % 4 for page in range(1, 7)]}
    assert np.array_equal(sealed_vectors(store.folder), expected_vectors([report("a", 6)]))


def test_removed_document_is_gone_from_the_next_seal(store: PageStore) -> None:
    store.ingest(report("a"))
    store.ingest(report("b"))
    vectors = store.seal()
    store.remove("a")
    assert store.stale
    assert set(vectors.seal.groups) == {"a", "b"}  # readers see the old seal until the next one
    store.seal()
    assert store.documents == ["b"]
    assert vectors.group("a") is None


def test_page_that_cannot_be_read_has_no_vectors_and_the_rest_has(
    store: PageStore, caplog: pytest.LogCaptureFixture
) -> None:
    texts = [f"page{page}" for page in range(1, 20)]
    assert store.ingest(TextDocument("d", texts, broken=[5])) == 19
    assert "Page 5 of 'd' has no vectors" in caplog.text
    assert store.seal().seal.groups == {"d": [1] * 4 + [0] + [1] * 14}


def test_empty_store_seals(store: PageStore) -> None:
    assert store.seal().seal.groups == {}


def test_embedder_that_breaks_its_promise_is_refused_before_anything_is_stored(
    store: PageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        store.embedder, "embed_pages", lambda _, pages: [np.ones((1, 64), np.float32)] * len(pages)
    )
    with pytest.raises(ConfigurationError, match="of unit length"):
        store.ingest(report("a"))
    assert store._store._collection.count() == 0


# -------------------------------------------------------------------------------- one embedder


def test_embedder_of_another_name_or_dimension_is_refused(store: PageStore) -> None:
    store.ingest(report("a", 2))
    store.close()
    for other in (WordEmbedder("clip"), WordEmbedder(dimension=128)):
        with pytest.raises(
            ConfigurationError, match=r"embedder 'words' \(dimension 64\)"
        ) as caught:
            PageStore(store.folder, other)
        assert f"{other.name!r} (dimension {other.dimension})" in str(caught.value)
    with PageStore(store.folder, WordEmbedder()) as again:  # the refused stores left no lock
        assert again.documents == ["a"]


# --------------------------------------------------------------------------- stale and rebuilt


def test_stale_vectors_are_noticed_and_rebuilt_by_the_owner(folder: Path) -> None:
    with PageStore(folder, WordEmbedder()) as store:
        store.ingest(report("a"))
    store = PageStore(folder, WordEmbedder())
    store.ingest(report("b"))
    store.close()  # not sealed, as after a kill
    assert list(SealedVectors(folder).seal.groups) == ["a"]
    with PageStore(folder, WordEmbedder()) as store:
        assert store.stale
    assert list(SealedVectors(folder).seal.groups) == ["a", "b"]
    with PageStore(folder, WordEmbedder()) as store:
        assert not store.stale


@pytest.mark.parametrize("lost", ["sealed.json", "vectors-*"])
def test_lost_file_is_made_again(folder: Path, lost: str) -> None:
    with PageStore(folder, WordEmbedder()) as store:
        store.ingest(report("a"))
    next(folder.glob(lost)).unlink()
    with PageStore(folder, WordEmbedder()) as store:
        assert store.stale
    assert np.array_equal(sealed_vectors(folder), expected_vectors([report("a")]))


def test_page_of_which_rows_are_missing_is_ingested_again(folder: Path) -> None:
    with PageStore(folder, WordEmbedder()) as store:
        store.ingest(report("a"))
        store.seal()
        store._store._collection.delete(ids=["a/3/1"])  # one of the three vectors of page 3
    embedder = CountingEmbedder()
    with PageStore(folder, embedder) as store:
        assert store.documents == []
        assert store.ingest(report("a")) == 1
    assert embedder.embedded == [("a", 3)]
    assert np.array_equal(sealed_vectors(folder), expected_vectors([report("a")]))


def test_document_that_is_incomplete_is_not_sealed(folder: Path) -> None:
    with PageStore(folder, WordEmbedder()) as store:
        store.ingest(report("a"))
        store.ingest(report("b"))
        store.seal()
        store._store._collection.delete(where={"$and": [{"document": "a"}, {"page": 20}]})
        store._store._collection.delete(ids=["a/7/0"])
    with PageStore(folder, WordEmbedder()) as store:
        pass
    assert list(SealedVectors(folder).seal.groups) == ["b"]


_SLOW_WRITER = """
import sys, time
from visenv.documents.rankers import PageStore
from tests.text_documents import TextDocument, WordEmbedder

class Slow(WordEmbedder):
    def embed_pages(self, document, pages):
        time.sleep(0.02)
        return super().embed_pages(document, pages)

with PageStore(sys.argv[1], Slow()) as store:
    print("open", flush=True)
    for number in range(40):
        name = f"d{number:02}"
        lines = lambda page: "\\n".join(f"{name} page{page} line{line}" for line in range(page % 4))
        print(store.ingest(TextDocument(name, [lines(page) for page in range(1, 41)])), flush=True)
"""


def test_killed_while_ingesting_nothing_is_doubled_or_lost(folder: Path) -> None:
    embedded = 0
    for documents_before_the_kill in (1, 2):
        writer = subprocess.Popen(
            [sys.executable, "-c", _SLOW_WRITER, str(folder)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        new = 0
        while new < documents_before_the_kill:
            pages = int(writer.stdout.readline())
            embedded += pages
            new += pages > 0
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
    assert embedded >= 80
    wanted = [report(f"d{number:02}", 40) for number in range(5)]
    embedder = CountingEmbedder()
    with PageStore(folder, embedder) as store:
        assert len(store.documents) >= 3  # the killed writers finished these
        for document in wanted:
            store.ingest(document)
        for name in store.documents[5:]:
            store.remove(name)
        rows = store._store._collection.get()
    assert len(embedder.embedded) == len(set(embedder.embedded)) <= 40 * (5 - 3)
    assert len(rows["ids"]) == sum(max(1, page % 4) for _ in wanted for page in range(1, 41))
    assert np.array_equal(sealed_vectors(folder), expected_vectors(wanted))


# -------------------------------------------------------------------------------- many processes


def test_store_allows_one_writer_at_a_time(store: PageStore) -> None:
    with pytest.raises(ConfigurationError, match=f"written by process {os.getpid()}"):
        PageStore(store.folder, WordEmbedder())
    code = (
        "import sys; from visenv.documents.rankers import PageStore\n"
        "from tests.text_documents import WordEmbedder\n"
        "PageStore(sys.argv[1], WordEmbedder())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(store.folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert f"written by process {os.getpid()}" in done.stderr


def _search(ranker: VectorRanker, answers: Any) -> None:
    """Find each page of document a many times; runs in a child process."""
    document = report("a")
    answers.put([ranker.rank(document, f"a page{page} line0", 1)[0] for page in (1, 2, 3, 5) * 10])


def test_forked_children_search_while_the_owner_has_chroma_open(store: PageStore) -> None:
    store.ingest(report("a"))
    ranker = VectorRanker(store.seal(), WordEmbedder())
    fork = multiprocessing.get_context("fork")
    answers = fork.Queue()
    children = [fork.Process(target=_search, args=(ranker, answers)) for _ in range(3)]
    for child in children:
        child.start()
    found = [answers.get(timeout=60) for _ in children]
    for child in children:
        child.join(60)
    assert found == [[1, 2, 3, 5] * 10] * 3
    assert [child.exitcode for child in children] == [0, 0, 0]


def test_spawned_processes_search(folder: Path) -> None:
    with PageStore(folder, WordEmbedder()) as store:
        store.ingest(report("a"))
    ranker = pickle.dumps(VectorRanker(SealedVectors(folder), WordEmbedder()))
    code = (
        "import json, pickle, sys\n"
        "from tests.text_documents import TextDocument\n"
        "ranker = pickle.load(sys.stdin.buffer)\n"
        "document = TextDocument('a', [''] * 20)\n"
        "print(json.dumps([list(ranker.rank(document, f'a page{page} line0', 1))"
        " for page in (1, 2, 3)]), 'chromadb' in sys.modules)"
    )
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    for reader in readers:
        said, _ = reader.communicate(ranker, timeout=120)
        answer, chroma_is_loaded = said.decode().rsplit(maxsplit=1)
        assert (json.loads(answer), chroma_is_loaded) == ([[1], [2], [3]], "False")


def test_forked_child_that_would_hang_in_chroma_is_refused(
    store: PageStore, tmp_path: Path
) -> None:
    def attempts() -> Iterator[Any]:
        yield lambda: store.ingest(report("a"))
        yield lambda: store.remove("a")
        yield store.seal
        yield lambda: PageStore(tmp_path / "own", WordEmbedder())

    child = os.fork()
    if child == 0:
        refused = 0
        for attempt in attempts():
            try:
                attempt()
            except ConfigurationError as error:
                refused += "spawn" in str(error)
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4


def test_forked_child_does_not_take_the_lock_away(folder: Path) -> None:
    store = PageStore(folder, WordEmbedder())
    child = os.fork()
    if child == 0:
        store.close()  # has no effect in the child
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(ConfigurationError, match="one writer at a time"):
        PageStore(folder, WordEmbedder())
    store.close()
    PageStore(folder, WordEmbedder()).close()


def test_readers_that_were_open_while_the_owner_writes_stay_right(store: PageStore) -> None:
    store.ingest(report("a"))
    ranker = VectorRanker(store.seal(), WordEmbedder())
    for number in range(5):
        store.ingest(report(f"b{number}"))
        assert ranker.rank(report("a"), "a page3 line0", 1) == [3]
        store.seal()
        assert ranker.rank(report("a"), "a page3 line0", 1) == [3]
        assert ranker.rank(report(f"b{number}"), f"b{number} page2 line1", 1) == [2]
