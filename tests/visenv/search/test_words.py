"""Tests word search on real SQLite files: any query, and any state of the file."""

from __future__ import annotations

import gc
import pickle
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.decoding.sqlite import open_database
from visenv.errors import ConfigurationError, DataError, ServiceError
from visenv.search import Passage
from visenv.search.words import FILE, WordSearch, build


def test_passage_that_is_meant_comes_first(index: Path, articles: list[Passage]) -> None:
    searcher = WordSearch(index)
    assert searcher.passages == 5
    assert searcher.search("who founded the Kastor works", 3)[0] == articles[0]
    assert searcher.search("granite bridge", 1) == [articles[3]]
    found = [each.title for each in searcher.search("Mira", 9)]
    assert sorted(found[:2]) == ["Mira Tolan", "Mira Tolen"]  # the names are in their titles
    assert found[2:] == ["Kastor Works"]


def test_words_are_found_by_their_stem_and_without_accents(tmp_path: Path) -> None:
    build(tmp_path, [Passage("", "She founded cafés"), Passage("", "nothing of it")])
    searcher = WordSearch(tmp_path)
    assert searcher.search("founding", 5) == searcher.search("CAFE", 5)
    assert searcher.search("founding", 5)[0].text == "She founded cafés"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("营业收入", "zh"), ("董事会", "zh2"), ("取締役会", "ja"), ("กำไรสุทธิ", "th"),
        ("매출", "ko"), ("हिन्दी", "hi"), ("２０２３", "zh"), ("ﬁnance", "en"), ("finances", "en"),
    ],
)  # fmt: skip
def test_words_of_scripts_without_blanks_are_found(tmp_path: Path, query: str, found: str) -> None:
    build(
        tmp_path,
        [
            Passage("zh", "公司2023年的营业收入为五亿元"),
            Passage("zh2", "董事会成员包括张伟和李娜"),
            Passage("ja", "取締役会のメンバー"),
            Passage("th", "กำไรสุทธิของบริษัทเพิ่มขึ้น"),
            Passage("ko", "회사의 매출은 백억원이다"),
            Passage("hi", "हिन्दी भाषा"),
            Passage("en", "The ﬁnance report"),
        ],
    )
    best = WordSearch(tmp_path).search(query, 1)
    assert [each.title for each in best] == [found]


def test_title_weighs_more_than_a_text(tmp_path: Path) -> None:
    build(tmp_path, [Passage("lake", "one river two"), Passage("river", "one lake two")])
    assert WordSearch(tmp_path).search("river", 2)[0].title == "river"


def test_ties_come_in_the_order_of_the_corpus(tmp_path: Path) -> None:
    build(tmp_path, [Passage(str(number), "same words") for number in range(20)])
    titles = [each.title for each in WordSearch(tmp_path).search("words", 20)]
    assert titles == [str(number) for number in range(20)]


def test_common_words_are_dropped_by_the_budget_and_the_rarest_stays(tmp_path: Path) -> None:
    """Check 300 passages: 300 have "the", 150 "city", 1 "granite"; a budget of 200 drops "the"."""
    texts = [f"the {'city' if number % 2 else 'town'} {number}" for number in range(300)]
    build(tmp_path, [Passage("", text) for text in [*texts[:299], "granite the"]])
    asked = "the city of granite"
    found = {
        budget: {each.text.split()[-2] for each in WordSearch(tmp_path, budget).search(asked, 400)}
        for budget in (1, 200, 1000)
    }
    assert found[1] == {"granite"}
    assert found[200] == {"granite", "city"}
    assert found[1000] == {"granite", "city", "town"}
    assert len(WordSearch(tmp_path, 1).search("the", 400)) == 300  # the query has no rarer word


@given(st.text(max_size=80) | st.binary(max_size=40).map(lambda raw: raw.decode("latin-1")))
def test_word_search_answers_any_query(index: Path, query: str) -> None:
    found = WordSearch(index).search(query, 3)
    assert len(found) <= 3
    assert all(isinstance(each, Passage) for each in found)


@pytest.mark.parametrize(
    "query",
    [
        '"', "'; DROP TABLE passages; --", "title:granite", "granite*", "^granite", "NEAR(a b)",
        "AND OR NOT", "{title}: x", "granite\x00bridge", "\ud800 granite", "-" * 10_000,
        "granite " * 5000, "", "   ", "\u200b", "𝕘𝕣𝕒𝕟𝕚𝕥𝕖",
    ],
)  # fmt: skip
def test_query_is_never_an_expression(index: Path, query: str) -> None:
    found = WordSearch(index).search(query, 5)
    assert {each.title for each in found} <= {
        "Stone bridge", "Ravensby", "Kastor Works", "Mira Tolen", "Mira Tolan",
    }  # fmt: skip


def test_passages_of_any_text_can_be_kept(tmp_path: Path) -> None:
    odd = [Passage("nul\x00", "lone \ud800 surrogate", "\x00"), Passage("", "", "")]
    assert build(tmp_path, odd) == 2
    assert WordSearch(tmp_path).search("surrogate", 1)[0].text == "lone ? surrogate"


def test_word_search_pickles_and_serves_many_threads(index: Path) -> None:
    searcher = pickle.loads(pickle.dumps(WordSearch(index, 500)))
    assert searcher.budget == 500
    titles: list[str] = []

    def ask() -> None:
        titles.append(searcher.search("granite", 1)[0].title)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert titles == ["Stone bridge"] * 8
    searcher.close()
    assert searcher.search("granite", 1)  # the file can be opened again


def test_broken_index_is_named(tmp_path: Path, articles: list[Passage]) -> None:
    with pytest.raises(DataError, match="visenv search build"):
        WordSearch(tmp_path)
    (tmp_path / FILE).write_bytes(b"")
    with pytest.raises(DataError, match="is not a readable index"):
        WordSearch(tmp_path)
    (tmp_path / FILE).write_bytes(b"SQLite format 3\x00" + bytes(range(256)) * 40)
    with pytest.raises(DataError, match="is not a readable index"):
        WordSearch(tmp_path)
    build(tmp_path, articles)
    connection = sqlite3.connect(tmp_path / FILE)
    connection.execute("UPDATE facts SET format = 99")
    connection.commit()
    connection.close()
    with pytest.raises(DataError, match="format 99"):
        WordSearch(tmp_path)


def test_damage_behind_the_header_aborts_the_search(tmp_path: Path) -> None:
    build(tmp_path, [Passage(str(each), f"granite {each} " * 40) for each in range(400)])
    searcher = WordSearch(tmp_path)
    content = bytearray((tmp_path / FILE).read_bytes())
    content[8192:] = bytes(len(content) - 8192)
    (tmp_path / FILE).write_bytes(content)
    searcher.close()
    with pytest.raises(ServiceError, match=FILE):
        searcher.search("granite", 400)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE facts SET passages = -1",
        "UPDATE facts SET passages = 1000000000000",
        "UPDATE facts SET passages = NULL",
        "DELETE FROM passages",
        "DELETE FROM passages WHERE id = 5",
        "DELETE FROM facts",
        "DROP TABLE facts",
    ],
)
def test_facts_that_do_not_fit_are_named(
    tmp_path: Path, articles: list[Passage], statement: str
) -> None:
    _damage(tmp_path, articles, statement)
    with pytest.raises(DataError, match="is not a readable index"):
        WordSearch(tmp_path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE postings SET numbers = x'ffffffff'",
        "UPDATE postings SET numbers = x'000000'",
        "UPDATE postings SET numbers = NULL",
        "UPDATE postings SET weights = x'0102030405060708090a'",
        "UPDATE postings SET weights = zeroblob(400)",
        "UPDATE postings SET passages = 'many'",
        "DROP TABLE postings",
        "DELETE FROM passages WHERE id = 4",
    ],
)
def test_postings_that_do_not_fit_abort_the_search(
    tmp_path: Path, articles: list[Passage], statement: str
) -> None:
    _damage(tmp_path, articles, statement)
    with pytest.raises(ServiceError, match=FILE):
        WordSearch(tmp_path).search("granite", 4)


def _damage(folder: Path, articles: list[Passage], statement: str) -> None:
    build(folder, articles)
    connection = sqlite3.connect(folder / FILE)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_word_search_ranks_as_fts5_does(tmp_path: Path) -> None:
    """Compare the ranking of single words with SQLite's BM25, whose idf differs, on many texts."""
    rng = np.random.default_rng(0)
    words = [f"word{number}" for number in range(60)]
    texts = [" ".join(rng.choice(words, int(rng.integers(3, 40)))) for _ in range(300)]
    texts += [" ".join(rng.choice(["filler", "more"], 9)) for _ in range(3000)]
    build(tmp_path, [Passage(text[:5], text, str(row)) for row, text in enumerate(texts)])
    asked = "SELECT rowid - 1 FROM plain WHERE plain MATCH ? ORDER BY bm25(plain, 2, 1), rowid"
    searcher = WordSearch(tmp_path)
    with closing(sqlite3.connect(":memory:")) as plain:
        plain.execute("CREATE VIRTUAL TABLE plain USING fts5 (title, text, tokenize = 'porter')")
        plain.executemany("INSERT INTO plain VALUES (?, ?)", [(text[:5], text) for text in texts])
        for word in words:
            expected = [str(row) for (row,) in plain.execute(asked, (word,))]
            assert [each.url for each in searcher.search(word, 999)] == expected


def test_scores_by_hand(tmp_path: Path) -> None:
    """Check texts of 2, 4 and 6 words, 4 on average; the damping is 1.2 (0.25 + 0.75 length / 4).

    The dampings are 0.75, 1.2 and 1.65. "rare" is in 1 of 3 texts: idf ln(1 + 2.5 / 1.5) = 0.9808;
    "both" is in 2: ln(1 + 1.5 / 2.5) = 0.4700. First text: "both" once, 0.4700 / 1.75 = 0.2686.
    Second: "both" twice, 0.4700 * 2 / 3.2 = 0.2938. Third: "rare" once, 0.9808 / 2.65 = 0.3701.
    """
    texts = ["both x", "both both x x", "rare x x x x x"]
    build(tmp_path, [Passage("", text) for text in texts])
    found = [each.text for each in WordSearch(tmp_path).search("rare both", 3)]
    assert found == [texts[2], texts[1], texts[0]]
    searcher = WordSearch(tmp_path)
    scores = searcher._bm25.scores(["rare", "both"])
    assert scores.tolist() == pytest.approx([0.2686, 0.2938, 0.3701], abs=1e-4)


def test_failed_build_leaves_the_old_index(tmp_path: Path, articles: list[Passage]) -> None:
    build(tmp_path, articles)
    with pytest.raises(DataError, match="at least one passage"):
        build(tmp_path, [])

    def broken() -> object:
        yield articles[0]
        raise OSError("the disk went away")

    with pytest.raises(OSError, match="went away"):
        build(tmp_path, broken())  # type: ignore[arg-type]
    assert WordSearch(tmp_path).passages == 5
    assert [each.name for each in tmp_path.iterdir()] == [FILE]


def test_connections_are_closed_when_the_search_is_deleted(index: Path) -> None:
    searcher = WordSearch(index)
    searcher.search("granite bridge", 1)
    held = [*searcher._open, searcher._words._connection]
    assert len(held) == 2
    del searcher
    gc.collect()
    for connection in held:
        with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
            connection.execute("SELECT 1")


def test_connection_of_a_broken_index_is_closed(
    tmp_path: Path, articles: list[Passage], monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path, articles)
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.execute("UPDATE facts SET format = 99")
        connection.commit()
    held: list[sqlite3.Connection] = []

    def noted(file: Path) -> sqlite3.Connection:
        held.append(open_database(file))
        return held[-1]

    monkeypatch.setattr("visenv.search.words.open_database", noted)
    with pytest.raises(DataError, match="has format 99"):
        WordSearch(tmp_path)
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        held[0].execute("SELECT 1")


def test_budget_below_one_is_refused(index: Path) -> None:
    with pytest.raises(ConfigurationError, match="at least 1"):
        WordSearch(index, 0)
