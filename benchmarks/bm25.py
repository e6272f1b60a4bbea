"""Compares BM25 of visenv with bm25s: rankings, time and memory, on documents and corpora.

    pip install bm25s
    python benchmarks/bm25.py                                # a corpus of 100,000 passages: minutes
    python benchmarks/bm25.py --passages 1000 10000

* Golden queries: the queries that find the evidence in the procedural worlds of ArmDoc and
ArftSearch. A ranking is right if it equals that of the formula, computed one text and one word at a
time in double precision; texts with equal scores are ordered by their indices.
* A document of 20 pages: building the index of its words, and a query of 6 words.
* Corpora, as in `benchmarks/search.py`: building, memory, and the time of a query, which with
visenv includes reading the passages that were found.

A title counts twice. bm25s has no field weights, so it gets titles twice, which also makes the
texts longer; and, for comparison, texts without titles.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import importlib
import math
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from benchmarks.search import compare, write_corpus
from visenv.documents.bm25 import Bm25Ranker
from visenv.documents.bm25 import words as page_words
from visenv.envs.arft.search.world import EntitiesWorld, WorldEngine
from visenv.envs.arm.world.reports import ReportsWorld
from visenv.retrieval.bm25 import Bm25, PostingsTable
from visenv.search.corpus import Passage
from visenv.search.words import TOKENIZER, WordSearch, build

ENGINES = ("words", "  no budget", "bm25s")
PAGES, SHOWN = 20, 5

Texts = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Args:
    """Sets the options of the measurement."""

    passages: tuple[int, ...] = (1_000, 10_000, 100_000)
    """Numbers of passages of the corpora."""
    queries: int = 200
    """Number of queries of each corpus."""
    samples: int = 200
    """Samples of each world that provide golden queries."""
    rounds: int = 100
    """Repetitions of indexing a document, and queries of a document."""


# ---------------------------------------------------------------------- the formula, directly


class Plain:
    """Computes BM25 for a known set of query words, one text and one word at a time.

    Args:
        texts: The words of each text.
        titles: The words of its title, which count twice in the score and once in the length.
        asked: The words that occur in queries.
    """

    def __init__(self, texts: Texts, titles: Texts, asked: set[str], k1: float) -> None:
        lengths = [len(text) + len(title) for text, title in zip(texts, titles, strict=True)]
        mean = sum(lengths) / len(lengths)
        self._norms = [k1 * (0.25 + 0.75 * length / mean) for length in lengths]
        self._counts: dict[str, dict[int, int]] = {word: {} for word in asked}
        for number, (text, title) in enumerate(zip(texts, titles, strict=True)):
            for word in (*text, *title, *title):
                if word in asked:
                    holding = self._counts[word]
                    holding[number] = holding.get(number, 0) + 1

    def best(self, query: Iterable[str], count: int) -> list[int]:
        total = len(self._norms)
        scores: defaultdict[int, float] = defaultdict(float)
        for word in query:
            holding = self._counts[word]
            rarity = math.log(1 + (total - len(holding) + 0.5) / (len(holding) + 0.5))
            for number, times in holding.items():
                scores[number] += rarity * times / (times + self._norms[number])
        # Rounded, so that texts whose sums differ by rounding errors have equal scores.
        return sorted(scores, key=lambda number: (-round(scores[number], 12), number))[:count]


def bm25s_index(texts: Texts, k1: float) -> Any:
    bm25s = importlib.import_module("bm25s")
    index = bm25s.BM25(k1=k1)
    index.index(list(map(list, texts)), show_progress=False)
    return index


def bm25s_best(index: Any, query: Iterable[str], count: int) -> list[int]:
    known = [word for word in query if word in index.vocab_dict]
    if not known:
        return []
    found, scores = index.retrieve([known], k=count, show_progress=False)
    return [int(number) for number, score in zip(found[0], scores[0], strict=True) if score > 0]


def bm25s_stable(index: Any, query: Iterable[str], count: int) -> list[int]:
    """Return the ranking of bm25s, with ties ordered by the indices of the texts."""
    known = [word for word in query if word in index.vocab_dict]
    if not known:
        return []
    scores = index.get_scores(known)
    return [int(n) for n in np.argsort(-scores, kind="stable")[:count] if scores[n] > 0]


# -------------------------------------------------------------------------------------- rankings


class Agreement:
    """Counts the right rankings of each engine, by its name."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._right: Counter[str] = Counter()
        self._asked = 0

    def add(self, right: Sequence[int], **rankings: Sequence[int]) -> None:
        self._asked += 1
        self._right.update({name: list(right) == list(found) for name, found in rankings.items()})

    def show(self) -> None:
        counts = ", ".join(f"{name} {right}" for name, right in self._right.items())
        print(f"  {self._label:34} of {self._asked:5}: {counts}", flush=True)


def golden_pages(preset: str, samples: int) -> None:
    world, ranker, agreement = ReportsWorld(preset), Bm25Ranker(), Agreement(f"ArmDoc, {preset}")
    for seed in range(samples):
        sample = world.sample(np.random.default_rng(seed))
        document = world.library.document(sample.ground_truth.document)
        texts = [page_words(document.page_text(page)) for page in range(1, len(document) + 1)]
        asked = [sample.ground_truth.gold_query, sample.question]
        plain = Plain(texts, [()] * len(texts), set(page_words(" ".join(asked))), ranker.k1)
        peer = bm25s_index(texts, ranker.k1)
        for query in asked:
            words, count = page_words(query), min(SHOWN, len(texts))
            agreement.add(
                plain.best(words, count),
                visenv=[page - 1 for page in ranker.rank(document, query, count)],
                bm25s=bm25s_best(peer, words, count),
                bm25s_ties_by_number=bm25s_stable(peer, words, count),
            )
    agreement.show()


def golden_articles(preset: str, samples: int) -> None:
    source, agreement = EntitiesWorld(preset), Agreement(f"ArftSearch, {preset}")
    for seed in range(samples):
        sample = source.sample(np.random.default_rng(seed))
        world = sample.ground_truth.world
        articles = WorldEngine(world.preset, world.seed).articles()
        with tempfile.TemporaryDirectory() as name:
            compare_corpus(
                Path(name), articles, [*sample.ground_truth.queries, sample.question], agreement
            )
    agreement.show()


def compare_corpus(
    folder: Path, passages: Sequence[Passage], queries: Sequence[str], agreement: Agreement
) -> None:
    build(folder, [Passage(p.title, p.text, str(number)) for number, p in enumerate(passages)])
    searcher = WordSearch(folder, budget=10**9)
    cut = searcher._words.of  # noqa: SLF001 - all engines get the same words
    titles, texts = stems([p.title for p in passages]), stems([p.text for p in passages])
    asked = {query: cut(query) for query in queries}
    plain = Plain(texts, titles, {word for words in asked.values() for word in words}, 1.2)
    peer = bm25s_index([(*t, *t, *x) for t, x in zip(titles, texts, strict=True)], 1.2)
    for query, words in asked.items():
        agreement.add(
            plain.best(words, SHOWN),
            visenv=[int(passage.url) for passage in searcher.search(query, SHOWN)],
            bm25s=bm25s_best(peer, words, SHOWN),
            bm25s_ties_by_number=bm25s_stable(peer, words, SHOWN),
        )
    searcher.close()


def stems(texts: Sequence[str]) -> list[list[str]]:
    """Return the words of each text, as FTS5 splits and stems them."""
    import sqlite3

    connection = sqlite3.connect(":memory:")
    connection.executescript(
        f"""
        CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = "{TOKENIZER}");
        CREATE VIRTUAL TABLE words USING fts5vocab (texts, 'instance');
        """
    )
    connection.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(texts, 1))
    found: list[list[str]] = [[] for _ in texts]
    for word, number in connection.execute("SELECT term, doc FROM words"):
        found[number - 1].append(word)
    connection.close()
    return found


# --------------------------------------------------------------------------------------- documents


def milliseconds(act: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Return processor time in milliseconds: the median, and the best round."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        act()
        times.append(1000 * (time.process_time() - start))
    return float(np.median(times)), min(times)


def compare_document(rounds: int) -> None:
    rng = np.random.default_rng(0)
    words = [f"word{number}" for number in range(3000)]
    texts = [" ".join(rng.choice(words, 400)) for _ in range(PAGES)]
    queries = iter([page_words(" ".join(rng.choice(words, 6))) for _ in range(2 * rounds)])

    def ours() -> PostingsTable:
        return PostingsTable([page_words(text) for text in texts], 1.5, 0.75)

    def theirs() -> Any:
        return bm25s_index([page_words(text) for text in texts], 1.5)

    bm25, peer = Bm25(PAGES, ours().get), theirs()
    print(f"a document of {PAGES} pages of 400 words: ms of the processor, median and best")
    for label, mine, other in (
        ("index", ours, theirs),
        (
            "query of 6 words",
            lambda: bm25.best(next(queries), SHOWN),
            lambda: bm25s_stable(peer, next(queries), SHOWN),
        ),
    ):
        here, there = milliseconds(mine, rounds), milliseconds(other, rounds)
        print("  {:17} visenv {:7.3f} {:7.3f}".format(label, *here), end="")
        print("   bm25s {:7.3f} {:7.3f}".format(*there), end="")
        print(f"   bm25s / visenv = {there[0] / here[0]:.1f}, {there[1] / here[1]:.1f}")


# ----------------------------------------------------------------------------------------- corpora


def compare_size(passages: int, queries: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        asked = write_corpus(root / "corpus.jsonl", passages, queries)
        print(f"a corpus of {passages:,} passages")
        compare(root, root / "corpus.jsonl", asked, ENGINES)


def rankings_of_size(passages: int, queries: int) -> None:
    """Compare rankings of the whole corpus, with and without titles."""
    from visenv.search.corpus import Corpus

    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        asked = [text for _, text in write_corpus(root / "corpus.jsonl", passages, queries)]
        titled = list(Corpus(root / "corpus.jsonl", words=200))
        untitled = [passage._replace(title="") for passage in titled]
        for label, corpus in (("titles", titled), ("no titles", untitled)):
            agreement = Agreement(f"{passages:,} passages, {label}")
            compare_corpus(root / label, corpus, asked, agreement)
            agreement.show()


def main(args: Args) -> None:
    load = " ".join(f"{average:.2f}" for average in os.getloadavg())
    print(f"numpy {version('numpy')}, bm25s {version('bm25s')}; {os.cpu_count()} CPUs, load {load}")
    print(f"the first {SHOWN}, equal to the formula in double precision")
    for preset in ("default", "tiny"):
        golden_pages(preset, args.samples)
    for preset in ("default", "tiny"):
        golden_articles(preset, args.samples)
    rankings_of_size(min(args.passages), args.queries)
    compare_document(args.rounds)
    for passages in args.passages:
        compare_size(passages, args.queries)
    print(f"load at the end {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main(tyro.cli(Args))
