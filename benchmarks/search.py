"""Measures local search in 100,000 passages: building, memory, time of a query, hit rate.

    python benchmarks/search.py
    python benchmarks/search.py --passages 10000 --chroma 10000

The corpus is synthetic: 60,000 words whose frequencies follow Zipf's law, in passages of 60 to 140
words. A query consists of six distinct words of one passage; it is a hit if that passage is among
the first five.

* `words:` with several budgets, and without one; as baselines SQLite's own FTS5 ranking and bm25s
(pip install bm25s) on the same passages and queries. `benchmarks/bm25.py` compares their rankings.
* Building `meaning:` from random unit vectors, which are the worst case for an approximate index,
and searching them, with a one-layer encoder that is made here; as the baseline Chroma's HNSW index
of them.
* `Encoder` with 64 concurrent threads, as episodes use it, and with sequential calls.

Each engine is built and queried in a separate process. Milliseconds are wall time and processor
time: the best of three rounds of each query, then the median over the queries. Other load affects
processor time less. Target: 5 ms a query.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"

import json
import multiprocessing
import platform
import sqlite3
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from visenv.retrieval.vectors import Encoder, Vectors
from visenv.scorers.backends.encoder import PACKAGED_MODEL
from visenv.search import Searcher, meaning, open_searcher, words
from visenv.search.corpus import Corpus
from visenv.search.words import WordSearch

VOCABULARY, DIMENSION, RESULTS = 60_000, 384, 5
ROUNDS = 3
ENCODER = "encoder/whole"
BUDGETS = (20_000, 50_000, 200_000)
PACKAGES = ("numpy", "chromadb", "torch")

Ask = Callable[[str], list[str]]
"""Finds the addresses of passages."""


@dataclass(frozen=True)
class Args:
    """Sets the options of the measurement."""

    passages: int = 100_000
    """Number of passages of the corpus."""
    queries: int = 200
    """Number of queries of each engine; a tenth for slow engines."""
    chroma: int = 100_000
    """Number of passages in Chroma's own index, which takes minutes."""


# ------------------------------------------------------------------------------------ the corpus


def vocabulary(rng: np.random.Generator) -> np.ndarray:
    """Return words that end in a, o or u, which Porter's stemmer does not change."""
    syllables = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
    made: dict[str, None] = {}
    while len(made) < VOCABULARY:
        word = "".join(rng.choice(syllables, int(rng.integers(2, 5))))
        if word[-1] in "aou":
            made[word] = None
    return np.array(list(made))


def write_corpus(file: Path, passages: int, queries: int) -> list[tuple[str, str]]:
    """Write passages, titled by their two rarest words; return an address and a query for each."""
    rng = np.random.default_rng(0)
    known, often = vocabulary(rng), 1 / (np.arange(VOCABULARY) + 2.7)
    lengths = rng.integers(60, 141, passages)
    drawn = rng.choice(VOCABULARY, int(lengths.sum()), p=often / often.sum())
    parts = np.split(drawn, np.cumsum(lengths)[:-1])
    with file.open("w", encoding="utf-8") as out:
        for number, part in enumerate(parts):
            title = " ".join(known[np.sort(part)[-2:]])
            row = {"title": title, "text": " ".join(known[part]), "url": str(number)}
            out.write(json.dumps(row) + "\n")
    asked = rng.integers(passages, size=queries)
    return [
        (str(number), " ".join(known[rng.choice(np.unique(parts[number]), 6, replace=False)]))
        for number in asked
    ]


# ------------------------------------------------------------------------------------ the engines


def corpus(file: Path) -> Corpus:
    return Corpus(file, words=200)  # no passage is split


def addresses(searcher: Searcher) -> Ask:
    return lambda query: [passage.url for passage in searcher.search(query, RESULTS)]


def build_plain(folder: Path, file: Path) -> None:
    """Build an FTS5 index as its manual describes."""
    connection = sqlite3.connect(folder / "plain.sqlite")
    connection.execute(
        "CREATE VIRTUAL TABLE plain USING fts5 (title, text, url UNINDEXED, tokenize = 'porter')"
    )
    with connection:
        connection.executemany("INSERT INTO plain VALUES (?, ?, ?)", corpus(file))
    connection.execute("INSERT INTO plain (plain) VALUES ('optimize')")
    connection.close()


def open_plain(folder: Path) -> Ask:
    connection = sqlite3.connect(folder / "plain.sqlite")
    sql = f"SELECT url FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT {RESULTS}"
    return lambda query: [url for (url,) in connection.execute(sql, (query.replace(" ", " OR "),))]


def build_bm25s(folder: Path, file: Path) -> None:
    bm25s = import_module("bm25s")
    texts = [f"{passage.title} {passage.title} {passage.text}" for passage in corpus(file)]
    index = bm25s.BM25(k1=1.2)
    index.index(bm25s.tokenize(texts, stopwords=None, show_progress=False), show_progress=False)
    index.save(folder / "bm25s")


def open_bm25s(folder: Path) -> Ask:
    bm25s = import_module("bm25s")
    index = bm25s.BM25.load(folder / "bm25s", mmap=True)

    def ask(query: str) -> list[str]:
        tokens = bm25s.tokenize([query], stopwords=None, show_progress=False)
        found = index.retrieve(tokens, k=RESULTS, show_progress=False)
        return [str(number) for number in found.documents[0]]

    return ask


class RandomVectors:
    """Represents an encoder without weights, so that only the store is measured."""

    dimension = DIMENSION

    def __init__(self, name: str) -> None:
        self.name = name
        self._rng = np.random.default_rng(0)

    def encode(self, sentences: Sequence[str]) -> Vectors:
        return unit_vectors(len(sentences), self._rng)


def build_meaning(folder: Path, file: Path) -> None:
    encoder: Any = RandomVectors(str(folder.parent / ENCODER))
    meaning.build(folder, encoder)


def unit_vectors(count: int, rng: np.random.Generator) -> Vectors:
    made = rng.standard_normal((count, DIMENSION), np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


def make_encoder(folder: Path) -> None:
    """Write a sentence encoder of one layer with random weights, whose tokens are two letters."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizer

    folder.mkdir(parents=True)
    pieces = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces, *("##" + p for p in pieces)]
    (folder / "vocab.txt").write_text("\n".join(tokens))
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(tokens), hidden_size=DIMENSION, num_hidden_layers=1,
        num_attention_heads=6, intermediate_size=2 * DIMENSION,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    transformer = Transformer(str(folder))
    whole = SentenceTransformer(modules=[transformer, Pooling(DIMENSION)], device="cpu")
    whole.save(str(folder / "whole"))


@dataclass(frozen=True)
class Engine:
    """Describes a row of the table: how the engine is built (unless another row did) and opened."""

    folder: str
    open: Callable[[Path], Ask]
    build: Callable[[Path, Path], Any] | None = None
    slow: bool = False


def words_of(budget: int) -> Callable[[Path], Ask]:
    return lambda folder: addresses(WordSearch(folder, budget))


def named(kind: str) -> Callable[[Path], Ask]:
    return lambda folder: addresses(open_searcher(f"{kind}:{folder}"))


ENGINES = {
    "words": Engine(
        "words", named("words"), lambda folder, file: words.build(folder, corpus(file))
    ),
    **{f"  budget {budget:,}": Engine("words", words_of(budget)) for budget in BUDGETS},
    "  no budget": Engine("words", words_of(10**9)),
    "FTS5's own ranking": Engine("plain", open_plain, build_plain, slow=True),
    "bm25s": Engine("bm25s", open_bm25s, build_bm25s),
    "meaning": Engine("words", named("meaning"), build_meaning),
}


# ------------------------------------------------------------------------------------ measuring


def alone(act: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of `act` in a new process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(act, *arguments).result()


def megabytes() -> float:
    """Return the peak memory of this process; `getrusage` would include its parent's."""
    status = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def build(name: str, folder: Path, file: Path) -> tuple[float, float, float]:
    """Return wall and processor seconds, and the peak memory of the process in megabytes."""
    make = ENGINES[name].build
    assert make is not None
    wall, cpu = time.perf_counter(), time.process_time()
    make(folder, file)
    return time.perf_counter() - wall, time.process_time() - cpu, megabytes()


def ask(
    name: str, folder: Path, queries: list[tuple[str, str]]
) -> tuple[list[float], list[float], float, float]:
    """Return wall and processor milliseconds of each query, hit rate, and peak megabytes.

    The times are the best of three rounds, which is closest to an idle machine.
    """
    found = ENGINES[name].open(folder)
    hits = [address in found(query) for address, query in queries]
    walls, cpus = ([float("inf")] * len(queries) for _ in range(2))
    for _ in range(ROUNDS):
        for place, (_, query) in enumerate(queries):
            wall, cpu = time.perf_counter(), time.process_time()
            found(query)
            walls[place] = min(walls[place], 1000 * (time.perf_counter() - wall))
            cpus[place] = min(cpus[place], 1000 * (time.process_time() - cpu))
    return walls, cpus, float(np.mean(hits)), megabytes()


def on_disk(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def compare(
    root: Path, file: Path, queries: list[tuple[str, str]], names: Collection[str] = ENGINES.keys()
) -> None:
    print(f"{'':20} {'build: s':>9} {'cpu s':>7} {'MB':>6} {'disk MB':>8}", end="")
    print(f" {'query: ms':>10} {'p95':>7} {'cpu ms':>7} {'p95':>7} {'MB':>6} {'hits':>6}")
    for name in names:
        engine = ENGINES[name]
        if name == "bm25s" and find_spec(name) is None:
            print("bm25s is not installed: pip install bm25s")
            continue
        folder = root / engine.folder
        folder.mkdir(exist_ok=True)
        cells = " " * 34
        if engine.build is not None:
            before = on_disk(folder)
            wall, cpu, memory = alone(build, name, folder, file)
            disk = on_disk(folder) - before
            cells = f"{wall:9.1f} {cpu:7.1f} {memory:6.0f} {disk:8.0f}"
        asked = queries[: len(queries) // 10] if engine.slow else queries
        walls, cpus, hits, memory = alone(ask, name, folder, asked)
        times = "".join(f"{cell:8.2f}" for each in (walls, cpus) for cell in middle_and_p95(each))
        print(f"{name:20} {cells}   {times} {memory:6.0f} {hits:6.3f}", flush=True)


def middle_and_p95(times: list[float]) -> tuple[float, float]:
    middle, last = np.percentile(times, [50, 95])
    return float(middle), float(last)


def compare_chroma(root: Path, passages: int, queries: int) -> None:
    """Compare Chroma's index with its defaults and exact search, for the same nearest five."""
    chromadb: Any = import_module("chromadb")
    rng = np.random.default_rng(0)
    vectors = unit_vectors(passages, rng)
    settings = chromadb.config.Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(str(root / "chroma"), settings=settings)
    space = {"hnsw": {"space": "ip"}}
    collection = client.create_collection("all", embedding_function=None, configuration=space)
    started = time.perf_counter(), time.process_time()
    for first in range(0, passages, 1000):
        part = vectors[first : first + 1000]
        collection.add(ids=[str(first + row) for row in range(len(part))], embeddings=part)
    taken = time.perf_counter() - started[0], time.process_time() - started[1]
    ours, theirs, agreed = [], [], 0
    for query in unit_vectors(queries, rng) + 0.5 * vectors[:queries]:
        start = time.process_time()
        best = np.argsort(-(vectors @ query))[:RESULTS]
        middle = time.process_time()
        found = collection.query(query_embeddings=query[None], n_results=RESULTS)["ids"][0]
        ours.append(1000 * (middle - start))
        theirs.append(1000 * (time.process_time() - middle))
        agreed += len({int(name) for name in found} & {int(row) for row in best})
    client.close()
    print(
        f"nearest {RESULTS} of {passages:,} random unit vectors of {DIMENSION}, cpu ms median, p95"
    )
    print("  every vector compared {:8.2f} {:8.2f}".format(*middle_and_p95(ours)))
    print("  Chroma's HNSW index   {:8.2f} {:8.2f}".format(*middle_and_p95(theirs)), end="")
    print(
        f"   of the same five {agreed / RESULTS / queries:.2f}; built in {taken[0]:.0f} s", end=""
    )
    print(f", {taken[1]:.0f} s of the processor")


def time_encoder(model: str, name: str, threads: int = 64, each: int = 4) -> None:
    """Print queries per second of processor time, sequentially and with concurrent threads."""
    texts = [[f"query {k} of thread {thread}" for k in range(each)] for thread in range(threads)]
    encoder = Encoder(model)
    encoder.encode(["warm"])
    start = time.process_time()
    for queries in texts:
        for query in queries:
            encoder.encode([f"{query}, alone"])  # different texts, because vectors are cached
    middle, before = time.process_time(), encoder.counts().batches
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda queries: [encoder.encode([query]) for query in queries], texts))
    end, passes = time.process_time(), encoder.counts().batches - before
    asked = threads * each
    one_by_one, at_once = asked / (middle - start), asked / (end - middle)
    print(f"  {name:20} one by one {one_by_one:5.0f}, by {threads} threads {at_once:5.0f}", end="")
    print(f" = {at_once / one_by_one:.1f} times, in {passes} passes for {asked} queries")


def main(args: Args) -> None:
    load = " ".join(f"{average:.2f}" for average in os.getloadavg())
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    print(f"python {platform.python_version()}, sqlite {sqlite3.sqlite_version}, {packages}")
    print(f"{os.cpu_count()} CPUs, load {load}; {args.passages:,} passages, {args.queries} queries")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        queries = write_corpus(root / "corpus.jsonl", args.passages, args.queries)
        alone(make_encoder, root / "encoder")
        compare(root, root / "corpus.jsonl", queries)
        if args.chroma:
            compare_chroma(root, args.chroma, min(args.queries, 100))
        print("sentence encoder, queries a second of the processor")
        time_encoder(str(root / ENCODER), "one layer, made here")
        time_encoder(PACKAGED_MODEL, PACKAGED_MODEL)
    print(f"load at the end {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main(tyro.cli(Args))
